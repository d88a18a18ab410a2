// row_ring.h - the row stream: what one event knows beside its time, 64 bytes in a second ring of the thread.
#pragma once
#include <stdint.h>
#include <atomic>

#include "core/rings/ring.h"

namespace strobe {

constexpr int kRowValues = 6;  // STROBE_ROW_VALUES

struct RowRecord {
  uint64_t ticks;
  uint64_t where;  // kind << 48 | records in the thread's ring of spans when the row was made
  int64_t values[kRowValues];
  uint32_t kind() const { return uint32_t(where >> 48) & 0x7FFF; }
  bool since_begin() const { return where >> 63; }  // STROBE_ROW_SINCE_BEGIN
  uint64_t position() const { return where & ((uint64_t(1) << 48) - 1); }
};
static_assert(sizeof(RowRecord) == 64);

constexpr uint32_t kRowRingMagic = 0x32474e52;  // "RNG2": a slot of the rings file that holds rows

// What a thread needs to write a row; as Producer.
struct RowProducer {
  RowRecord* data = nullptr;
  uint64_t mask = 0;
  uint64_t head = 0;
  std::atomic<uint64_t> limit{0};
  RingHeader* header = nullptr;
  uint32_t generation = 0;
};
extern thread_local RowProducer row_producer __attribute__((tls_model("initial-exec")));

// `at_ticks` 0: now. In recording_rows.cpp.
void put_row_slowly(uint32_t kind, uint64_t at_ticks, const int64_t* values);

inline void write_row(RowProducer& r, uint32_t kind, uint64_t at_ticks, uint64_t position, const int64_t* values) {
  RowRecord& record = r.data[r.head & r.mask];
  record.ticks = at_ticks;
  record.where = uint64_t(kind) << 48 | position;
  for (int i = 0; i < kRowValues; i++) record.values[i] = values[i];
  r.head++;
  r.header->head.store(r.head, std::memory_order_release);
}

}  // namespace strobe
