// memory.h - what CUPTI tells of memory: allocations, releases and pools become rows with a time of their own,
// migrations of unified memory copies. No CUPTI is called here: the collector and recovery share it.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/cupti/records.h"

namespace strobe::cupti {

class Memory {
 public:
  // `has_managed`: records of pools say whether those are of unified memory (since CUDA 13.0).
  Memory(Sink& sink, bool has_managed) : sink_(sink), has_managed_(has_managed) {}
  // False: the record is of another kind.
  bool add(const Activity& record, std::vector<DeviceSpan>& out);
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
  DeviceSpan& row_of(uint32_t device, uint32_t context, uint32_t kind, uint32_t name, uint32_t correlation,
                     uint64_t address, uint64_t ns, std::vector<DeviceSpan>& out);
  void allocated(const MemoryRecord& record, std::vector<DeviceSpan>& out);
  void pool_changed(const MemoryPoolRecord& record, std::vector<DeviceSpan>& out);
  void unified(const UnifiedMemoryRecord& record, std::vector<DeviceSpan>& out);
  void forget(std::unordered_map<uint64_t, Live>::iterator live);

  Sink& sink_;
  const bool has_managed_;
  std::map<Place, Sums> sums_;
  std::unordered_map<uint64_t, Live> live_;  // by address
  std::unordered_map<uint64_t, Pool> pools_;
  std::map<std::string, uint32_t> texts_;
  uint64_t cpu_page_faults_ = 0, gpu_page_faults_ = 0;
};

}  // namespace strobe::cupti
