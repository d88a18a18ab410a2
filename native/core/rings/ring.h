// ring.h - the buffer between a thread and the drainer: 8-byte records in file-backed shared memory.
//
// One producer (the thread), one consumer (the drainer). `head` counts records written, `tail` counts records that are
// durable in the block file; between them the ring holds what a reader recovers after `kill -9`. Layout of the rings
// file (little endian):
//   page 0        RingsHeader
//   then slots    RingHeader (one page), then `capacity` records
// Measured: 8-byte records cost 88-150 ns a Python call on a mapped file, 24-byte records 94-184 ns (page faults).
#pragma once
#include <errno.h>
#include <stdint.h>
#include <atomic>
#include <bit>
#include <string>

#include "core/format/bytes.h"
#include "core/system/clock.h"

namespace strobe {

// A record: kind (2 bits) | region (22 bits) | low 40 bits of the ticks.  An epoch record carries the upper 24 bits; a
// switch has the number of a stack for a region.
enum RecordKind : uint64_t { kEnter = 0, kLeave = 1, kEpoch = 2, kSwitch = 3 };
constexpr int kTimeBits = 40;
constexpr uint64_t kTimeMask = (uint64_t(1) << kTimeBits) - 1;
constexpr uint32_t kRegionLimit = 1u << 22;
constexpr uint32_t kOverflowRegion = 1;  // stands for every region after the table is full

inline uint64_t make_record(RecordKind kind, uint32_t region, uint64_t t) {
  return (uint64_t(kind) << 62) | (uint64_t(region) << kTimeBits) | (t & kTimeMask);
}
inline RecordKind record_kind(uint64_t record) { return RecordKind(record >> 62); }
inline uint32_t record_region(uint64_t record) { return uint32_t(record >> kTimeBits) & (kRegionLimit - 1); }

constexpr uint32_t kRingsMagic = 0x474e5253;  // "SRNG"
constexpr uint32_t kRingMagic = 0x31474e52;   // "RNG1"
constexpr uint32_t kPage = 4096;
constexpr uint32_t kDefaultRingBytes = 1 << 20;

enum RingState : uint32_t { kRingFree = 0, kRingActive = 1, kRingEnded = 2 };
enum ProcessState : uint32_t { kRunning = 1, kClosed = 2, kExited = 3, kFailed = 4 };

struct Counter {  // a line of the quality table that survives the process
  char name[40];
  std::atomic<uint64_t> value;
};

struct MetricSample {
  uint32_t metric;
  uint32_t unused;
  int64_t time_ns;
  double value;
};
constexpr uint32_t kStagedSamples = 512;

struct RingsHeader {  // page 0..; everything here survives kill -9
  uint32_t magic, version;
  uint32_t pid, ring_bytes;
  std::atomic<uint32_t> slots;  // slots ever created
  std::atomic<uint32_t> state;  // ProcessState
  std::atomic<int32_t> exit_code;
  uint32_t unused;
  ClockPair first_pair;
  ClockPair last_pair;
  std::atomic<int64_t> own_cpu_ns;  // CPU time of the drainer
  std::atomic<uint32_t> counter_count;
  std::atomic<uint32_t> staged_count;  // metric samples not yet in the block file
  Counter counters[48];
  MetricSample staged[kStagedSamples];
  char failure[256];               // why recording stopped while the program went on
  std::atomic<int64_t> failed_ns;  // and when; 0: it did not
  uint64_t min_duration_ns;        // as in strobe_options
};
constexpr uint32_t kRingsHeaderBytes = 4 * kPage;
static_assert(sizeof(RingsHeader) <= kRingsHeaderBytes);

// Readings of metrics that wait in the header, as a chunk of the block file holds them.
inline std::string encode_staged_samples(const RingsHeader& header, uint32_t count) {
  Writer w;
  for (uint32_t i = 0; i < count; i++) {
    const MetricSample& sample = header.staged[i];
    w.u32(sample.metric), w.u64(uint64_t(sample.time_ns)), w.u64(std::bit_cast<uint64_t>(sample.value));
  }
  return std::move(w.bytes);
}

// What a location is, as the trace numbers it (model/kinds.py).
enum RingKind : uint8_t { kOfThread = 0, kOfStream = 1, kOfTask = 2 };

struct RingHeader {
  uint32_t magic, capacity;  // capacity in records, a power of two
  std::atomic<uint32_t> state;
  uint32_t location;
  uint64_t thread_id;
  uint32_t of_stream;  // a RingKind; not of a thread: its times are ns of CLOCK_MONOTONIC, not ticks, and those of
                       // its rows are launches
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
  std::atomic<uint64_t> lost;  // records that found no room
};
static_assert(sizeof(RingHeader) <= kPage);

// What a thread needs to write a record. `limit` is where it must stop and look: no ring yet, ring full, recording
// stopped.
struct Producer {
  uint64_t* data = nullptr;
  uint64_t mask = 0;
  uint64_t head = 0;
  std::atomic<uint64_t> limit{0};
  uint64_t epoch = ~uint64_t(0);
  RingHeader* header = nullptr;
  uint32_t generation = 0;  // of the session that the ring belongs to
  uint32_t lost_depth = 0;  // open spans whose enter was lost: their leaves are lost with them
  char* name = nullptr;     // what the program calls the thread
  uint32_t window = 0;      // of the session: what was lost in an earlier one has ended with it
  bool hidden = false;      // not a location of the trace: it records about other threads
  bool busy = false;        // inside of the recorder: a hook that fires there is ignored
  bool writing = false;     // in put_at: a record that a signal's handler makes now would be written over
};

// Initial-exec: one fs-relative load instead of a call to __tls_get_addr; the few bytes fit glibc's surplus for
// dlopened libraries.
extern thread_local Producer producer __attribute__((tls_model("initial-exec")));

// This thread is inside of the recorder, where it may hold locks: what fires there (the program's own allocator, built
// with hooks; a signal handler) records nothing. errno stays the program's.
class Inside {
 public:
  Inside() : busy_(producer.busy), errno_(errno) { producer.busy = true; }
  ~Inside() { producer.busy = busy_, errno = errno_; }
  Inside(const Inside&) = delete;

 private:
  const bool busy_;
  const int errno_;
};

void put_slowly(RecordKind kind, uint32_t region, uint64_t at_ticks, Producer& p);  // recording_thread.cpp

// `at_ticks`: when it was, not before the last record; 0: now. `p`: this thread's, or that of one that writes nothing
// meanwhile.
inline void put(RecordKind kind, uint32_t region, uint64_t at_ticks = 0, Producer& p = producer) {
  p.writing = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(p.head < p.limit.load(std::memory_order_relaxed), 1)) {
    const uint64_t t = at_ticks ? at_ticks : ticks();
    if (__builtin_expect((t >> kTimeBits) == p.epoch, 1)) {
      p.data[p.head & p.mask] = make_record(kind, region, t);
      p.head++;
      p.header->head.store(p.head, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      p.writing = false;
      return;
    }
  }
  p.writing = false;
  put_slowly(kind, region, at_ticks, p);
}

}  // namespace strobe
