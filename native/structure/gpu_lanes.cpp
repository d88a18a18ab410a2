#include "structure/gpu_lanes.h"

#include <algorithm>
#include <utility>

#include "core/format/blocks.h"
#include "include/strobe.h"
#include "structure/communicating_names.generated.h"

namespace strobe::structure {

namespace {

bool has(std::string_view name, std::string_view word) {  // in any case
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 'a' - 'A' : a) == b; };
  return std::search(name.begin(), name.end(), word.begin(), word.end(), same) != name.end();
}

}  // namespace

GpuKind gpu_kind_of_region(std::string_view name, uint8_t role) {
  if (role == STROBE_ROLE_COPY) return kCopy;
  if (role != STROBE_ROLE_KERNEL) return kNoGpuWork;
  const auto has_all = [name](const auto& words) {
    return std::ranges::all_of(words, [name](std::string_view word) { return has(name, word); });
  };
  return std::ranges::any_of(kCommunicating, has_all) ? kGpuCommunication : kComputation;
}

int64_t GpuLane::end_ns() const {
  int64_t end = start_ns;
  for (const int64_t each : ns) end += each;
  return end;
}

// --- columns

void GpuLaneColumns::add(const GpuLane& lane) {
  const size_t row = starts_ns_.size();
  starts_ns_.push_back(lane.start_ns);
  for (int set = 0; set < kGpuSets; set++) {
    if (!columns_[set].empty() || lane.ns[set]) columns_[set].resize(row + 1, 0);
    if (lane.ns[set]) columns_[set][row] = lane.ns[set];
  }
}

GpuLane GpuLaneColumns::lane(size_t row) const {
  GpuLane lane{starts_ns_[row], {}};
  for (int set = 0; set < kGpuSets; set++)
    if (!columns_[set].empty()) lane.ns[set] = columns_[set][row];
  return lane;
}

void GpuLaneColumns::clear() {
  starts_ns_.clear();
  for (auto& column : columns_) column.clear();
}

// Columns: start minus the end of the lane before, and of each set that is there; which are, comes first.
void GpuLaneColumns::append(std::string& out) const {
  uint8_t there = 0;
  std::vector<uint64_t> values;
  int64_t end_ns = 0;
  for (size_t row = 0; row < size(); row++) {
    const GpuLane each = lane(row);
    values.push_back(zigzag(each.start_ns - end_ns));
    end_ns = each.end_ns();
  }
  for (int set = 0; set < kGpuSets; set++)
    if (!columns_[set].empty()) there |= uint8_t(1u << set);
  out.push_back(char(there));
  append_column(out, values);
  for (const auto& column : columns_)
    if (!column.empty()) append_column(out, values = {column.begin(), column.end()});
}

bool GpuLaneColumns::read(ByteReader& payload, uint32_t count, uint32_t skipped) {
  const uint8_t there = payload.u8();
  std::vector<uint64_t> starts, columns[kGpuSets];
  if (!read_column(payload, count, starts)) return false;
  for (int set = 0; set < kGpuSets; set++)
    if (there >> set & 1 && !read_column(payload, count, columns[set])) return false;
  int64_t end_ns = 0;
  for (uint32_t row = 0; row < count; row++) {
    GpuLane lane{end_ns + unzigzag(starts[row]), {}};
    for (int set = 0; set < kGpuSets; set++)
      if (!columns[set].empty()) lane.ns[set] = int64_t(columns[set][row]);
    end_ns = lane.end_ns();
    if (row >= skipped) add(lane);
  }
  return true;
}

std::string encode_gpu_lanes(int64_t device, const GpuLaneColumns& lanes) {
  Writer w;
  w.u64(uint64_t(device));
  lanes.append(w.bytes);
  return std::move(w.bytes);
}

bool decode_gpu_lanes(std::string_view payload, uint32_t first, uint32_t count,
                      std::map<int64_t, GpuLanes::Known>& into) {
  ByteReader c{payload};
  const auto [at, fresh] = into.try_emplace(int64_t(c.u64()));
  auto& [known_first, lanes] = at->second;
  if (fresh) known_first = first;
  const uint64_t next = known_first + lanes.size();
  return c.ok && first <= next && lanes.read(c, count, uint32_t(std::min<uint64_t>(count, next - first)));
}

// --- one GPU, in order of time

class GpuLanes::Gpu {
 public:
  Gpu(Known& known, uint64_t first_step) : next(first_step), known_(known) { known.first = uint32_t(first_step); }

  void add(Source& source, const GpuActivity& activity) {
    if (source.first == source.waiting.size()) source.waiting.clear(), source.first = 0;
    source.waiting.push_back(activity);
    if (source.waiting.size() == 1) put_in_order(source);
    waiting_++;
  }
  void proceed(const GpuLanes& all, int64_t complete_ns) {
    while (!in_order_.empty()) {
      Source& source = *in_order_.back().source;
      const GpuActivity& activity = source.waiting[source.first];
      const bool known = activity.start_ns < complete_ns && (all.ended_ || activity.launched_ns < all.decided_ns_);
      if (!known && waiting_ <= kMostWaiting) break;
      take(all, activity);
      waiting_--;
      in_order_.pop_back();
      if (++source.first == source.waiting.size()) continue;
      put_in_order(source);
      if (source.first < 4096 || source.first < source.waiting.size() / 2) continue;
      source.waiting.erase(source.waiting.begin(), source.waiting.begin() + ptrdiff_t(source.first));
      source.first = 0;
    }
    while (!all.ended_ && all.end_step() - next > kMostSteps) end_row(all);
  }
  void finish(const GpuLanes& all) {
    while (next < all.end_step()) end_row(all);
  }

  uint64_t next;  // the step whose lane is open, or will be
  std::vector<std::unique_ptr<Source>> sources;

 private:
  struct Next {
    int64_t start_ns, launched_ns;
    Source* source;
    bool operator<(const Next& other) const {
      return start_ns != other.start_ns ? start_ns < other.start_ns : launched_ns < other.launched_ns;
    }
  };
  void put_in_order(Source& source) {
    const GpuActivity& activity = source.waiting[source.first];
    insert(in_order_, {activity.start_ns, activity.launched_ns, &source});
  }
  // The least is the last. There are few.
  template <class Value>
  static void insert(std::vector<Value>& in_order, const Value& value) {
    in_order.push_back(value);
    size_t at = in_order.size() - 1;
    for (; at > 0 && in_order[at - 1] < value; at--) in_order[at] = in_order[at - 1];
    in_order[at] = value;
  }

  // The next activity in order of start.
  void take(const GpuLanes& all, const GpuActivity& activity) {
    while (closing_ && activity.start_ns >= done_ns_) end_row(all);
    cross(all, activity.launched_ns, activity.start_ns);
    go_on(activity.start_ns);
    note(activity);
    if (activity.end_ns <= now_ns_) return;
    insert(running_, {activity.end_ns, activity.kind});
    if (count_[activity.kind]++ == 0) set_ |= 1 << activity.kind;
  }
  // Lanes end and begin where something starts that was launched then.
  void cross(const GpuLanes& all, int64_t launched_ns, int64_t start_ns) {
    while (!closing_ && next < all.end_step()) {
      if (!open_) {
        if (launched_ns < all.step(next).start_ns) return;
        go_on(start_ns);
        open();
      }
      if (launched_ns < all.step(next).end_ns) return;
      uint64_t last = next;
      while (all.follows(last) && all.step(last + 1).end_ns <= launched_ns) last++;
      const bool row_ends = all.is_last(last);
      if (row_ends) done_ns_ = std::max({now_ns_, done_ns_, done_before(all.step(last).end_ns)});
      while (next < last) end_lane(row_ends ? std::min(start_ns, done_ns_) : start_ns, false);
      closing_ = row_ends && done_ns_ > start_ns;
      if (!closing_) end_lane(row_ends ? done_ns_ : start_ns, row_ends);
    }
  }
  // The last lane of a row ends; what was launched in the next one meanwhile begins now.
  void end_row(const GpuLanes& all) {
    end_lane(std::max(now_ns_, done_ns_), true);
    closing_ = false;
    replayed_ = std::exchange(meanwhile_, {});
    std::ranges::reverse(replayed_);
    for (; !replayed_.empty(); replayed_.pop_back()) {
      const GpuActivity& activity = replayed_.back();
      cross(all, activity.launched_ns, now_ns_);
      note(activity);
    }
  }
  void note(const GpuActivity& activity) {
    if (closing_)
      meanwhile_.push_back(activity);
    else
      done_ns_ = std::max(done_ns_, activity.end_ns);
  }
  // When that is done which was launched before, of what is not among the done.
  int64_t done_before(int64_t launched_ns) const {
    int64_t done = 0;
    const auto add = [&](const GpuActivity& each) {
      if (each.launched_ns < launched_ns) done = std::max(done, each.end_ns);
    };
    for (const auto& source : sources)
      std::for_each(source->waiting.begin() + ptrdiff_t(source->first), source->waiting.end(), add);
    std::ranges::for_each(replayed_, add);
    return done;
  }
  void open() {
    open_ = true;
    lane_ = {now_ns_, {}};
  }
  void end_lane(int64_t ns, bool row_ends) {
    go_on(ns);
    if (!open_) open();  // nothing was launched
    known_.lanes.add(lane_);
    next++;
    open();
    open_ = !row_ends;
  }
  void go_on(int64_t until_ns) {
    while (!running_.empty() && running_.back().first <= until_ns) {
      const auto [end_ns, kind] = running_.back();
      pass(end_ns);
      if (--count_[kind] == 0) set_ &= ~(1 << kind);
      running_.pop_back();
    }
    pass(until_ns);
  }
  void pass(int64_t until_ns) {
    if (until_ns <= now_ns_) return;
    if (open_) lane_.ns[set_] += until_ns - now_ns_;
    now_ns_ = until_ns;
  }

  Known& known_;
  std::vector<Next> in_order_;  // by what waits first
  size_t waiting_ = 0;
  std::vector<std::pair<int64_t, GpuKind>> running_;  // by end
  size_t count_[kGpuKinds] = {};                      // of these
  int set_ = 0;
  int64_t now_ns_ = 0;
  // When all that has begun is done; while a row is closing, all that was launched before its end.
  int64_t done_ns_ = 0;
  bool closing_ = false;                           // the last lane of a row is open, and no other step's can begin
  std::vector<GpuActivity> meanwhile_, replayed_;  // what has begun since
  bool open_ = false;
  GpuLane lane_;
};

// --- all GPUs

GpuLanes::GpuLanes() = default;
GpuLanes::~GpuLanes() = default;

GpuLanes::Source& GpuLanes::source(int64_t device) {
  std::unique_ptr<Gpu>& gpu = gpus_[device];
  if (!gpu) gpu = std::make_unique<Gpu>(known_[device], first_step_);
  return *gpu->sources.emplace_back(new Source{*gpu, {}, 0});
}

void GpuLanes::add(Source& source, const GpuActivity& activity) { source.gpu.add(source, activity); }

void GpuLanes::add_step(int64_t start_ns, int64_t end_ns) {
  steps_.push_back({start_ns, end_ns});
  decided_ns_ = end_ns;
}

void GpuLanes::proceed(int64_t complete_ns) {
  for (auto& [device, gpu] : gpus_) gpu->proceed(*this, complete_ns);
  forget_steps(complete_ns);
}

void GpuLanes::finish() {
  end_steps();
  proceed(INT64_MAX);
  for (auto& [device, gpu] : gpus_) gpu->finish(*this);
}

// Those that all GPUs have passed; without one, those that nothing can come of any more.
void GpuLanes::forget_steps(int64_t complete_ns) {
  uint64_t passed = end_step();
  for (auto& [device, gpu] : gpus_) passed = std::min(passed, gpu->next);
  while (first_step_ < passed && (!gpus_.empty() || steps_.front().end_ns < complete_ns))
    steps_.pop_front(), first_step_++;
}

size_t GpuLanes::most_known() const {
  size_t most = 0;
  for (const auto& [device, known] : known_) most = std::max(most, known.lanes.size());
  return most;
}

void GpuLanes::take_known() {
  for (auto& [device, known] : known_) known.first += uint32_t(known.lanes.size()), known.lanes.clear();
}

}  // namespace strobe::structure
