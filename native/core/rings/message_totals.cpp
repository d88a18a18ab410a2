#include "core/rings/message_totals.h"

#include "core/format/side_tables.generated.h"

namespace strobe {

uint64_t totals_hash(const strobe_total_key& key) {
  uint64_t h = (uint64_t(key.region) << 32 | key.communicator) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  h = (h ^ (uint64_t(uint32_t(key.peer_rank)) << 32 | uint32_t(key.size_exponent))) * 0xBF58476D1CE4E5B9ull;
  h ^= h >> 32;
  return h ? h : 1;
}

void add_total(TotalsEntry& entry, const strobe_total_sums& sums) {
  constexpr auto relaxed = std::memory_order_relaxed;
  entry.calls.fetch_add(sums.calls, relaxed);
  if (sums.sent_bytes) entry.sent_bytes.fetch_add(sums.sent_bytes, relaxed);
  if (sums.received_bytes) entry.received_bytes.fetch_add(sums.received_bytes, relaxed);
  if (!sums.ns) return;
  entry.total_ns.fetch_add(sums.ns, relaxed);
  uint64_t most = entry.max_ns.load(relaxed);
  while (sums.ns > most && !entry.max_ns.compare_exchange_weak(most, sums.ns, relaxed)) {
  }
}

void append_totals(std::string& out, uint32_t location, const TotalsEntry* entries, uint64_t capacity) {
  using namespace schema::message_totals;
  static const auto* layout = new TableLayout{
      table,
      {function, communicator, peer_rank, size_bytes, calls, sent_bytes, received_bytes, total_ns, max_ns},
      false};
  TableColumns columns(*layout);
  for (uint64_t i = 0; i < capacity; i++) {
    const TotalsEntry& e = entries[i];
    const uint64_t count = e.calls.load(std::memory_order_relaxed);
    const uint32_t name = e.function.load(std::memory_order_acquire);
    if (!name) continue;
    uint64_t cells[9];
    uint32_t present = 0;
    size_t n = 0;
    const auto cell = [&](uint32_t column, bool there, uint64_t value) {
      if (there) present |= 1u << column, cells[n++] = value;
    };
    cell(0, true, name);
    cell(1, e.communicator != 0, e.communicator);
    cell(2, e.peer_rank != STROBE_NOTHING_32, uint64_t(int64_t(e.peer_rank)));
    cell(3, e.size_exponent >= 0 && e.size_exponent < 63, uint64_t(1) << (e.size_exponent & 63));
    cell(4, true, count);
    cell(5, true, e.sent_bytes.load(std::memory_order_relaxed));
    cell(6, true, e.received_bytes.load(std::memory_order_relaxed));
    cell(7, true, e.total_ns.load(std::memory_order_relaxed));
    cell(8, true, e.max_ns.load(std::memory_order_relaxed));
    columns.add(0, present, cells);
    if (columns.rows() == kTableChunkRows) columns.append_to(out, location);
  }
  columns.append_to(out, location);
}

}  // namespace strobe
