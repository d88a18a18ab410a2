// memory.h - allocations, releases and pools of memory become rows with a time of their own, migrations of unified
// memory copies.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/gpu/decode/spans.h"

namespace strobe::gpu {

// Something that happened to memory at one moment.
struct MemoryEvent {
  uint32_t device, context, correlation;
  const char* kind;  // "Device", "Pinned"
  uint32_t name;     // text: of the variable, or of what happened
  uint64_t address;
  int64_t ns;
};
// Pages that moved between a device and another one or the host, which is kNoDevice.
struct Migration {
  uint32_t device, source, destination;
  int64_t bytes, start_ns, end_ns;
  uint64_t address;
  const char* direction;  // "Unified HtoD"
  const char* cause;      // empty: not known
};

class Memory {
 public:
  explicit Memory(Sink& sink) : sink_(sink) {}
  // `bytes` of a release may be 0: not known. `pool` 0: none; else with its size from then on.
  void changed(const MemoryEvent& event, MemoryChange change, int64_t bytes, uint64_t program_counter, uint64_t pool,
               int64_t pool_bytes, std::vector<DeviceSpan>& out);
  void migrated(const Migration& migration, const char* kind, std::vector<DeviceSpan>& out);
  void faulted(uint64_t of_cpu, uint64_t of_gpu) { cpu_page_faults_ += of_cpu, gpu_page_faults_ += of_gpu; }
  // What is in use and reserved after an allocation, a release or a change of a pool: those are given in order of time.
  void account(DeviceSpan& row);
  uint64_t cpu_page_faults() const { return cpu_page_faults_; }
  uint64_t gpu_page_faults() const { return gpu_page_faults_; }

 private:
  using Place = std::pair<uint32_t, uint32_t>;  // device, kind of memory
  struct Sums {
    int64_t used = 0, outside_pools = 0, pools = 0;  // bytes
    bool has_pools = false;
  };
  struct Live {
    Place place;
    int64_t bytes;
    bool in_pool;
  };
  struct Pool {
    Place place;
    int64_t bytes;
  };
  void forget(std::unordered_map<uint64_t, Live>::iterator live);

  Sink& sink_;
  std::map<Place, Sums> sums_;
  std::unordered_map<uint64_t, Live> live_;  // by address
  std::unordered_map<uint64_t, Pool> pools_;
  std::map<std::string, uint32_t> texts_;
  uint64_t cpu_page_faults_ = 0, gpu_page_faults_ = 0;
};

}  // namespace strobe::gpu
