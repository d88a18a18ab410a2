#include "adapters/cupti/memory.h"

namespace strobe::cupti {

namespace {

constexpr size_t kMostLive = 1 << 20;

const char* migration_cause(uint32_t flags) {  // as Nsight Systems calls them
  switch (flags) {
    case 1:
      return "User prefetch";
    case 2:
      return "Page fault";
    case 3:
      return "Speculative prefetch";
    case 4:
      return "Eviction";
    case 5:
      return "Access counters";
    default:
      return "";
  }
}

const char* pool_change(PoolOperation operation) {
  switch (operation) {
    case kPoolCreated:
      return "pool created";
    case kPoolDestroyed:
      return "pool destroyed";
    case kPoolTrimmed:
      return "pool trimmed";
    default:
      return "pool";
  }
}

const char* migration(UnifiedMemoryKind kind) {
  switch (kind) {
    case kUnifiedHostToDevice:
      return "Unified HtoD";
    case kUnifiedDeviceToHost:
      return "Unified DtoH";
    default:
      return "Unified DtoD";
  }
}

std::string number_unless(uint32_t value, uint32_t none) { return value == none ? "" : std::to_string(value); }

}  // namespace

bool Memory::add(const Activity& record, std::vector<DeviceSpan>& out) {
  switch (record.kind) {
    case kMemory:
      return allocated(reinterpret_cast<const MemoryRecord&>(record), out), true;
    case kMemoryPool:
      return pool_changed(reinterpret_cast<const MemoryPoolRecord&>(record), out), true;
    case kUnifiedMemoryCounter:
      return unified(reinterpret_cast<const UnifiedMemoryRecord&>(record), out), true;
    default:
      return false;
  }
}

DeviceSpan& Memory::row_of(uint32_t device, uint32_t context, uint32_t kind, uint32_t name, uint32_t correlation,
                           uint64_t address, uint64_t ns, std::vector<DeviceSpan>& out) {
  // Device type 1: a GPU, as PyTorch counts. Pinned memory of the host is there, too: it is the GPU's driver that has
  // it.
  const std::string shared = "1," + std::to_string(device) + ',' + number_unless(context, kNoStream) + ',' +
                             std::to_string(sink_.text(memory_name(kind))) + ',' + std::to_string(name);
  uint32_t& text = texts_[shared];
  if (!text) text = sink_.text(shared.c_str());
  DeviceSpan& to = out.emplace_back(DeviceSpan{device, context, kMemoryStream, correlation, {}});
  to.memory_kind = kind;
  to.span.row_kind = STROBE_ROW_ALLOCATION;
  to.span.start_ns = to.span.end_ns = to.span.launched_ns = int64_t(ns);
  to.span.values[0] = int64_t(address);
  to.span.values[2] = to.span.values[3] = STROBE_NOTHING;
  to.span.values[4] = STROBE_TWO(correlation, text);
  to.span.values[5] = STROBE_NOTHING;
  return to;
}

void Memory::allocated(const MemoryRecord& r, std::vector<DeviceSpan>& out) {
  if (r.operation != kAllocation && r.operation != kRelease) return;
  const uint32_t name = r.name ? sink_.text(sink_.kernel_name(r.name).c_str()) : 0;
  DeviceSpan& to = row_of(r.device, r.context, r.memory_kind, name, r.correlation, r.address, r.timestamp, out);
  to.operation = r.operation;
  to.span.values[1] = r.operation == kAllocation ? int64_t(r.bytes) : -int64_t(r.bytes);
  if (r.program_counter) to.span.values[5] = int64_t(r.program_counter);
  // The size of a pool of another process is not told.
  if (r.pool_type == kLocalPool) to.pool = r.pool_address, to.pool_bytes = int64_t(r.pool_size);
}

void Memory::pool_changed(const MemoryPoolRecord& r, std::vector<DeviceSpan>& out) {
  if (r.type != kLocalPool) return;
  const uint32_t kind = has_managed_ && r.is_managed ? kManaged : kDeviceMemory;
  DeviceSpan& to = row_of(r.device, kNoStream, kind, sink_.text(pool_change(r.operation)), r.correlation, r.address,
                          r.timestamp, out);
  to.span.values[1] = 0;
  to.pool = r.address, to.pool_bytes = r.operation == kPoolDestroyed ? 0 : int64_t(r.size);
}

void Memory::unified(const UnifiedMemoryRecord& r, std::vector<DeviceSpan>& out) {
  if (r.counter == kCpuPageFault) cpu_page_faults_++;
  if (r.counter == kGpuPageFaults) gpu_page_faults_ += r.value;
  if (r.counter != kUnifiedHostToDevice && r.counter != kUnifiedDeviceToHost && r.counter != kUnifiedDeviceToDevice)
    return;
  const uint32_t device = r.counter == kUnifiedDeviceToHost ? r.source : r.destination;
  const char* managed = memory_name(kManaged);
  // As the text of other copies is; last the cause.
  std::string shared = std::to_string(device) + ",,";
  for (const char* word : {migration(r.counter), managed, managed}) shared += ',' + std::to_string(sink_.text(word));
  shared += ',' + number_unless(r.source, kCpuDevice) + ",," + number_unless(r.destination, kCpuDevice) + ",,";
  if (const char* cause = migration_cause(r.flags); *cause) shared += std::to_string(sink_.text(cause));
  uint32_t& text = texts_[shared];
  if (!text) text = sink_.text(shared.c_str());
  const std::string name = std::string("Memcpy ") + migration(r.counter) + " (" + managed + " -> " + managed + ")";
  DeviceSpan& to = out.emplace_back(DeviceSpan{device, 0, kUnifiedMemoryStream, 0, {}});
  to.span.region = sink_.region(name.c_str(), STROBE_ROLE_COPY), to.span.row_kind = STROBE_ROW_COPY;
  to.span.start_ns = int64_t(r.start), to.span.end_ns = int64_t(r.end);
  to.span.values[0] = STROBE_TWO(STROBE_NOTHING_32, text);
  to.span.values[1] = STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32);
  to.span.values[2] = STROBE_NOTHING;
  to.span.values[3] = int64_t(r.value);
  to.span.values[4] = STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32);
  to.span.values[5] = int64_t(r.address);
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
  if (const auto known = live_.find(address); row.operation != kNoMemoryOperation && known != live_.end()) {
    // Some releases may not say how much that was.
    if (row.operation == kRelease) values[1] = -known->second.bytes;
    forget(known);  // or its release was not told
  }
  Sums& sums = sums_[place];
  if (row.operation == kAllocation && live_.size() < kMostLive) {
    live_[address] = {place, values[1], row.pool != 0};
    sums.used += values[1];
    if (!row.pool) sums.outside_pools += values[1];
  }
  values[2] = sums.used;
  if (sums.has_pools) values[3] = sums.outside_pools + sums.pools;
}

}  // namespace strobe::cupti
