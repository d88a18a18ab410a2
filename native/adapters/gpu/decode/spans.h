// spans.h - what GPUs did, as every vendor's records are decoded into: spans of streams, and beside them.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

#include "include/strobe.h"

namespace strobe::gpu {

constexpr uint32_t kNoDevice = ~0u, kNoContext = ~0u, kNoStream = ~0u;
// Locations of a device beside its streams, by numbers that no stream has.
constexpr uint32_t kMemoryStream = 0xfffffff0, kUnifiedMemoryStream = 0xfffffff1, kWaitsStream = 0xfffffff2;
inline bool beside_streams(uint32_t stream) { return stream >= kMemoryStream; }
std::string name_beside_streams(uint32_t device, uint32_t stream);

enum MemoryChange : uint32_t { kNoMemoryChange = 0, kAllocated = 1, kReleased = 2 };

// On a stream of a device, or beside its streams; or a call on a thread: of kNoDevice, `stream` is the thread's number.
struct DeviceSpan {
  uint32_t device, context, stream, correlation;
  strobe_stream_span span;   // without a region: a row with a time of its own
  uint32_t captured_by = 0;  // the call that put it into its graph
  // Of a row of memory: what happened, and the pool with its size from then on; pool 0: none.
  MemoryChange change = kNoMemoryChange;
  uint32_t memory_kind = 0;  // text
  uint64_t pool = 0;
  int64_t pool_bytes = 0;

  bool is_call() const { return device == kNoDevice; }
  // Something that a call has launched.
  bool is_work() const { return !is_call() && !beside_streams(stream); }
};

// A call of the vendor's interface, as a record has it.
struct CallRecord {
  uint64_t function;  // the vendor's number
  uint32_t correlation;
  int64_t start_ns;
  bool failed;
};

// What a decoder asks whoever uses it.
class Sink {
 public:
  virtual uint32_t region(const char* name, uint8_t role) = 0;
  virtual uint32_t text(const char* text) = 0;
  // The call that put this node into its graph; 0: not known.
  virtual uint32_t captured_by(uint64_t graph_node) = 0;
  // The region of a call that is recorded; 0: it is not.
  virtual uint32_t call(const CallRecord& record) = 0;
  // The name of a kernel, as its record points to it.
  virtual std::string kernel_name(const char* name) = 0;
  // The properties of a device, as JSON with Kineto's keys of `deviceProperties`.
  virtual void device(uint32_t number, const std::string& json) = 0;

 protected:
  ~Sink() = default;
};

inline int64_t number_or_nothing(uint64_t value) { return value ? int64_t(value) : STROBE_NOTHING; }
inline int32_t graph_or_nothing(uint32_t graph) { return graph ? int32_t(graph) : STROBE_NOTHING_32; }

// The text of a row: numbers with commas, nothing where there is none.
template <class T, size_t N>
std::string joined(const T (&values)[N]) {
  std::string out;
  for (size_t i = 0; i < N; i++) {
    if (i) out += ',';
    if (int64_t(values[i]) != STROBE_NOTHING) out += std::to_string(values[i]);
  }
  return out;
}

// What the launches of one configuration share: a text of the row of each kernel (kKernelColumns in core/rows.cpp).
struct LaunchText {
  int64_t device = STROBE_NOTHING, context = STROBE_NOTHING, stream = STROBE_NOTHING;
  int64_t grid[3] = {STROBE_NOTHING, STROBE_NOTHING, STROBE_NOTHING};
  int64_t block[3] = {STROBE_NOTHING, STROBE_NOTHING, STROBE_NOTHING};
  int64_t registers = STROBE_NOTHING;
  int64_t shared = STROBE_NOTHING, static_shared = STROBE_NOTHING, dynamic_shared = STROBE_NOTHING;  // bytes
  int64_t executed_shared = STROBE_NOTHING;
  int64_t local_per_thread = STROBE_NOTHING, local = STROBE_NOTHING;
  int64_t priority = STROBE_NOTHING;
  int64_t type = STROBE_NOTHING, cache = STROBE_NOTHING;  // texts
  std::string joined() const;
};

// Work on a stream: its region, times and correlation are there, of its row the text.
inline DeviceSpan& add_work(std::vector<DeviceSpan>& out, uint32_t device, uint32_t context, uint32_t stream,
                            uint32_t correlation, uint32_t region, uint32_t row_kind, uint64_t start, uint64_t end,
                            uint32_t text) {
  DeviceSpan& to = out.emplace_back(DeviceSpan{device, context, stream, correlation, {}});
  to.span.region = region, to.span.row_kind = row_kind;
  to.span.start_ns = int64_t(start), to.span.end_ns = int64_t(end);
  to.span.values[0] = STROBE_TWO(correlation, text);
  return to;
}
// The rest of the row of a kernel: STROBE_ROW_KERNEL.
inline void set_kernel(DeviceSpan& to, uint32_t graph, uint32_t captured_by, uint64_t node, uint64_t queued_ns) {
  to.span.values[1] = STROBE_TWO(graph_or_nothing(graph), graph_or_nothing(captured_by));
  to.span.values[2] = number_or_nothing(node);
  to.span.values[3] = number_or_nothing(queued_ns);
  to.captured_by = captured_by;
}
// And of a copy or a set: STROBE_ROW_COPY.
inline void set_copy(DeviceSpan& to, uint32_t graph, uint32_t captured_by, uint64_t node, int64_t bytes,
                     int64_t set_value = STROBE_NOTHING_32, int64_t address = STROBE_NOTHING) {
  to.span.values[1] = STROBE_TWO(graph_or_nothing(graph), set_value);
  to.span.values[2] = number_or_nothing(node);
  to.span.values[3] = bytes;
  to.span.values[4] = STROBE_TWO(graph_or_nothing(captured_by), STROBE_NOTHING_32);
  to.span.values[5] = address;
  to.captured_by = captured_by;
}

// Of those that begin at the same time the first one decoded comes first.
void sort_by_start(std::vector<DeviceSpan>& spans);

// Of spans in order: calls that another call of the same thread makes are the same call, the driver's in the runtime's.
void without_inner_calls(std::vector<DeviceSpan>& spans);

// Whether this function of an interface waits for a GPU.
inline bool waits(std::string_view name) { return name.find("Synchronize") != name.npos; }

// What people call a stream, as imports do.
inline std::string stream_name(uint32_t device, uint32_t stream) {
  return "GPU " + std::to_string(device) + " stream " + std::to_string(stream);
}

// What people read: without the compiler's mangling.
std::string demangled(const char* name);

}  // namespace strobe::gpu
