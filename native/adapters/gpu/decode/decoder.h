// decoder.h - from a vendor's records to spans of streams, in the measured program and, after a kill, in recovery.
// Nothing in this folder or in a vendor's folder of this name calls the vendor's library.
#pragma once
#include <stdint.h>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "adapters/gpu/decode/memory.h"
#include "adapters/gpu/decode/spans.h"
#include "adapters/gpu/decode/waits.h"

namespace strobe::gpu {

// What recording costs beside the calls that are recorded, and what the driver does beside work. They become rows of
// the table quality; times in whole milliseconds there.
struct Costs {
  int64_t overhead_ns = 0, driver_ns = 0, compile_ns = 0;
  uint64_t compilations = 0;
};

class Decoder {
 public:
  explicit Decoder(Sink& sink) : sink_(sink) {}
  virtual ~Decoder() = default;
  // Appends the spans of all whole records in these bytes, up to the first one that is not.
  virtual void read(const char* bytes, size_t size, std::vector<DeviceSpan>& out) = 0;
  // Kernels were unloaded: a name may lie where another one lay.
  virtual void forget_names() {}
  // Allocations and waits, which need more than their own records.
  Memory& memory() { return memory_; }
  Waits& waits() { return waits_; }
  const Costs& costs() const { return costs_; }

 protected:
  Sink& sink_;
  Memory memory_{sink_};
  Waits waits_{sink_};
  Costs costs_;
};

constexpr uint32_t kKinds = 60;  // of records that a vendor may have: one more than the highest
// Of the library that writes the records: bytes of one, by kind; 0: not known.
using RecordBytes = std::array<uint32_t, kKinds>;

// How the records of a vendor are decoded. A file in the folder `decode` of each vendor makes one, as a static object;
// `decoding` finds it by the name that is in the header of process-<pid>.gpu.
struct Decoding {
  const char* adapter;  // its name in src/strobe/record/adapters/: at most 15 characters
  const char* api;      // "CUDA": what people call it
  uint8_t paradigm;     // STROBE_CUDA
  bool is_default;      // where no vendor is named: in older files, and by other profilers
  std::unique_ptr<Decoder> (*decoder)(Sink& sink, const RecordBytes& record_bytes);
};
struct Registered {
  explicit Registered(const Decoding& decoding);
};
const Decoding* decoding(std::string_view adapter);  // NULL: there is none

// The location of calls that records are about: they come when their thread has gone on.
std::string calls_row(const Decoding& decoding, uint32_t thread);

}  // namespace strobe::gpu
