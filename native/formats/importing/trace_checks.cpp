#include "formats/importing/trace_checks.h"

#include <algorithm>
#include <numeric>

#include "formats/encoding/json_strings.h"
#include "include/strobe.h"

namespace strobe {

namespace {
constexpr size_t kMostNoted = 1 << 18;  // of what is noted one by one: all of it is rare in a sound file
constexpr std::string_view kProfilerStep = "profilerstep#";

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// Whether it is UTF-8, and every byte is original.
bool sound_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t size = json::character_bytes(text.substr(i));
    if (!size || text.substr(i, size) == "\xEF\xBF\xBD") return false;  // what replaces a byte that is not text
    i += size;
  }
  return true;
}

// The cell of a column among the present ones.
bool cell(int8_t column, uint64_t present, const uint64_t* cells, uint64_t& out) {
  if (column < 0 || !(present >> column & 1)) return false;
  out = cells[__builtin_popcountll(present & ((uint64_t(1) << column) - 1))];
  return true;
}
}  // namespace

uint8_t* IdStates::of(uint64_t id) {
  const uint64_t page = id / kPage;
  if (page != last_page_) {
    const auto at = places_.find(page);
    if (at == places_.end() && pages_.size() >= kMostPages) return nullptr;
    if (at == places_.end()) {
      places_.emplace(page, uint32_t(pages_.size()));
      last_place_ = uint32_t(pages_.size());
      pages_.push_back({});
    } else {
      last_place_ = at->second;
    }
    last_page_ = page;
  }
  return &pages_[last_place_][id % kPage];
}

void TraceChecks::define_region(uint32_t region, std::string_view name, uint8_t paradigm, uint8_t role) {
  uint8_t is = 0;
  see_text(name);
  if (paradigm == STROBE_CUDA || paradigm == STROBE_HIP || paradigm == STROBE_OPENCL ||
      paradigm == STROBE_ACCELERATOR) {
    is |= kGpu;
    if (role == STROBE_ROLE_KERNEL || role == STROBE_ROLE_COPY) {
      is |= kWork;
    } else {
      // cudaLaunchKernel, cuLaunchKernelEx, hipModuleLaunchKernel, cudaGraphLaunch, ...: all but calls of host
      // functions.
      if (has(name, "Launch") && !has(name, "HostFunc")) is |= kLaunch;
      if (has(name, "GraphLaunch") || has(name, "MultiDevice")) is |= kMany;
      if (has(name, "BeginCapture")) is |= kCapture | kBegins;
      if (has(name, "EndCapture")) is |= kCapture;
    }
  } else if (role == STROBE_ROLE_OPERATOR) {
    is |= kOperator;
  }
  if (step_mark(region, name)) is |= kStep;
  if (region >= classes_.size()) classes_.resize(region + 1);
  classes_[region] = is;
}

void TraceChecks::define_table(const TableLayout& layout) {
  Columns columns;
  const auto column = [&](std::string_view name) {
    for (size_t i = 0; i < layout.columns.size(); i++)
      if (layout.columns[i].name == name) return int8_t(i);
    return int8_t(-1);
  };
  columns.kind = layout.name == "kernel_spans"     ? kKernels
                 : layout.name == "copy_spans"     ? kCopies
                 : layout.name == "call_spans"     ? kCalls
                 : layout.name == "operator_spans" ? kOperators
                 : layout.name == "flows"          ? kFlows
                                                   : kNone;
  columns.id = column(columns.kind == kFlows ? "flow" : columns.kind == kOperators ? "external_id" : "correlation");
  columns.graph = column("graph"), columns.result = column("return_value");
  columns.phase = column("phase"), columns.category = column("category"), columns.name = column("name");
  columns_.push_back(columns);
}

void TraceChecks::see_text(std::string_view value) { not_utf8_ += !sound_text(value); }

// ProfilerStep#3, step 3, Iteration: 3: words that mean steps, and a number.
bool TraceChecks::step_mark(uint32_t region, std::string_view name) {
  size_t digits = 0;
  while (digits < name.size() && name[name.size() - 1 - digits] >= '0' && name[name.size() - 1 - digits] <= '9')
    digits++;
  constexpr size_t kMostWords = 16, kMostDigits = 18;
  const size_t words = name.size() - digits;
  if (!digits || digits > kMostDigits || !words || words > kMostWords || unseen_.size() >= kMostNoted) return false;
  std::string key(name.substr(0, words));
  for (char& c : key)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  const std::string_view letters = std::string_view(key).substr(0, key.find_last_not_of(" #_:=.-") + 1);
  if (letters != "profilerstep" && letters != "step" && letters != "iteration" && letters != "iter") return false;
  unseen_[region] = {&steps_[key], std::stoull(std::string(name.substr(words)))};
  return true;
}

void TraceChecks::capture(int64_t start_ns, uint32_t region) {
  if (captures_.size() < kMostNoted) captures_.push_back({start_ns, classes_[region] & kBegins ? 1 : -1});
}

void TraceChecks::sort() {
  std::stable_sort(captures_.begin(), captures_.end(), [](const Capture& a, const Capture& b) { return a.ns < b.ns; });
  int open = 0;
  for (const Capture& each : captures_) {
    if (!open && each.change > 0) captured_.push_back({each.ns, INT64_MAX});
    if (open == 1 && each.change < 0) captured_.back().second = each.ns;
    open = std::max(open + each.change, 0);
  }
}

// Whether some thread was capturing: what backward passes launch is captured from another thread.
bool TraceChecks::captured(int64_t ns) const {
  const auto after = std::upper_bound(captured_.begin(), captured_.end(), std::pair(ns, INT64_MAX));
  return after != captured_.begin() && ns < std::prev(after)->second;
}

void TraceChecks::span(Walk& walk, int64_t start_ns, int64_t end_ns, uint32_t region) {
  const uint8_t is = region < classes_.size() ? classes_[region] : 0;
  walk.start_ns = start_ns, walk.end_ns = end_ns, walk.region_class = is;
  if ((is & kWork) && walk.stream && !work_nests_) {
    overlaps_ += start_ns < walk.busy_until_ns;
    walk.busy_until_ns = std::max(walk.busy_until_ns, end_ns);
  }
  if (is & kOperator) {
    walk.operator_until_ns = std::max(walk.operator_until_ns, end_ns);
    operators_seen_++;
  }
  if ((is & kStep) && walk.host) {
    const StepMark& mark = unseen_[region];
    mark.numbers->push_back(mark.number);
    classes_[region] &= uint8_t(~kStep);
  }
}

void TraceChecks::row_of_span(Walk& walk, uint32_t table, uint64_t present, const uint64_t* cells) {
  const Columns& columns = columns_[table];
  switch (columns.kind) {
    case kKernels:
    case kCopies:
      return activity(columns, present, cells);
    case kCalls:
      if (walk.region_class & kGpu) call(walk, columns, present, cells);
      return;
    case kOperators:
      if (walk.region_class & kOperator) operator_id(columns, present, cells);
      return;
    default:
      return;
  }
}

uint8_t* TraceChecks::state(IdStates& ids, uint64_t id) {
  uint8_t* found = ids.of(id);
  not_compared_ += !found;
  return found;
}

void TraceChecks::activity(const Columns& columns, uint64_t present, const uint64_t* cells) {
  uint64_t id, graph = 0;
  if (!cell(columns.id, present, cells, id)) return;
  uint8_t* is = state(correlations_, id);
  if (!is) return;
  activities_++;
  const bool kernel = columns.kind == kKernels;
  if (cell(columns.graph, present, cells, graph) && graph) *is |= kGraph;
  if (*is & (kernel ? kKernel : kCopy)) {
    if (!more_.contains(id) && more_.size() >= kMostNoted) {
      not_compared_++;
      return;
    }
    Repeated& more = more_[id];
    (kernel ? more.kernels : more.copies)++;
    *is |= kRepeated;
  }
  *is |= kernel ? kKernel : kCopy;
}

void TraceChecks::call(Walk& walk, const Columns& columns, uint64_t present, const uint64_t* cells) {
  uint64_t id, result = 0;
  if (!cell(columns.id, present, cells, id) || !id) return;  // 0: of no call
  uint8_t* is = state(correlations_, id);
  if (!is) return;
  calls_++;
  while (!walk.calls.empty() && walk.calls.back().end_ns <= walk.start_ns) walk.calls.pop_back();
  if (*is & kCalled) {
    // The runtime's call and the driver's inside of it share one.
    const bool inside = std::any_of(walk.calls.begin(), walk.calls.end(), [&](const Walk::Call& each) {
      return each.correlation == id && each.end_ns >= walk.end_ns;
    });
    if (!inside) *is |= kCalledTwice;
  }
  walk.calls.push_back({walk.end_ns, id});
  *is |= kCalled;
  if (walk.start_ns < walk.operator_until_ns) *is |= kInOperator;
  cell(columns.result, present, cells, result);
  if (walk.region_class & kMany) *is |= kGraph;
  if ((walk.region_class & kLaunch) && !result && !captured(walk.start_ns)) *is |= kLaunched;
}

void TraceChecks::operator_id(const Columns& columns, uint64_t present, const uint64_t* cells) {
  uint64_t id;
  if (!cell(columns.id, present, cells, id) || !id) return;
  uint8_t* is = state(operators_, id);
  if (!is) return;
  same_operators_ += *is;
  *is = 1;
}

void TraceChecks::flow(const Columns& columns, uint64_t present, const uint64_t* cells) {
  uint64_t id, phase, category = 0, name = 0;
  if (!cell(columns.id, present, cells, id) || !cell(columns.phase, present, cells, phase)) return;
  if (std::find(begins_.begin(), begins_.end(), phase) == begins_.end()) return;
  cell(columns.category, present, cells, category), cell(columns.name, present, cells, name);
  // Flows of several kinds may have equal numbers; those of one kind stay neighbours.
  const uint64_t kind = uint32_t(category * 0x9E3779B1u + name * 0x85EBCA6Bu);
  uint8_t* is = state(flows_, id ^ kind << 32);
  if (!is) return;
  same_flows_ += *is;
  *is = 1;
}

void TraceChecks::add_to(std::map<std::string, uint64_t>& counters) const {
  uint64_t orphan_kernels = 0, kernels_outside = 0, orphan_copies = 0, orphan_launches = 0, same_correlations = 0,
           missing_steps = 0;
  correlations_.each([&](uint64_t id, uint8_t is) {
    Repeated of;
    if (is & kRepeated) of = more_.at(id);
    of.kernels += (is & kKernel) != 0, of.copies += (is & kCopy) != 0;
    if (!(is & kCalled)) orphan_kernels += of.kernels, orphan_copies += of.copies;
    if ((is & kCalled) && !(is & kInOperator)) kernels_outside += of.kernels;
    orphan_launches += (is & kLaunched) && !(is & (kKernel | kCopy)) && id < work_elsewhere_from_;
    same_correlations += (is & kCalledTwice) || ((is & kLaunched) && !(is & kGraph) && of.kernels > 1);
  });
  for (const auto& [name, seen] : steps_) {
    std::vector<uint64_t> numbers = seen;
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (numbers.size() < 2) continue;
    // Programs may mark every tenth step only; the profiler marks all.
    uint64_t every = 0;
    for (size_t i = 1; i < numbers.size(); i++) every = std::gcd(every, numbers[i] - numbers[i - 1]);
    if (name == kProfilerStep) every = 1;
    missing_steps += (numbers.back() - numbers.front()) / every + 1 - numbers.size();
  }
  const auto add = [&](const char* what, uint64_t n) {
    if (n) counters.try_emplace(what, n);
  };
  // Where no call or no work of a GPU was recorded at all, nothing of it is missing.
  if (calls_) add("orphan_kernels", orphan_kernels), add("orphan_copies", orphan_copies);
  if (operators_seen_) add("kernels_outside_operators", kernels_outside);
  if (activities_) add("orphan_launches", orphan_launches);
  add("duplicate_correlation_ids", same_correlations);
  add("duplicate_operator_ids", same_operators_);
  add("duplicate_flow_ids", same_flows_);
  add("ids_not_compared", not_compared_);
  add("overlaps_on_streams", overlaps_);
  add("missing_steps", missing_steps);
  add("texts_not_utf8", not_utf8_);
}

}  // namespace strobe
