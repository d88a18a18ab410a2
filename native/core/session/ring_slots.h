// ring_slots.h - the parts of the rings file of one recording: rings of spans and of rows, totals, counters of lines;
// and the numbers of the locations that they are about.
#pragma once
#include <stdint.h>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/rings/ring.h"
#include "core/rings/row_kinds.h"
#include "core/session/trace_files.h"
#include "core/spans/location_builder.h"

namespace strobe {

struct Slot {
  RingHeader* header = nullptr;
  uint64_t* data = nullptr;
  bool of_spans() const { return header->magic == kRingMagic; }
  const RowRecord* records() const { return reinterpret_cast<const RowRecord*>(data); }  // of a ring of rows
  Producer* owner = nullptr;  // nullptr once the thread has ended, and of other parts
  RowProducer* row_owner = nullptr;
  std::atomic<Slot*> rows{nullptr};  // of a ring of spans: the same thread's ring of rows, if it has one
  std::unique_ptr<LocationBuilder> builder;
  RecordDecoder decoder;
  int64_t device = -1;   // of a stream
  uint64_t read = 0;     // records consumed
  bool watched = false;  // by the collector

  bool half_used() const { return read - header->tail.load() > header->capacity / 2; }
  bool rows_half_used() const { return rows && rows.load()->half_used(); }
};

// All but begin, stop_producers and the functions about locations with mutex() held.
class RingSlots {
 public:
  explicit RingSlots(TraceFiles& files) : files_(files) {}
  std::mutex& mutex() { return mutex_; }
  void begin(uint32_t ring_bytes);
  const std::vector<std::unique_ptr<Slot>>& all() const { return slots_; }
  Slot* of(const RingHeader* header) const;

  // A part for records of so many bytes: used again, or added to the file. nullptr: the recording has failed.
  Slot* take(uint32_t magic, size_t record_bytes, uint32_t location, uint64_t thread_id = 0, uint32_t kind = kOfThread);
  // The same, all bytes 0: for entries that are found by looking for them.
  RingHeader* take_cleared(uint32_t magic, size_t record_bytes, uint32_t location);
  // No thread writes any further without coming to the slow path.
  void stop_producers();
  void thread_ended(const Producer* owner, const RowProducer* row_owner);
  // The recording has ended: threads that are between a look at their limit and a store hit nothing.
  void unmap();
  void forked();

  uint32_t new_location() { return next_location_++; }
  void write_location(uint32_t location, uint64_t number, uint8_t kind, std::string_view name, int64_t device = -1);
  // The location of a thread that begins to record. True: rows about it have made one before.
  bool take_location(uint64_t thread_id, uint32_t& location);
  uint32_t location_of(uint64_t thread_id, const char* name);
  void name_thread(uint64_t thread_id, const char* name);
  void forget_thread(uint64_t thread_id);

 private:
  Slot* free_slot();
  size_t slot_bytes() const { return kPage + ring_bytes_; }
  TraceFiles& files_;
  std::mutex mutex_;
  uint32_t ring_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  uint32_t next_location_ = 0;
  std::map<uint64_t, uint32_t> early_locations_;      // by thread: of threads that have recorded nothing themselves
  std::map<uint64_t, std::string> names_of_threads_;  // of those, what the program calls them
};

}  // namespace strobe
