// ring_sums.h - what is added up in parts of the rings file, so that it survives a kill, and the side tables that it
// becomes: counters of source lines; calls, bytes and times of communication by function, communicator and peer, which
// are exact whatever else is folded, throttled, or lost.
#pragma once
#include <stdint.h>
#include <atomic>
#include <string>

#include "core/rings/ring.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe {

constexpr uint32_t kLinesMagic = 0x324e494c;  // "LIN2": a slot of the rings file that holds counters of lines
static_assert(sizeof(strobe_line) == 48);
// Who knows which lines a thread is in.
inline std::atomic<strobe_open_lines> open_lines{nullptr};

// Appends chunks of the side table `lines`: those of `count` counters that ever counted. `clock` is of the whole
// recording.
void append_lines(std::string& out, uint32_t location, const strobe_line* lines, uint64_t count,
                  const ClockLine& clock);

constexpr uint32_t kTotalsMagic = 0x31544f54;  // "TOT1": a slot of the rings file that holds totals

struct TotalsEntry {
  std::atomic<uint64_t> hash;      // of the key; 0: empty
  std::atomic<uint32_t> function;  // a text; 0 until the key is written down
  uint32_t communicator;           // a text
  int32_t peer_rank, size_exponent;
  std::atomic<uint64_t> calls, sent_bytes, received_bytes, total_ns, max_ns;
};
static_assert(sizeof(TotalsEntry) == 64);
constexpr uint32_t kTotalsProbes = 256;  // places looked at before a key counts as one too many

inline const TotalsEntry* totals_entries(const RingHeader* slot) {
  return reinterpret_cast<const TotalsEntry*>(reinterpret_cast<const char*>(slot) + kPage);
}
inline TotalsEntry* totals_entries(RingHeader* slot) {
  return reinterpret_cast<TotalsEntry*>(reinterpret_cast<char*>(slot) + kPage);
}

uint64_t totals_hash(const strobe_total_key& key);
// The entry of a key, made if it is new; nullptr if the table is full. `function_text` is asked only for a new one.
template <class FunctionText>
TotalsEntry* find_total(TotalsEntry* entries, uint64_t mask, const strobe_total_key& key, FunctionText&& function_text);
void add_total(TotalsEntry& entry, const strobe_total_sums& sums);
// Appends chunks of the side tables message_totals and io_totals.
void append_totals(std::string& out, uint32_t location, const TotalsEntry* entries, uint64_t capacity);
// The same, and the sums begin anew.
void take_totals(std::string& out, uint32_t location, TotalsEntry* entries, uint64_t capacity);

template <class FunctionText>
TotalsEntry* find_total(TotalsEntry* entries, uint64_t mask, const strobe_total_key& key,
                        FunctionText&& function_text) {
  const uint64_t hash = totals_hash(key);
  for (uint32_t i = 0; i < kTotalsProbes && i <= mask; i++) {
    TotalsEntry& entry = entries[(hash + i) & mask];
    uint64_t there = entry.hash.load(std::memory_order_acquire);
    if (there == hash) return &entry;
    if (there) continue;
    const uint32_t function = function_text();
    if (entry.hash.compare_exchange_strong(there, hash)) {
      entry.communicator = key.communicator;
      entry.peer_rank = key.peer_rank, entry.size_exponent = key.size_exponent;
      entry.function.store(function, std::memory_order_release);
      return &entry;
    }
    if (there == hash) return &entry;
  }
  return nullptr;
}

}  // namespace strobe
