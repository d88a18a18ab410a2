// vendor.h - what a vendor has to offer so that its GPUs are recorded, and what it is offered. A second vendor is a
// folder beside this one: a `Vendor` over its library, and in its folder `decode` a `Decoder` of its records
// (decode/decoder.h). All else (threads, buffers, launches, yielding, what is written) is shared.
#pragma once
#include <stdint.h>
#include <atomic>
#include <string>
#include <vector>

#include "adapters/gpu/decode/decoder.h"

namespace strobe::gpu {

// A function of the vendor's interface.
struct Call {
  uint32_t region = 0;  // 0: not recorded
  bool launches = false;
  std::string name;
};

// The recording of GPUs in this process, as a vendor sees it. Functions may be called from any thread unless
// otherwise noted, but never with a lock of the vendor's held that its library also takes.
class Recorder : public Sink {
 public:
  enum State : int { kOff, kOn, kYielded, kForked, kFailed };
  State state() const { return state_.load(std::memory_order_relaxed); }
  // What comes while it is not is to be dropped.
  bool recording() const { return state() == kOn; }
  // The program uses a GPU: before that there may be nothing to ask the library for.
  void use() { in_use_ = true; }
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }

  // For the trace; the last sentence about something counts.
  virtual void note(const char* what, const std::string& sentence) = 0;

  // A call of the vendor's interface begins and ends on this thread. With `outer` it is one of an interface that calls
  // another one: those inside of it are not recorded. Times are those of the trace's clock, read now.
  virtual void call_begins(const Call& call, uint32_t correlation, bool outer) = 0;
  // `number`: of the function; `returned`: its result, 0 without an error, STROBE_NOTHING_32 if not known.
  virtual void call_ends(const Call& call, uint32_t correlation, uint32_t number, int32_t returned, bool outer) = 0;
  // Calls are to be had from records instead. The name is for recovery, by the number of CallRecord.
  virtual void name_function(uint64_t function, const std::string& name) = 0;

  // A graph got a node; the call that this thread is in put it there, if any.
  virtual void node_added(uint64_t node) = 0;
  virtual void node_cloned(uint64_t node, uint64_t original) = 0;
  // Kernels are unloaded: their names may lie where others lay.
  virtual void names_change() = 0;

  // Memory for records: zeroed, 8-byte aligned, `bytes` long; null where there is none. It comes back by `completed`,
  // its first `valid` bytes full of records; what is not ours is refused.
  virtual uint8_t* take_buffer(size_t& bytes) = 0;
  virtual void completed(uint8_t* buffer, size_t valid) = 0;
  // The recorder's thread is to call Vendor::each_round soon.
  virtual void wake() = 0;

 protected:
  ~Recorder() = default;
  std::atomic<State> state_{kOff};
  std::atomic<bool> in_use_{false};
};

// Never destroyed: libraries call back until the process is gone. After `start` all functions are called by one thread
// of the recorder's, without a lock.
class Vendor {
 public:
  virtual const Decoding& decoding() const = 0;
  // Find and open the library. False: the trace has the reason.
  virtual bool open(Recorder& recorder) = 0;
  // After `open`.
  virtual const RecordBytes& record_bytes() const = 0;
  // Everything that is to be recorded is asked for. False: the trace has the reason.
  virtual bool start() = 0;
  // Nothing is asked for any more, and again. Callbacks may stay.
  virtual void rest() = 0;
  virtual void go_on() = 0;
  // Another profiler gets the library; and it is ours again. False: `why` is a sentence. True: `why` may hold what is
  // not as before.
  virtual void let_go() = 0;
  virtual bool take_back(std::string& why) = 0;
  // Buffers with what is over by now are completed; `forced`: all buffers.
  virtual void flush(bool forced) = 0;
  // Appends the spans of a completed buffer.
  virtual void read(uint8_t* buffer, size_t valid, Decoder& decoder, std::vector<DeviceSpan>& out) {
    decoder.read(reinterpret_cast<const char*>(buffer), valid, out);
  }
  // Before each flush, a second at most after the last one.
  virtual void each_round() {}
  // Records that the library has lost since it was asked last.
  virtual uint64_t dropped() { return 0; }
  // How long after a call its record may come; 0 where calls are not recorded by records.
  virtual int64_t calls_late_ns() const { return 0; }
  // The function that a record names; null: it is not recorded.
  virtual const Call* call(uint64_t) const { return nullptr; }

 protected:
  ~Vendor() = default;
};

}  // namespace strobe::gpu

// Begin to record the GPUs of a vendor: from its library's entry point, on a thread of the program. The first vendor of
// a process is the one. 0: they are not recorded, for a reason that is in the trace; or nothing is.
extern "C" __attribute__((visibility("default"))) int strobe_gpu_start(strobe::gpu::Vendor* vendor);
