#include "structure/cells.h"

#include <algorithm>

#include "core/format/blocks.h"
#include "include/strobe.h"
#include "structure/region_names.h"

namespace strobe::structure {

Kind kind_of_region(std::string_view name, uint8_t paradigm, uint8_t role) {
  // Work of collectives on the host, by the names that PyTorch gives it; what only asks for it (c10d::) is an operator.
  constexpr std::string_view kCollectives[] = {"nccl:", "gloo:", "mpi:", "ucc:", "hccl:", "xccl:"};
  const auto collective = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (is_of_ranks(paradigm) || role == STROBE_ROLE_P2P || role == STROBE_ROLE_COLLECTIVE ||
      std::ranges::any_of(kCollectives, collective))
    return kCommunication;
  if (paradigm == STROBE_CUDA || paradigm == STROBE_HIP || paradigm == STROBE_OPENCL || paradigm == STROBE_ACCELERATOR)
    return role == STROBE_ROLE_SYNC ? kGpuWait : kGpuCall;
  // Code of its constructs may run on the host.
  if (paradigm == STROBE_OPENACC && role != STROBE_ROLE_RANGE) return role == STROBE_ROLE_SYNC ? kGpuWait : kGpuCall;
  // What is waited for, or what else is done, in ranges that hold operators is not known from them. An update is
  // Python around its operators: a profile with stacks shows that, one without them must not tell another story.
  const int8_t part = part_of_region(name, paradigm);
  if (role == STROBE_ROLE_DATA || part == kDataWait || part == kOptimizer || is_backward_pass(name)) return kHost;
  if (paradigm == STROBE_TORCH || paradigm == STROBE_ONEDNN) return kOperators;
  const bool of_program = is_function(paradigm) || paradigm == STROBE_SELF || paradigm == STROBE_OTHER;
  return role == STROBE_ROLE_OPERATOR && !of_program ? kOperators : kHost;
}

int64_t Cells::part_ns(int part) const {
  int64_t sum = 0;
  for (int64_t each : ns[part]) sum += each;
  return sum;
}

void KindTimeline::change(int64_t ns, Kind kind) {
  if (kind == kind_) return;
  until(ns);
  kind_ = kind;
  since_ns_ = ns;
}

std::span<const KindInterval> KindTimeline::until(int64_t ns) {
  const auto known = [this] { return std::span<const KindInterval>(intervals_).subspan(first_); };
  if (kind_ == kHost || since_ns_ >= ns) return known();
  if (!known().empty() && intervals_.back().end_ns == since_ns_ && intervals_.back().kind == kind_) {
    intervals_.back().end_ns = ns;
  } else {
    if (known().size() >= most_) first_ += most_ / 2;
    if (first_ > intervals_.size() / 2) {
      intervals_.erase(intervals_.begin(), intervals_.begin() + ptrdiff_t(first_));
      first_ = 0;
    }
    intervals_.push_back({since_ns_, ns, kind_});
  }
  since_ns_ = ns;
  return known();
}

void KindTimeline::forget(int64_t before_ns) {
  const auto known = std::span<const KindInterval>(intervals_).subspan(first_);
  first_ += size_t(std::ranges::upper_bound(known, before_ns, {}, &KindInterval::end_ns) - known.begin());
}

Cells cells_of(std::span<const PartInterval> parts, std::span<const KindInterval> kinds, int64_t start_ns,
               int64_t end_ns) {
  Cells cells;
  auto kind = std::ranges::upper_bound(kinds, start_ns, {}, &KindInterval::end_ns);
  const auto add = [&](int64_t from, int64_t until, Part part, bool waits = false) {
    int64_t left = until - from;
    if (waits) {
      cells.ns[part][kWaiting] += left;
      return;
    }
    for (; kind != kinds.end() && kind->start_ns < until; ++kind) {
      const int64_t shared = std::min(kind->end_ns, until) - std::max(kind->start_ns, from);
      if (shared > 0) cells.ns[part][kind->kind] += shared, left -= shared;
      if (kind->end_ns > until) break;
    }
    cells.ns[part][kHost] += left;
  };
  int64_t last_ns = start_ns;
  for (const PartInterval& each : parts) {
    const int64_t from = std::max(each.start_ns, last_ns), until = std::min(each.end_ns, end_ns);
    if (until <= from) continue;
    if (from > last_ns) add(last_ns, from, kRest);
    add(from, until, each.part, each.waits);
    last_ns = until;
  }
  if (end_ns > last_ns) add(last_ns, end_ns, kRest);
  return cells;
}

void CellColumns::put(int column, size_t row, int64_t ns) {
  if (ns == 0) return;
  if (columns_[column].size() <= row) columns_[column].resize(row + 1, 0);
  columns_[column][row] = ns;
}

void CellColumns::add(const Cells& cells) {
  for (int part = 0; part < kParts; part++)
    for (int kind = 0; kind < kHost; kind++) put(part * kHost + kind, count_, cells.ns[part][kind]);
  count_++;
}

void CellColumns::limit(size_t row, int part, int64_t part_ns) {
  int64_t over = -part_ns;
  std::vector<int64_t>* largest = nullptr;
  for (int kind = 0; kind < kHost; kind++) {
    std::vector<int64_t>& column = columns_[part * kHost + kind];
    if (row >= column.size()) continue;
    over += column[row];
    if (!largest || column[row] > (*largest)[row]) largest = &column;
  }
  if (over > 0 && largest) (*largest)[row] = std::max<int64_t>(0, (*largest)[row] - over);
}

void CellColumns::clear() {
  for (auto& column : columns_) column.clear();
  count_ = 0;
}

namespace {

// The kind kWaiting came later: its columns are behind the others, and this bit tells that it was known.
constexpr uint32_t kWaitingKnown = 1u << 31;
static_assert(CellColumns::kColumns < 32);

// Which column is the i-th in a payload.
constexpr int stored(int i) {
  constexpr int kOthers = int{kParts} * int{kWaiting};
  return i < kOthers ? i / kWaiting * kHost + i % kWaiting : (i - kOthers) * kHost + kWaiting;
}

}  // namespace

void CellColumns::append(std::string& out) const {
  uint32_t there = kWaitingKnown;
  for (int i = 0; i < kColumns; i++)
    if (!columns_[stored(i)].empty()) there |= 1u << i;
  out.append(reinterpret_cast<const char*>(&there), sizeof there);
  for (int i = 0; i < kColumns; i++) {
    const std::vector<int64_t>& column = columns_[stored(i)];
    if (column.empty()) continue;
    std::vector<uint64_t> values(count_, 0);
    std::ranges::copy(column, values.begin());
    append_column(out, values);
  }
}

bool CellColumns::read(ByteReader& payload, std::span<const int64_t> data_ns, uint32_t skipped) {
  const auto count = uint32_t(data_ns.size());
  const uint32_t there = payload.u32();
  const bool waiting_known = there & kWaitingKnown;
  std::vector<uint64_t> values;
  for (int i = 0; i < kColumns; i++) {
    if (!(there >> i & 1)) continue;
    if (!read_column(payload, count, values)) return false;
    if (!waiting_known && i < kWaiting) continue;  // while data were waited for
    for (uint32_t row = skipped; row < count; row++) put(stored(i), count_ + row - skipped, int64_t(values[row]));
  }
  for (uint32_t row = skipped; row < count && !waiting_known; row++)
    put(int{kDataWait} * kHost + kWaiting, count_ + row - skipped, data_ns[row]);
  count_ += count - skipped;
  return payload.ok;
}

}  // namespace strobe::structure
