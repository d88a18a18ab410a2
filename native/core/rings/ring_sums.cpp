#include "core/rings/ring_sums.h"

#include "core/format/side_tables.generated.h"

namespace strobe {

constexpr auto relaxed = std::memory_order_relaxed;

uint64_t totals_hash(const strobe_total_key& key) {
  uint64_t h = (uint64_t(key.region) << 32 | key.communicator) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  h = (h ^ (uint64_t(uint32_t(key.peer_rank)) << 32 | uint32_t(key.size_exponent))) * 0xBF58476D1CE4E5B9ull;
  h ^= h >> 32;
  return h ? h : 1;
}

void add_total(TotalsEntry& entry, const strobe_total_sums& sums) {
  entry.calls.fetch_add(sums.calls, relaxed);
  if (sums.sent_bytes) entry.sent_bytes.fetch_add(sums.sent_bytes, relaxed);
  if (sums.received_bytes) entry.received_bytes.fetch_add(sums.received_bytes, relaxed);
  if (!sums.ns) return;
  entry.total_ns.fetch_add(sums.ns, relaxed);
  uint64_t most = entry.max_ns.load(relaxed);
  while (sums.ns > most && !entry.max_ns.compare_exchange_weak(most, sums.ns, relaxed)) {
  }
}

// `read` gets each sum: it may take it away.
template <class Entry, class Read>
static void append_sums(std::string& out, uint32_t location, Entry* entries, uint64_t capacity, Read&& read) {
  using namespace schema::message_totals;
  namespace files = schema::io_totals;
  static const auto* layout = new TableLayout{
      table,
      {function, communicator, peer_rank, size_bytes, calls, sent_bytes, received_bytes, total_ns, max_ns},
      false};
  static const auto* of_files = new TableLayout{files::table,
                                                {files::function, files::file, files::calls, files::read_bytes,
                                                 files::written_bytes, files::total_ns, files::max_ns},
                                                false};
  TableColumns columns(*layout), of_file(*of_files);
  for (uint64_t i = 0; i < capacity; i++) {
    Entry& e = entries[i];
    const uint32_t name = e.function.load(std::memory_order_acquire);
    if (!name) continue;
    const uint64_t count = read(e.calls), sent = read(e.sent_bytes), received = read(e.received_bytes);
    const uint64_t ns = read(e.total_ns), most = read(e.max_ns);
    if (!(count | sent | received | ns)) continue;  // since the sums began anew
    using Cell = std::optional<uint64_t>;
    const Cell text = e.communicator ? Cell(e.communicator) : Cell();
    if (e.size_exponent == STROBE_TOTAL_OF_FILE)
      of_file.add({name, text, count, received, sent, ns, most});
    else
      columns.add({name, text, e.peer_rank != STROBE_NOTHING_32 ? Cell(int64_t(e.peer_rank)) : Cell(),
                   e.size_exponent >= 0 && e.size_exponent < 63 ? Cell(uint64_t(1) << e.size_exponent) : Cell(), count,
                   sent, received, ns, most});
    for (TableColumns* each : {&columns, &of_file})
      if (each->rows() == kTableChunkRows) each->append_to(out, location);
  }
  columns.append_to(out, location);
  of_file.append_to(out, location);
}

void append_totals(std::string& out, uint32_t location, const TotalsEntry* entries, uint64_t capacity) {
  append_sums(out, location, entries, capacity, [](const auto& sum) { return sum.load(relaxed); });
}

void take_totals(std::string& out, uint32_t location, TotalsEntry* entries, uint64_t capacity) {
  append_sums(out, location, entries, capacity, [](auto& sum) { return sum.exchange(0, relaxed); });
}

void append_lines(std::string& out, uint32_t location, const strobe_line* counters, uint64_t count,
                  const ClockLine& clock) {
  using namespace schema::lines;
  static const auto* layout =
      new TableLayout{table, {file, line, function, function_line, hits, total_ns, gpu_ns, kernels}, false};
  TableColumns columns(*layout);
  for (uint64_t i = 0; i < count; i++) {
    const strobe_line& each = counters[i];
    if (!each.hits && !each.ticks) continue;
    const uint64_t ns = uint64_t(double(each.ticks) * clock.ns_per_tick);
    columns.add({each.file, each.line, each.function, each.function_line, each.hits, ns, each.gpu_ns, each.kernels});
    if (columns.rows() == kTableChunkRows) columns.append_to(out, location);
  }
  columns.append_to(out, location);
}

}  // namespace strobe
