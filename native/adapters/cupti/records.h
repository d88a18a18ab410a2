// records.h - from CUPTI's records to spans of streams. No CUPTI is called here: the collector and recovery share it.
#pragma once
#include <stdint.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/cupti/abi.h"
#include "include/strobe.h"

namespace strobe::cupti {

constexpr uint32_t kNoDevice = ~0u;
// Locations of a device beside its streams, by numbers that no stream has.
constexpr uint32_t kMemoryStream = 0xfffffff0, kUnifiedMemoryStream = 0xfffffff1, kWaitsStream = 0xfffffff2;
inline bool beside_streams(uint32_t stream) { return stream >= kMemoryStream; }
std::string name_beside_streams(uint32_t device, uint32_t stream);

// On a stream of a device, or beside its streams; or a call of CUDA on a thread: of kNoDevice, `stream` is the thread's
// number.
struct DeviceSpan {
  uint32_t device, context, stream, correlation;
  strobe_stream_span span;   // without a region: a row with a time of its own
  uint32_t captured_by = 0;  // the call that put it into its graph
  // Of a row of memory: what happened, and the pool with its size from then on; pool 0: none.
  MemoryOperation operation = kNoMemoryOperation;
  uint32_t memory_kind = 0;
  uint64_t pool = 0;
  int64_t pool_bytes = 0;

  bool is_call() const { return device == kNoDevice; }
  // Something that a call has launched.
  bool is_work() const { return !is_call() && !beside_streams(stream); }
};

// What a decoder asks whoever uses it.
class Sink {
 public:
  virtual uint32_t region(const char* name, uint8_t role) = 0;
  virtual uint32_t text(const char* text) = 0;
  // When the call with this number began, ns of CLOCK_MONOTONIC; 0: not known.
  virtual int64_t launched_ns(uint32_t correlation) = 0;
  // The call that put this node into its graph; 0: not known.
  virtual uint32_t captured_by(uint64_t graph_node) = 0;
  // A call of the runtime or the driver is told by a record. Returns its region; 0: it is not recorded.
  virtual uint32_t call(const ApiRecord& record) = 0;
  // The name of a kernel, as its record points to it.
  virtual std::string kernel_name(const char* name) = 0;
  // What is known of a device, as JSON with Kineto's keys of `deviceProperties`.
  virtual void device(uint32_t number, const std::string& json) = 0;

 protected:
  ~Sink() = default;
};

class Memory;
class Waits;

class Decoder {
 public:
  // `has(kind, end)`: whether records of a kind reach to there.
  Decoder(Sink& sink, std::function<bool(Kind, size_t)> has);
  ~Decoder();
  // Appends what a record tells of a stream.
  void add(const Activity& record, std::vector<DeviceSpan>& out);
  // Kernels were unloaded: a name may lie where another one lay.
  void forget_names() { kernels_.clear(); }
  // Of allocations and waits, which more is to be done about.
  Memory& memory() { return *memory_; }
  Waits& waits() { return *waits_; }
  // What CUPTI itself cost the program, as its records of overhead say, and what the driver did beside work, ns.
  int64_t overhead_ns() const { return overhead_ns_; }
  int64_t driver_ns() const { return driver_ns_; }
  int64_t jit_ns() const { return jit_ns_; }
  uint64_t jit_compilations() const { return jit_compilations_; }

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
  void kernel(const KernelRecord& record, std::vector<DeviceSpan>& out);
  uint32_t launch_text(const KernelRecord& record, int64_t local_memory_total) const;
  void device(const DeviceRecord& record);
  int64_t priority_of(uint32_t context, uint32_t stream) const;
  void copied(uint32_t region, Copy copy, uint64_t bytes, uint32_t correlation, uint32_t graph, uint64_t node,
              int64_t set_value, uint64_t start, uint64_t end, std::vector<DeviceSpan>& out);
  uint32_t copy_region(uint8_t kind, uint8_t source, uint8_t destination);

  Sink& sink_;
  const bool has_local_total_, has_priority_, has_source_node_;
  std::unordered_map<const char*, uint32_t> kernels_;  // regions, by where the name lies
  std::unordered_map<Launch, uint32_t, HashLaunch> launches_;
  std::unordered_map<Copy, uint32_t, HashCopy> copies_;
  std::unordered_map<uint32_t, uint32_t> copy_regions_, set_regions_;
  std::unordered_map<uint64_t, int32_t> priorities_;  // of streams: context << 32 | stream
  uint32_t graph_region_ = 0;
  int64_t overhead_ns_ = 0, driver_ns_ = 0, jit_ns_ = 0;
  uint64_t jit_compilations_ = 0;
  const std::unique_ptr<Memory> memory_;
  const std::unique_ptr<Waits> waits_;
};

// Of those that begin at the same time the first one told comes first.
void sort_by_start(std::vector<DeviceSpan>& spans);

// Of spans in order: calls that another call of the same thread makes are the same call, the driver's in the runtime's.
void without_inner_calls(std::vector<DeviceSpan>& spans);
const char* memory_name(uint32_t kind);  // "Device", "Pinned"; empty: not known

// What people call a stream, as imports do.
inline std::string stream_name(uint32_t device, uint32_t stream) {
  return "GPU " + std::to_string(device) + " stream " + std::to_string(stream);
}

// What people read: without the compiler's mangling.
std::string demangled(const char* name);

}  // namespace strobe::cupti
