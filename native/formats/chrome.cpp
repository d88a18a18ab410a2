#include "formats/chrome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "formats/json_scan.h"
#include "include/strobe.h"
#include "vendor/yyjson/yyjson.h"

namespace strobe {

namespace {

constexpr size_t kLongestEvent = 64u << 20;
constexpr size_t kPadding = 4;  // YYJSON_PADDING_SIZE
constexpr yyjson_read_flag kFlags =
    YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_ALLOW_INVALID_UNICODE | YYJSON_READ_ALLOW_INF_AND_NAN;

// Side tables, and under which names Kineto's arguments go into them.
enum TableId : uint8_t {
  kKernels,
  kCopies,
  kCalls,
  kOperators,
  kSyncs,
  kCollectives,
  kPython,
  kArguments,
  kAllocations,
  kMarks,
  kFlows,
  kTables
};
constexpr CellType kInt = CellType::integer, kReal = CellType::real, kText = CellType::text;

const TableLayout kLayouts[kTables] = {
    {"kernel_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"grid_x", kInt},
      {"grid_y", kInt},
      {"grid_z", kInt},
      {"block_x", kInt},
      {"block_y", kInt},
      {"block_z", kInt},
      {"registers_per_thread", kInt},
      {"shared_memory_bytes", kInt},
      {"queued_ns", kInt},
      {"blocks_per_sm", kReal},
      {"warps_per_sm", kReal},
      {"occupancy_percent", kReal},
      {"graph", kInt},
      {"graph_node", kInt},
      {"priority", kInt}},
     true},
    {"copy_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"size_bytes", kInt},
      {"bandwidth_gb_s", kReal},
      {"graph", kInt},
      {"graph_node", kInt}},
     true},
    {"call_spans", {{"correlation", kInt}, {"external_id", kInt}, {"callback_id", kInt}}, true},
    {"operator_spans",
     {{"external_id", kInt},
      {"record_function_id", kInt},
      {"event_index", kInt},
      {"sequence_number", kInt},
      {"forward_thread", kInt},
      {"shapes", kText},
      {"types", kText},
      {"strides", kText},
      {"concrete_inputs", kText},
      {"module_hierarchy", kText},
      {"call_stack", kText}},
     true},
    {"sync_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"sync_kind", kText},
      {"wait_on_stream", kInt},
      {"wait_on_correlation", kInt},
      {"wait_on_event", kInt}},
     true},
    {"collective_spans",
     {{"collective", kText},
      {"dtype", kText},
      {"in_elements", kInt},
      {"out_elements", kInt},
      {"group_size", kInt},
      {"group", kText},
      {"group_description", kText},
      {"group_ranks", kText},
      {"in_split", kText},
      {"out_split", kText},
      {"rank", kInt},
      {"first_rank", kInt},
      {"rank_stride", kInt},
      {"sequence", kInt},
      {"communicator", kText},
      {"source_rank", kInt},
      {"destination_rank", kInt}},
     true},
    {"python_spans", {{"python_id", kInt}, {"python_parent_id", kInt}, {"python_module_id", kInt}}, true},
    {"arguments", {{"key", kText}, {"value", kText}}, true},
    {"allocations",
     {{"time_ns", kInt},
      {"address", kInt},
      {"size_bytes", kInt},
      {"total_allocated_bytes", kInt},
      {"total_reserved_bytes", kInt},
      {"device_type", kInt},
      {"device", kInt},
      {"event_index", kInt}},
     false},
    {"marks", {{"time_ns", kInt}, {"name", kText}, {"category", kText}, {"arguments", kText}}, false},
    {"flows",
     {{"time_ns", kInt}, {"flow", kInt}, {"flow_name", kText}, {"phase", kText}, {"name", kText}, {"category", kText}},
     false},
};

struct Key {
  std::string_view json;  // in lower case
  TableId table;
  uint8_t column;
};
constexpr uint8_t kGrid = 5, kBlock = 8;  // of kernels: the first of three
constexpr Key kGpuKeys[] = {
    {"correlation", kKernels, 0},
    {"external id", kKernels, 1},
    {"device", kKernels, 2},
    {"context", kKernels, 3},
    {"stream", kKernels, 4},
    {"grid", kKernels, kGrid},
    {"block", kKernels, kBlock},
    {"registers per thread", kKernels, 11},
    {"shared memory", kKernels, 12},
    {"queued", kKernels, 13},
    {"blocks per sm", kKernels, 14},
    {"warps per sm", kKernels, 15},
    {"est. achieved occupancy %", kKernels, 16},
    {"graph id", kKernels, 17},
    {"graph node id", kKernels, 18},
    {"priority", kKernels, 19},
};
constexpr Key kCopyKeys[] = {
    {"correlation", kCopies, 0},
    {"external id", kCopies, 1},
    {"device", kCopies, 2},
    {"context", kCopies, 3},
    {"stream", kCopies, 4},
    {"bytes", kCopies, 5},
    {"memory bandwidth (gb/s)", kCopies, 6},
    {"graph id", kCopies, 7},
    {"graph node id", kCopies, 8},
};
constexpr Key kCallKeys[] = {{"correlation", kCalls, 0}, {"external id", kCalls, 1}, {"cbid", kCalls, 2}};
constexpr Key kOperatorKeys[] = {
    {"external id", kOperators, 0},      {"record function id", kOperators, 1}, {"ev idx", kOperators, 2},
    {"sequence number", kOperators, 3},  {"fwd thread id", kOperators, 4},      {"input dims", kOperators, 5},
    {"input type", kOperators, 6},       {"input strides", kOperators, 7},      {"concrete inputs", kOperators, 8},
    {"module hierarchy", kOperators, 9}, {"call stack", kOperators, 10},
};
constexpr Key kSyncKeys[] = {
    {"correlation", kSyncs, 0},
    {"external id", kSyncs, 1},
    {"device", kSyncs, 2},
    {"context", kSyncs, 3},
    {"stream", kSyncs, 4},
    {"cuda_sync_kind", kSyncs, 5},
    {"wait_on_stream", kSyncs, 6},
    {"wait_on_cuda_event_record_corr_id", kSyncs, 7},
    {"wait_on_cuda_event_id", kSyncs, 8},
};
constexpr Key kCollectiveKeys[] = {
    {"collective name", kCollectives, 0},
    {"dtype", kCollectives, 1},
    {"in msg nelems", kCollectives, 2},
    {"out msg nelems", kCollectives, 3},
    {"group size", kCollectives, 4},
    {"process group name", kCollectives, 5},
    {"process group description", kCollectives, 6},
    {"process group ranks", kCollectives, 7},
    {"in split size", kCollectives, 8},
    {"out split size", kCollectives, 9},
    {"rank", kCollectives, 10},
    {"global rank start", kCollectives, 11},
    {"global rank stride", kCollectives, 12},
    {"seq", kCollectives, 13},
    {"comms id", kCollectives, 14},
    {"src rank", kCollectives, 15},
    {"dst rank", kCollectives, 16},
};
constexpr Key kPythonKeys[] = {
    {"python id", kPython, 0}, {"python parent id", kPython, 1}, {"python module id", kPython, 2}};
constexpr Key kAllocationKeys[] = {
    {"addr", kAllocations, 1},           {"bytes", kAllocations, 2},       {"total allocated", kAllocations, 3},
    {"total reserved", kAllocations, 4}, {"device type", kAllocations, 5}, {"device id", kAllocations, 6},
    {"ev idx", kAllocations, 7},
};

// What an event is, from its category: who reports it, what it is, whether its row is one of a GPU, where its arguments
// go.
struct Category {
  std::string_view name;
  uint8_t paradigm, role;
  bool gpu;
  const Key* keys;
  size_t key_count;
};
template <size_t n>
constexpr Category category(std::string_view name, uint8_t paradigm, uint8_t role, bool gpu, const Key (&keys)[n]) {
  return {name, paradigm, role, gpu, keys, n};
}
constexpr Category kCategories[] = {
    category("cpu_op", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperatorKeys),
    category("operator", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperatorKeys),
    category("user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, false, kOperatorKeys),
    category("python_function", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, kPythonKeys),
    category("cuda_runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("cuda_driver", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("kernel", STROBE_CUDA, STROBE_ROLE_KERNEL, true, kGpuKeys),
    category("gpu_memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("gpu_memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("cuda_sync", STROBE_CUDA, STROBE_ROLE_SYNC, true, kSyncKeys),
    category("gpu_user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, true, kOperatorKeys),
    category("overhead", STROBE_SELF, STROBE_ROLE_OTHER, false, kCallKeys),
    {"fee", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, nullptr, 0},  // VizTracer's functions
};
constexpr Category kOther = {"", STROBE_OTHER, STROBE_ROLE_RANGE, false, nullptr, 0};

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
bool same_ignoring_case(std::string_view a, std::string_view in_lower_case) {
  if (a.size() != in_lower_case.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (lower(a[i]) != in_lower_case[i]) return false;
  return true;
}

// Texts that come again and again, by a few of their bytes: a look at one slot instead of hashing all of them.
template <class Value, size_t kSlots = 1024>
class RecentTexts {
 public:
  struct Slot {
    std::string text;
    uint64_t beside = ~uint64_t(0);
    Value value{};
  };
  // The slot for a text; `found` says whether it holds it.
  Slot& slot(std::string_view text, uint64_t beside, bool& found) {
    uint64_t head = 0, tail = 0;
    const size_t n = text.size() < 8 ? text.size() : 8;
    if (n) {
      memcpy(&head, text.data(), n);
      memcpy(&tail, text.data() + text.size() - n, n);
    }
    const uint64_t mixed = (head ^ (tail << 7) ^ (text.size() << 17) ^ beside * 31) * 0x9E3779B97F4A7C15ull;
    Slot& at = slots_[mixed >> 54];
    found = at.beside == beside && at.text == text;
    return at;
  }

 private:
  static_assert(kSlots == 1024, "ten bits of the hash");
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

const Category& category_of(std::string_view name) {
  for (const Category& each : kCategories)
    if (same_ignoring_case(name, each.name)) return each;
  return kOther;
}

// A short key as a number, 0 if it is longer.
constexpr uint32_t tag(std::string_view key) {
  uint32_t number = 0;
  if (key.size() > 4) return 0;
  for (size_t i = 0; i < key.size(); i++) number |= uint32_t(uint8_t(key[i])) << (8 * i);
  return number;
}

bool starts_with(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string_view raw(yyjson_val* v) {  // the text of a string or number, else empty
  if (!v || !(yyjson_is_str(v) || yyjson_is_raw(v))) return {};
  return {static_cast<const char*>(v->uni.ptr), yyjson_get_len(v)};
}

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (uint8_t(c) < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

// A value as compact JSON; numbers as the file has them.
void append_json(std::string& out, yyjson_val* v, int depth = 0) {
  if (depth > 64) {
    out += "null";
  } else if (yyjson_is_raw(v)) {
    out += raw(v);
  } else if (yyjson_is_str(v)) {
    append_json_text(out, raw(v));
  } else if (yyjson_is_arr(v)) {
    out += '[';
    size_t i, n;
    yyjson_val* each;
    yyjson_arr_foreach(v, i, n, each) {
      if (i) out += ',';
      append_json(out, each, depth + 1);
    }
    out += ']';
  } else if (yyjson_is_obj(v)) {
    out += '{';
    size_t i, n;
    yyjson_val *key, *each;
    yyjson_obj_foreach(v, i, n, key, each) {
      if (i) out += ',';
      append_json_text(out, raw(key));
      out += ':';
      append_json(out, each, depth + 1);
    }
    out += '}';
  } else {
    out += yyjson_is_true(v) ? "true" : yyjson_is_false(v) ? "false" : "null";
  }
}

bool integer(std::string_view text, int64_t& out) {
  bool exact;
  if (json::scaled_integer(text, 0, out, exact)) return exact;
  // Addresses and hashes of 64 bits: the same bits.
  if (text.empty() || text.size() > 20 || text.find_first_not_of("0123456789") != text.npos) return false;
  errno = 0;
  const uint64_t value = strtoull(std::string(text).c_str(), nullptr, 10);
  out = int64_t(value);
  return errno == 0;
}

bool real(std::string_view text, double& out) {
  char copy[64];
  if (text.empty() || text.size() >= sizeof copy) return false;
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* end;
  out = strtod(copy, &end);
  return end == copy + text.size();
}

}  // namespace

struct ChromeReader::State {
  std::string folder;
  uint32_t next_number;
  size_t buffer_bytes;

  // The text, and how far it was read
  std::string text;
  size_t at = 0;
  uint64_t offset = 0;  // of text[0] in the file
  enum { kStart, kInObject, kInEvents, kEnded } where = kStart;
  bool bare_list = false, events_seen = false, damaged = false;
  std::string properties = "{";
  std::map<std::string, uint64_t> counters;  // of no process
  std::vector<char> pool;
  std::string spare;  // the value that is being parsed

  struct Process {
    std::string pid_text, path, name, labels;
    int64_t pid;
    std::unique_ptr<ImportedProcess> out;
    uint32_t tables[kTables];
    uint32_t process_location = kNoTable;
  };
  std::vector<Process> processes;
  std::unordered_map<std::string, uint32_t> process_of;  // pid as text -> number
  uint32_t current_host = kNoTable;

  struct Row {
    uint32_t process, location;
  };
  std::unordered_map<std::string, Row> rows;
  std::string row_key, last_key;
  Row last_row{};
  std::map<std::pair<std::string, std::string>, std::string> thread_names;  // (pid, tid) as text
  struct GpuRow {
    std::string pid, tid;
  };
  struct Open {  // a begin without its end
    int64_t start_ns;
    std::string name, category, attributes;
  };
  std::unordered_map<std::string, std::vector<Open>> open_begins;  // by row
  struct Async {
    int64_t start_ns;
    uint32_t process, location, region;
  };
  std::unordered_map<std::string, std::vector<Async>> open_async;  // by category, id, name
  RecentTexts<const Category*> recent_categories;
  RecentTexts<uint32_t> recent_regions, recent_texts;  // beside: of which process
  std::string scratch;
  std::string report;
  std::string rank_json;

  ~State() = default;

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " (byte " + std::to_string(offset + at) + ")");
  }

  // --- the frame around the events ---

  void skip_space() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) at++;
  }

  // A whole value at text[at]: 0 if more text is needed.
  size_t value_size() {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.empty()) return 0;
    size_t size = 0;
    if (rest[0] == '{' || rest[0] == '[') {
      size = json::end_of_container(rest);
    } else if (rest[0] == '"') {
      size = json::end_of_string(rest);
    } else {
      size = rest.find_first_of(",]} \n\r\t");
      if (size == 0) fail("a value was expected here");
      if (size == rest.npos) size = 0;
    }
    if (!size && rest.size() > kLongestEvent) fail("a single value is longer than 64 MiB");
    return size;
  }

  bool step() {  // false: more text is needed
    skip_space();
    if (at >= text.size()) return false;
    const char c = text[at];
    switch (where) {
      case kStart:
        if (starts_with(std::string_view(text).substr(at), "\xEF\xBB\xBF")) {
          at += 3;
        } else if (c == '[') {
          at++, where = kInEvents, bare_list = events_seen = true;
        } else if (c == '{') {
          at++, where = kInObject;
        } else {
          fail("this is no JSON trace: it begins with neither { nor [");
        }
        return true;
      case kInObject: {
        if (c == ',') return at++, true;
        if (c == '}') return at++, where = kEnded, true;
        if (c != '"') fail("the name of a property was expected here");
        const size_t key_size = value_size();
        if (!key_size) return false;
        const size_t key_at = at;
        at += key_size;
        skip_space();
        if (at < text.size() && text[at] != ':') fail("a colon was expected here");
        if (at < text.size()) at++, skip_space();
        if (at >= text.size()) return at = key_at, false;
        if (std::string_view(text).substr(key_at, key_size) == "\"traceEvents\"" && text[at] == '[') {
          at++, where = kInEvents, events_seen = true;
          return true;
        }
        const size_t size = value_size();
        if (!size) return at = key_at, false;
        property(key_at, key_size, size);
        at += size;
        return true;
      }
      case kInEvents: {
        if (c == ',') return at++, true;
        if (c == ']') return at++, where = bare_list ? kEnded : kInObject, true;
        const size_t size = value_size();
        if (!size) return false;
        if (c == '{')
          event(at, size);
        else
          counters["unreadable_events"]++;
        at += size;
        return true;
      }
      case kEnded:
        counters["bytes_behind_the_end"] += text.size() - at;
        at = text.size();
        return false;
    }
    return false;
  }

  void property(size_t key_at, size_t key_size, size_t size) {
    const Doc doc = parse(std::string_view(text).substr(at, size));
    if (!doc) {
      counters["unreadable_properties"]++;
      return;
    }
    if (properties.size() > 1) properties += ',';
    properties.append(text, key_at, key_size);
    properties += ':';
    append_json(properties, yyjson_doc_get_root(doc.get()));
    const std::string_view key = std::string_view(text).substr(key_at, key_size);
    if (key == "\"distributedInfo\"") {
      int64_t rank, ranks;
      if (integer(raw(yyjson_obj_get(yyjson_doc_get_root(doc.get()), "rank")), rank)) {
        rank_json = "{\"rank\": " + std::to_string(rank);
        if (integer(raw(yyjson_obj_get(yyjson_doc_get_root(doc.get()), "world_size")), ranks))
          rank_json += ", \"ranks\": " + std::to_string(ranks);
        rank_json += "}";
      }
    }
  }

  struct FreeDoc {
    void operator()(yyjson_doc* doc) const { yyjson_doc_free(doc); }
  };
  using Doc = std::unique_ptr<yyjson_doc, FreeDoc>;

  // Parses a copy in place: the next value overwrites it.
  Doc parse(std::string_view value) {
    spare.assign(value);
    spare.append(kPadding, '\0');
    yyjson_alc alc;
    const size_t need = value.size() * 12 + 256;  // yyjson_read_max_memory_usage
    if (pool.size() < need) pool.resize(need * 2);
    yyjson_alc_pool_init(&alc, pool.data(), pool.size());
    Doc doc(yyjson_read_opts(spare.data(), value.size(), kFlags, &alc, nullptr));
    if (doc) return doc;
    std::string repaired(value);
    if (!repair(repaired)) return nullptr;
    doc = parse(repaired);
    if (doc) counters["repaired_events"]++;
    return doc;
  }

  // Some writers put a bare N/A where a number should be.
  static bool repair(std::string& event) {
    bool changed = false;
    for (size_t i = event.find("N/A"); i != event.npos; i = event.find("N/A", i + 1)) {
      size_t before = i;
      while (before > 0 && event[before - 1] == ' ') before--;
      if (before == 0 || event[before - 1] != ':') continue;
      event.replace(i, 3, "null");
      changed = true;
    }
    return changed;
  }

  // --- processes and rows ---

  uint32_t process(std::string_view pid) {
    const auto [found, is_new] = process_of.try_emplace(std::string(pid), uint32_t(processes.size()));
    if (is_new) {
      Process p;
      p.pid_text = pid;
      if (!integer(pid, p.pid)) p.pid = 0;
      p.path = folder + "/process-" + std::to_string(next_number++) + ".blocks";
      p.out = std::make_unique<ImportedProcess>(p.path, buffer_bytes);
      for (size_t i = 0; i < kTables; i++) p.tables[i] = p.out->table(kLayouts[i]);
      processes.push_back(std::move(p));
    }
    return found->second;
  }

  // Rows of GPUs, of the profiler, of whatever is no process of the operating system, belong to the process whose
  // events came last: Kineto writes a process's own events first, and merged files have one process after the other.
  uint32_t host_or(std::string_view pid) { return current_host != kNoTable ? current_host : process(pid); }

  Row row_of(std::string_view pid, std::string_view tid, const Category& category, std::string_view name) {
    // What Kineto says about itself lies in processes that are none.
    const bool helper = pid.empty() || pid == "Spans" || pid == "Traces" || pid == "-1";
    row_key.assign(category.gpu ? "g" : helper ? "h" : "t");
    row_key += pid, row_key += '\n', row_key += tid;
    if (row_key == last_key) return last_row;
    if (!category.gpu && !helper) current_host = process(pid);
    const auto [found, is_new] = rows.try_emplace(row_key);
    if (is_new || (category.gpu && found->second.process != current_host && current_host != kNoTable)) {
      const uint32_t number = category.gpu || helper ? host_or(pid) : current_host;
      found->second = {number, add_location(number, pid, tid, category, helper, name)};
    }
    last_key = row_key;
    return last_row = found->second;
  }

  uint32_t add_location(uint32_t number, std::string_view pid, std::string_view tid, const Category& category,
                        bool helper, std::string_view) {
    ImportedProcess& out = *processes[number].out;
    int64_t device = -1, id = 0;
    std::string_view digits = tid;
    if (category.gpu) {
      if (starts_with(digits, "stream ")) digits.remove_prefix(7);
      if (!integer(pid, device)) device = -1;
    }
    if (!integer(digits, id)) id = 0;
    std::string shown;
    if (category.gpu)
      shown = "GPU " + std::string(pid) + " stream " + std::string(digits);
    else if (helper)
      shown = tid.empty() ? "profiler" : std::string(tid);
    else
      shown = "thread " + std::string(tid);
    const auto kind = category.gpu ? LocationKind::stream : helper ? LocationKind::task : LocationKind::thread;
    return out.location(shown, uint64_t(id), kind, device);
  }

  // --- events ---

  const Category& known_category(std::string_view name) {
    bool found;
    auto& slot = recent_categories.slot(name, 0, found);
    if (!found) slot.text = name, slot.beside = 0, slot.value = &category_of(name);
    return *slot.value;
  }

  uint32_t text_of(Process& p, std::string_view text) {
    bool found;
    const auto beside = uint64_t(&p - processes.data());
    auto& slot = recent_texts.slot(text, beside, found);
    if (!found) slot.value = p.out->text(text), slot.text = text, slot.beside = beside;
    return slot.value;
  }

  bool time(yyjson_val* value, int64_t& ns) {
    bool exact = true;
    if (!json::scaled_integer(raw(value), 3, ns, exact)) return false;
    if (!exact) counters["times_rounded"]++;
    return true;
  }

  void event(size_t from, size_t size) {
    const Doc doc = parse(std::string_view(text).substr(from, size));
    if (!doc) {
      counters["unreadable_events"]++;
      return;
    }
    yyjson_val *ph = nullptr, *cat = nullptr, *name = nullptr, *pid = nullptr, *tid = nullptr, *ts = nullptr,
               *dur = nullptr, *args = nullptr, *id = nullptr;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(yyjson_doc_get_root(doc.get()), i, n, key, value) {
      const std::string_view k = raw(key);
      switch (tag(k)) {
        case tag("ph"):
          ph = value;
          break;
        case tag("ts"):
          ts = value;
          break;
        case tag("id"):
          id = value;
          break;
        case tag("cat"):
          cat = value;
          break;
        case tag("pid"):
          pid = value;
          break;
        case tag("tid"):
          tid = value;
          break;
        case tag("dur"):
          dur = value;
          break;
        case tag("name"):
          name = value;
          break;
        case tag("args"):
          args = value;
          break;
      }
    }
    const std::string_view phase = raw(ph);
    if (phase.size() != 1) {
      counters["unreadable_events"]++;
      return;
    }
    if (phase[0] == 'M') return metadata(raw(name), raw(pid), raw(tid), args);
    int64_t start_ns;
    if (!time(ts, start_ns)) {
      counters["events_without_time"]++;
      return;
    }
    const std::string_view category_name = raw(cat);
    const Category& category = known_category(category_name);
    switch (phase[0]) {
      case 'X': {
        int64_t duration_ns = 0;
        if (dur && !time(dur, duration_ns)) {
          counters["events_without_time"]++;
          return;
        }
        const Row row = row_of(raw(pid), raw(tid), category, raw(name));
        Process& p = processes[row.process];
        attributes(p, category, args);
        p.out->span(row.location, start_ns, duration_ns, region(p, category, category_name, raw(name)));
        return;
      }
      case 'B': {
        const Row row = row_of(raw(pid), raw(tid), category, raw(name));
        (void)row;
        Open open{start_ns, std::string(raw(name)), std::string(category_name), {}};
        if (args) append_json(open.attributes, args);
        open_begins[row_key].push_back(std::move(open));
        return;
      }
      case 'E': {
        const Row row = row_of(raw(pid), raw(tid), category, raw(name));
        auto& stack = open_begins[row_key];
        Process& p = processes[row.process];
        if (stack.empty()) {
          p.out->count("unmatched_leaves");
          return;
        }
        end_of(p, row, stack, start_ns);
        return;
      }
      case 'b':
      case 'e':
      case 'n':
      case 'S':
      case 'F':
        return async(phase[0], category, category_name, raw(name), raw(pid), raw(tid), id, start_ns, args);
      case 's':
      case 't':
      case 'f': {
        const Row row = flow_row(raw(pid), raw(tid), category);
        Process& p = processes[row.process];
        TableRow flow;
        flow.start(p.tables[kFlows]);
        flow.set(0, start_ns);
        int64_t number;
        if (integer(raw(id), number))
          flow.set(1, number);
        else if (!raw(id).empty())
          flow.set(2, text_of(p, raw(id)));
        flow.set(3, text_of(p, phase));
        flow.set(4, text_of(p, raw(name)));
        flow.set(5, text_of(p, category_name));
        p.out->row(row.location, flow);
        return;
      }
      case 'i':
      case 'I':
      case 'R':
        return instant(category, category_name, raw(name), raw(pid), raw(tid), start_ns, args);
      case 'C':
        return counter(raw(name), raw(pid), id, start_ns, args);
      default:
        counters["events_of_other_kinds"]++;
    }
  }

  // Ends of flows on GPUs carry no category that says so: they lie on rows that are known by then, or soon will be.
  Row flow_row(std::string_view pid, std::string_view tid, const Category& category) {
    row_key.assign("g");
    row_key += pid, row_key += '\n', row_key += tid;
    if (const auto found = rows.find(row_key); found != rows.end()) return found->second;
    row_key[0] = 't';
    if (const auto found = rows.find(row_key); found != rows.end()) return found->second;
    return row_of(pid, tid, category, {});
  }

  void end_of(Process& p, Row row, std::vector<Open>& stack, int64_t end_ns) {
    const Open open = std::move(stack.back());
    stack.pop_back();
    const Category& category = category_of(open.category);
    if (!open.attributes.empty()) {
      // Not with parse(): the event of the end is still being read.
      std::string copy = open.attributes + std::string(kPadding, '\0');
      if (const Doc doc{yyjson_read_opts(copy.data(), open.attributes.size(), kFlags, nullptr, nullptr)})
        attributes(p, category, yyjson_doc_get_root(doc.get()));
    }
    p.out->span(row.location, open.start_ns, end_ns - open.start_ns, region(p, category, open.category, open.name));
  }

  void async(char phase, const Category& category, std::string_view category_name, std::string_view name,
             std::string_view pid, std::string_view tid, yyjson_val* id, int64_t ns, yyjson_val* args) {
    if (phase == 'n') return instant(category, category_name, name, pid, tid, ns, args);
    std::string key(pid);
    key += '\n', key += category_name, key += '\n', key += raw(id), key += '\n', key += name;
    if (phase == 'b' || phase == 'S') {
      // Spans of one kind share a row; those that overlap get lanes.
      std::string of = "a" + std::string(pid) + '\n' + std::string(category_name) + '\n' + std::string(name);
      const auto [found, is_new] = rows.try_emplace(of);
      if (is_new) {
        if (current_host == kNoTable || processes[current_host].pid_text != pid) current_host = process(pid);
        found->second = {current_host, processes[current_host].out->location(name, 0, LocationKind::task)};
      }
      Process& p = processes[found->second.process];
      open_async[key].push_back(
          {ns, found->second.process, found->second.location, region(p, category, category_name, name)});
      return;
    }
    const auto found = open_async.find(key);
    if (found == open_async.end()) {
      counters["unmatched_leaves"]++;
      return;
    }
    const Async open = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) open_async.erase(found);
    Process& p = processes[open.process];
    attributes(p, category, args);
    p.out->span(open.location, open.start_ns, ns - open.start_ns, open.region);
  }

  void instant(const Category& category, std::string_view category_name, std::string_view name, std::string_view pid,
               std::string_view tid, int64_t ns, yyjson_val* args) {
    const Row row = flow_row(pid, tid, category);
    Process& p = processes[row.process];
    TableRow cells;
    if (name == "[memory]") {
      cells.start(p.tables[kAllocations]);
      cells.set(0, ns);
      size_t i, n;
      yyjson_val *key, *value;
      yyjson_obj_foreach(args, i, n, key, value) for (const Key& known : kAllocationKeys) {
        int64_t number;
        if (same_ignoring_case(raw(key), known.json) && integer(raw(value), number)) cells.set(known.column, number);
      }
    } else {
      cells.start(p.tables[kMarks]);
      cells.set(0, ns);
      cells.set(1, text_of(p, name));
      cells.set(2, text_of(p, category_name));
      if (args) {
        scratch.clear();
        append_json(scratch, args);
        cells.set(3, text_of(p, scratch));
      }
    }
    p.out->row(row.location, cells);
  }

  void counter(std::string_view name, std::string_view pid, yyjson_val* id, int64_t ns, yyjson_val* args) {
    const uint32_t number = process_of.count(std::string(pid)) ? process(pid) : host_or(pid);
    ImportedProcess& out = *processes[number].out;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(args, i, n, key, value) {
      double reading;
      if (!real(raw(value), reading)) {
        counters["unreadable_counters"]++;
        continue;
      }
      scratch.assign(name);
      if (!raw(id).empty()) scratch += " ", scratch += raw(id);
      if (n > 1 || (raw(key) != "value" && raw(key) != name)) scratch += ": ", scratch += raw(key);
      out.sample(out.metric(scratch, ""), ns, reading);
    }
  }

  void metadata(std::string_view what, std::string_view pid, std::string_view tid, yyjson_val* args) {
    const std::string_view name = raw(yyjson_obj_get(args, "name"));
    if (what == "thread_name")
      thread_names[{std::string(pid), std::string(tid)}] = name;
    else if (what == "process_name")
      process_names[std::string(pid)] = name;
  }
  std::map<std::string, std::string> process_names;

  uint32_t region(Process& p, const Category& category, std::string_view category_name, std::string_view name) {
    if (&category == &kOther) return new_region(p, category, category_name, name);  // its name is part of the region
    bool found;
    const auto beside = uint64_t(&p - processes.data()) << 8 | uint64_t(&category - kCategories);
    auto& slot = recent_regions.slot(name, beside, found);
    if (!found) slot.value = new_region(p, category, category_name, name), slot.text = name, slot.beside = beside;
    return slot.value;
  }

  uint32_t new_region(Process& p, const Category& category, std::string_view category_name, std::string_view name) {
    uint8_t paradigm = category.paradigm, role = category.role;
    if (role == STROBE_ROLE_KERNEL || role == STROBE_ROLE_COPY) return p.out->region(name, paradigm, role);
    if (paradigm == STROBE_TORCH) {
      // As our own recorder tells ranges from operators, see native/adapters/itt.cpp.
      if (starts_with(name, "enumerate(DataLoader)#"))
        role = STROBE_ROLE_WAIT;
      else if (starts_with(name, "c10d::") || starts_with(name, "gloo:") || starts_with(name, "nccl:") ||
               name == "record_param_comms")
        role = STROBE_ROLE_COLLECTIVE;
      else if (role == STROBE_ROLE_OPERATOR && name.find("::") == name.npos)
        role = STROBE_ROLE_RANGE;
      // What the program itself put there, as ProfilerStep#3: older versions report it as an operator.
      if (role == STROBE_ROLE_RANGE && (starts_with(name, "ProfilerStep#") ||
                                        (category.name == "user_annotation" && !starts_with(name, "Optimizer."))))
        paradigm = STROBE_USER;
    } else if (paradigm == STROBE_CUDA && role == STROBE_ROLE_FUNCTION) {
      if (name.find("Synchronize") != name.npos || name.find("EventQuery") != name.npos) role = STROBE_ROLE_SYNC;
    } else if (category.name == "fee") {
      // "function (file.py:12)"
      const size_t open = name.rfind(" ("), colon = name.rfind(':');
      int64_t line;
      if (open != name.npos && colon != name.npos && colon > open && name.back() == ')' &&
          integer(name.substr(colon + 1, name.size() - colon - 2), line))
        return p.out->region(name.substr(0, open), paradigm, role, name.substr(open + 2, colon - open - 2),
                             uint32_t(line));
    } else if (paradigm == STROBE_PYTHON) {
      // "file.py(12): function"
      const size_t open = name.find('('), close = name.find("): ");
      int64_t line;
      if (open != name.npos && close != name.npos && open < close &&
          integer(name.substr(open + 1, close - open - 1), line))
        return p.out->region(name.substr(close + 3), paradigm, role, name.substr(0, open), uint32_t(line));
    }
    return p.out->region(name, paradigm, role, {}, 0, &category == &kOther ? category_name : std::string_view{});
  }

  // Arguments into the side tables of the category; those that no column takes go to `arguments`, as they are.
  void attributes(Process& p, const Category& category, yyjson_val* args) {
    if (!args || !yyjson_is_obj(args)) return;
    TableRow own, collective, other;
    own.start(p.tables[category.keys ? category.keys[0].table : kArguments]);
    collective.start(p.tables[kCollectives]);
    size_t i, n, hint = 0;
    yyjson_val *key, *value;
    yyjson_obj_foreach(args, i, n, key, value) {
      const std::string_view k = raw(key);
      bool taken = false;
      // Writers keep an order: the next key is mostly the next of our list.
      for (size_t tried = 0; tried < category.key_count && !taken; tried++, hint++) {
        if (hint >= category.key_count) hint = 0;
        const Key& known = category.keys[hint];
        if (known.json.size() == k.size() && same_ignoring_case(k, known.json)) {
          taken = cell(p, own, known, value);
          break;
        }
      }
      if (!taken && category.keys && (category.gpu || category.paradigm == STROBE_TORCH))
        for (const Key& known : kCollectiveKeys)
          if (known.json.size() == k.size() && same_ignoring_case(k, known.json)) {
            taken = cell(p, collective, known, value);
            break;
          }
      if (taken) continue;
      scratch.clear();
      append_json(scratch, value);
      other.start(p.tables[kArguments]);
      other.set(0, text_of(p, k));
      other.set(1, text_of(p, scratch));
      p.out->attribute(other);
    }
    if (!own.empty()) p.out->attribute(own);
    if (!collective.empty()) p.out->attribute(collective);
  }

  bool cell(Process& p, TableRow& row, const Key& key, yyjson_val* value) {
    if (key.table == kKernels && (key.column == kGrid || key.column == kBlock)) {
      if (yyjson_arr_size(value) != 3) return false;
      int64_t sides[3];
      for (size_t i = 0; i < 3; i++)
        if (!integer(raw(yyjson_arr_get(value, i)), sides[i])) return false;
      for (size_t i = 0; i < 3; i++) row.set(key.column + i, sides[i]);
      return true;
    }
    switch (kLayouts[key.table].columns[key.column].type) {
      case CellType::integer: {
        int64_t number;
        if (!yyjson_is_raw(value) || !integer(raw(value), number)) return false;
        row.set(key.column, number);
        return true;
      }
      case CellType::real: {
        double number;
        if (!yyjson_is_raw(value) || !real(raw(value), number)) return false;
        row.set_real(key.column, number);
        return true;
      }
      case CellType::text:
        if (yyjson_is_str(value)) {
          row.set(key.column, text_of(p, raw(value)));
        } else {
          scratch.clear();
          append_json(scratch, value);
          row.set(key.column, text_of(p, scratch));
        }
        return true;
    }
    return false;
  }

  void finish(const std::string& source) {
    if (where == kStart) fail("this is no JSON trace: it is empty");
    if (where != kEnded) {
      counters[damaged ? "damaged" : "truncated"] = 1;
      counters["bytes_lost"] += text.size() - at;
    }
    if (!events_seen) fail("this JSON has no traceEvents");
    for (auto& [key, stack] : open_begins)
      if (const auto found = rows.find(key); found != rows.end())
        while (!stack.empty()) {
          Process& p = processes[found->second.process];
          p.out->count("spans_cut");
          end_of(p, found->second, stack, std::max(p.out->last_ns(), stack.back().start_ns));
        }
    for (auto& [key, opens] : open_async)
      for (const Async& open : opens) {
        Process& p = processes[open.process];
        p.out->count("spans_cut");
        p.out->span(open.location, open.start_ns, std::max<int64_t>(p.out->last_ns() - open.start_ns, 0), open.region);
      }
    for (const auto& [key, row] : rows) {
      if (key[0] != 't') continue;
      const size_t newline = key.find('\n');
      const auto named = thread_names.find({key.substr(1, newline - 1), key.substr(newline + 1)});
      if (named != thread_names.end() && !named->second.empty())
        processes[row.process].out->name_location(row.location, named->second);
    }
    report = "{\"processes\": [";
    bool first = true;
    for (Process& p : processes) {
      for (const auto& [what, n] : counters)
        if (first) p.out->count(what, n);
      std::string description = "{\"argv\": [";
      const auto named = process_names.find(p.pid_text);
      append_json_text(description, named != process_names.end() ? named->second : p.pid_text);
      description += "], \"main\": ";
      description += first ? "true" : "false";
      description += ", \"imported_from\": ";
      append_json_text(description, source);
      description += "}";
      p.out->finish({p.pid, 0, description, rank_json});
      if (!first) report += ", ";
      report += "{\"path\": ";
      append_json_text(report, p.path);
      report += ", \"pid\": " + std::to_string(p.pid) + ", \"spans\": " + std::to_string(p.out->spans()) +
                ", \"first_ns\": " + std::to_string(p.out->first_ns()) +
                ", \"last_ns\": " + std::to_string(p.out->last_ns()) + "}";
      p.out.reset();
      first = false;
    }
    report += "], \"properties\": " + properties + "}, \"counters\": {";
    for (const auto& [what, n] : counters)
      report += (report.back() == '{' ? "\"" : ", \"") + what + "\": " + std::to_string(n);
    report += "}}";
  }
};

ChromeReader::ChromeReader(std::string folder, uint32_t first_number, size_t buffer_bytes)
    : state_(std::make_unique<State>()) {
  state_->folder = std::move(folder);
  state_->next_number = first_number;
  state_->buffer_bytes = buffer_bytes;
}

ChromeReader::~ChromeReader() = default;

void ChromeReader::feed(std::string_view bytes) {
  State& s = *state_;
  if (s.damaged) return;
  s.offset += s.at;
  s.text.erase(0, s.at);
  s.at = 0;
  s.text += bytes;
  try {
    while (s.step()) {
    }
  } catch (const std::runtime_error&) {
    // What came before is sound: it is kept, and the file ends here.
    if (s.processes.empty()) throw;
    s.damaged = true;
  }
}

void ChromeReader::finish(const std::string& source) { state_->finish(source); }

const std::string& ChromeReader::report() const { return state_->report; }

}  // namespace strobe
