#include "formats/perfetto/perfetto_clocks.h"

#include <algorithm>
#include <deque>
#include <set>

namespace strobe {

namespace {
constexpr size_t kMostClocks = 64;        // in one snapshot
constexpr size_t kMostMoments = 1 << 16;  // of a pair of clocks; every other one goes where there are more
constexpr size_t kMostLocals = 1 << 16;

// The newest moment that is not later than `ns`, else the first one.
int64_t moved(const std::vector<std::pair<int64_t, int64_t>>& moments, int64_t ns) {
  auto after = std::upper_bound(moments.begin(), moments.end(), std::pair{ns, INT64_MAX});
  if (after != moments.begin()) --after;
  return int64_t(uint64_t(ns) + uint64_t(after->second) - uint64_t(after->first));
}
}  // namespace

void PerfettoClocks::snapshot(uint32_t sequence, std::string_view message) {
  struct Reading {
    uint32_t clock = 0;
    int64_t ns = 0;
    bool incremental = false;
    int64_t unit_ns = 1;
  };
  std::vector<Reading> readings;
  protobuf::Field field, inner;
  protobuf::Message outer(message);
  while (outer.next(field)) {
    if (field.number == 2 && field.type == protobuf::kVarint && !known_) {
      trace_clock_ = uint32_t(field.value), known_ = true;
      paths_.clear();
    }
    if (field.number != 1 || field.type != protobuf::kBytes || readings.size() >= kMostClocks) continue;
    Reading at;
    uint64_t time = 0;
    for (protobuf::Message clock(field.bytes); clock.next(inner);) {
      if (inner.type != protobuf::kVarint) continue;
      if (inner.number == 1) at.clock = uint32_t(inner.value);
      if (inner.number == 2) time = inner.value;
      if (inner.number == 3) at.incremental = inner.value != 0;
      if (inner.number == 4 && inner.value) at.unit_ns = inner.whole();
    }
    at.ns = int64_t(time * uint64_t(at.unit_ns));
    readings.push_back(at);
  }
  if (readings.size() > 1) any_snapshot_ = true;
  std::vector<std::pair<uint32_t, int64_t>> shared;
  for (const Reading& each : readings)
    if (!of_sequence(each.clock)) {
      shared.push_back({each.clock, each.ns});
      unit_ns_[each.clock] = each.unit_ns;
    }
  for (const Reading& each : readings) {
    if (!of_sequence(each.clock)) continue;
    if (locals_.size() >= kMostLocals && !locals_.count(key(sequence, each.clock))) continue;
    locals_[key(sequence, each.clock)] = {each.incremental, each.unit_ns, each.ns, each.ns, shared};
  }
  for (const auto& [a, a_ns] : shared)
    for (const auto& [b, b_ns] : shared) {
      if (a == b) continue;
      const auto [at, is_new] = offsets_.try_emplace({a, b});
      if (is_new) paths_.clear();
      Offsets& moments = at->second;
      if (moments.size() >= kMostMoments) {
        size_t kept = 0;
        for (size_t i = 0; i < moments.size(); i += 2) moments[kept++] = moments[i];
        moments.resize(kept);
      }
      const std::pair moment{a_ns, b_ns};
      moments.insert(std::upper_bound(moments.begin(), moments.end(), moment), moment);
    }
}

const std::vector<uint32_t>& PerfettoClocks::path(uint32_t clock) {
  if (paths_.size() > 4096) paths_.clear();  // of clocks that nobody defined
  const auto [found, is_new] = paths_.try_emplace(clock);
  if (!is_new) return found->second;
  std::map<uint32_t, uint32_t> before{{clock, clock}};
  for (std::deque<uint32_t> next{clock}; !next.empty() && !before.count(trace_clock_); next.pop_front())
    for (const auto& [pair, moments] : offsets_)
      if (pair.first == next.front() && before.try_emplace(pair.second, pair.first).second) next.push_back(pair.second);
  if (before.count(trace_clock_))
    for (uint32_t at = trace_clock_;; at = before[at]) {
      found->second.insert(found->second.begin(), at);
      if (at == clock) break;
    }
  return found->second;
}

bool PerfettoClocks::to_trace_clock(uint32_t clock, int64_t ns, int64_t& out_ns) {
  out_ns = ns;
  if (clock == trace_clock_) return true;
  if (!any_snapshot_) {
    // A trace without snapshots has one clock only: what its first packet uses.
    if (known_) return false;
    trace_clock_ = clock, known_ = true;
    return true;
  }
  const std::vector<uint32_t>& way = path(clock);
  if (way.empty()) return false;
  for (size_t i = 1; i < way.size(); i++) out_ns = moved(offsets_[{way[i - 1], way[i]}], out_ns);
  return true;
}

bool PerfettoClocks::translate(uint32_t sequence, uint32_t clock, uint64_t time, int64_t& out_ns) {
  if (!of_sequence(clock)) {
    const auto unit = unit_ns_.empty() ? unit_ns_.end() : unit_ns_.find(clock);
    const int64_t unit_ns = unit == unit_ns_.end() ? 1 : unit->second;
    return to_trace_clock(clock, int64_t(time * uint64_t(unit_ns)), out_ns);
  }
  const auto found = locals_.find(key(sequence, clock));
  if (found == locals_.end()) return false;
  Local& local = found->second;
  uint64_t ns = time * uint64_t(local.unit_ns);
  if (local.incremental) {
    ns += uint64_t(local.at_ns);
    local.at_ns = int64_t(ns);
  }
  const uint64_t since = ns - uint64_t(local.snapshot_ns);
  for (const auto& [other, other_ns] : local.together)
    if (other == trace_clock_) {
      out_ns = int64_t(uint64_t(other_ns) + since);
      return true;
    }
  for (const auto& [other, other_ns] : local.together)
    if (to_trace_clock(other, int64_t(uint64_t(other_ns) + since), out_ns)) return true;
  return false;
}

bool PerfettoClocks::unix_base(int64_t& out_ns) const {
  if (trace_clock_ == kRealtime) {
    out_ns = 0;
    return true;
  }
  const auto found = offsets_.find({trace_clock_, kRealtime});
  if (found == offsets_.end() || found->second.empty()) return false;
  return !__builtin_sub_overflow(found->second.front().second, found->second.front().first, &out_ns);
}

}  // namespace strobe
