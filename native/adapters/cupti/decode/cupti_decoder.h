// cupti_decoder.h - CUPTI's records.
#pragma once
#include <stdint.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/cupti/abi.h"
#include "adapters/gpu/decode/decoder.h"

namespace strobe::cupti {

using gpu::DeviceSpan;
static_assert(uint32_t(kKinds) == gpu::kKinds);

class Decoder final : public gpu::Decoder {
 public:
  Decoder(gpu::Sink& sink, const gpu::RecordBytes& record_bytes);
  void read(const char* bytes, size_t size, std::vector<DeviceSpan>& out) override;
  void add(const Activity& record, std::vector<DeviceSpan>& out);
  void forget_names() override { kernels_.clear(); }

 private:
  // What the launches of a configuration share, as their records have it.
  struct Launch {
    explicit Launch(const KernelRecord& record, int64_t local_memory_total);
    uint64_t words[9];
    bool operator==(const Launch&) const = default;
  };
  struct HashLaunch {
    size_t operator()(const Launch& launch) const;
  };
  struct Copy {
    uint32_t values[10];
    bool operator==(const Copy&) const = default;
  };
  struct HashCopy {
    size_t operator()(const Copy& copy) const;
  };
  // Whether records of a kind have a field that ends there.
  bool has(Kind kind, size_t end) const { return end <= record_bytes_[kind]; }
  void kernel(const KernelRecord& record, std::vector<DeviceSpan>& out);
  uint32_t launch_text(const KernelRecord& record, int64_t local_memory_total) const;
  void graph(const GraphTraceRecord& record, std::vector<DeviceSpan>& out);
  void call(const ApiRecord& record, std::vector<DeviceSpan>& out);
  void device(const DeviceRecord& record);
  int64_t priority_of(uint32_t context, uint32_t stream) const;
  template <class Record>
  void copied(const Record& record, uint32_t region, const Copy& copy, int64_t set_value, std::vector<DeviceSpan>& out);
  uint32_t copy_region(const Copy& copy);
  void allocated(const MemoryRecord& record, std::vector<DeviceSpan>& out);
  void pool_changed(const MemoryPoolRecord& record, std::vector<DeviceSpan>& out);
  void migrated(const UnifiedMemoryRecord& record, std::vector<DeviceSpan>& out);
  void waited(const SynchronizationRecord& record);
  void event(const CudaEventRecord& record);

  const gpu::RecordBytes record_bytes_;
  const bool has_local_total_, has_priority_, has_source_node_, has_managed_, has_event_device_, has_event_number_;
  std::unordered_map<const char*, uint32_t> kernels_;  // regions, by where the name lies
  std::unordered_map<Launch, uint32_t, HashLaunch> launches_;
  std::unordered_map<Copy, uint32_t, HashCopy> copies_;
  std::unordered_map<uint32_t, uint32_t> copy_regions_, set_regions_;
  std::unordered_map<uint64_t, int32_t> priorities_;  // of streams: context << 32 | stream
  uint32_t graph_region_ = 0;
};

extern const gpu::Decoding kDecoding;

// A function of the runtime or the driver.
inline uint64_t function_number(Kind kind, uint32_t cbid) { return uint64_t(kind) << 32 | cbid; }

}  // namespace strobe::cupti
