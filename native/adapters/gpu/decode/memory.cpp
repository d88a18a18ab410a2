#include "adapters/gpu/decode/memory.h"

namespace strobe::gpu {

namespace {

constexpr size_t kMostLive = 1 << 20;

std::string number_unless(uint32_t value, uint32_t none) { return value == none ? "" : std::to_string(value); }

}  // namespace

void Memory::changed(const MemoryEvent& event, MemoryChange change, int64_t bytes, uint64_t program_counter,
                     uint64_t pool, int64_t pool_bytes, std::vector<DeviceSpan>& out) {
  // Device type 1: a GPU, as PyTorch counts. Pinned memory of the host is there, too: it is the GPU's driver that has
  // it.
  const uint32_t kind = sink_.text(event.kind);
  const std::string shared = "1," + std::to_string(event.device) + ',' + number_unless(event.context, kNoContext) +
                             ',' + std::to_string(kind) + ',' + std::to_string(event.name);
  uint32_t& text = texts_[shared];
  if (!text) text = sink_.text(shared.c_str());
  DeviceSpan& to = out.emplace_back(DeviceSpan{event.device, event.context, kMemoryStream, event.correlation, {}});
  to.change = change, to.memory_kind = kind, to.pool = pool, to.pool_bytes = pool_bytes;
  to.span.row_kind = STROBE_ROW_ALLOCATION;
  to.span.start_ns = to.span.end_ns = to.span.launched_ns = event.ns;
  to.span.values[0] = int64_t(event.address);
  to.span.values[1] = change == kReleased ? -bytes : bytes;
  to.span.values[2] = to.span.values[3] = STROBE_NOTHING;
  to.span.values[4] = STROBE_TWO(event.correlation, text);
  to.span.values[5] = number_or_nothing(program_counter);
}

void Memory::migrated(const Migration& m, const char* kind, std::vector<DeviceSpan>& out) {
  // As the text of other copies is; last the cause.
  std::string shared = std::to_string(m.device) + ",,";
  for (const char* word : {m.direction, kind, kind}) shared += ',' + std::to_string(sink_.text(word));
  shared += ',' + number_unless(m.source, kNoDevice) + ",," + number_unless(m.destination, kNoDevice) + ",,";
  if (*m.cause) shared += std::to_string(sink_.text(m.cause));
  uint32_t& text = texts_[shared];
  if (!text) text = sink_.text(shared.c_str());
  const std::string name = std::string("Memcpy ") + m.direction + " (" + kind + " -> " + kind + ")";
  DeviceSpan& to = add_work(out, m.device, 0, kUnifiedMemoryStream, 0, sink_.region(name.c_str(), STROBE_ROLE_COPY),
                            STROBE_ROW_COPY, uint64_t(m.start_ns), uint64_t(m.end_ns), text);
  set_copy(to, 0, 0, 0, m.bytes, STROBE_NOTHING_32, int64_t(m.address));
  to.span.values[0] = STROBE_TWO(STROBE_NOTHING_32, text);
}

void Memory::forget(std::unordered_map<uint64_t, Live>::iterator live) {
  const Live& known = live->second;
  Sums& sums = sums_[known.place];
  sums.used -= known.bytes;
  if (!known.in_pool) sums.outside_pools -= known.bytes;
  live_.erase(live);
}

void Memory::account(DeviceSpan& row) {
  auto& values = row.span.values;
  const Place place{row.device, row.memory_kind};
  if (row.pool) {
    Pool& pool = pools_.try_emplace(row.pool, Pool{place, 0}).first->second;
    Sums& sums = sums_[pool.place];
    sums.has_pools = true;
    sums.pools += row.pool_bytes - pool.bytes;
    pool.bytes = row.pool_bytes;
    if (!row.pool_bytes) pools_.erase(row.pool);
  }
  const auto address = uint64_t(values[0]);
  if (const auto known = live_.find(address); row.change != kNoMemoryChange && known != live_.end()) {
    // Some releases have no size.
    if (row.change == kReleased) values[1] = -known->second.bytes;
    forget(known);  // or its release was not reported
  }
  Sums& sums = sums_[place];
  if (row.change == kAllocated && live_.size() < kMostLive) {
    live_[address] = {place, values[1], row.pool != 0};
    sums.used += values[1];
    if (!row.pool) sums.outside_pools += values[1];
  }
  values[2] = sums.used;
  if (sums.has_pools) values[3] = sums.outside_pools + sums.pools;
}

}  // namespace strobe::gpu
