// imported_process.h - writes the block file of one process of another tool's trace. Decoders give it regions,
// locations, spans and attributes in whatever order their file has them; it sorts and nests them in constant memory.
#pragma once
#include <stdint.h>
#include <string.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/format/blocks.h"
#include "core/format/span_statistics.h"
#include "core/spans/location_builder.h"
#include "formats/encoding/json_strings.h"
#include "formats/encoding/output_file.h"
#include "formats/importing/import_totals.h"
#include "formats/importing/record_counts.h"
#include "formats/importing/trace_checks.h"
#include "kernels/reading/table_chunks.h"

namespace strobe {

constexpr uint32_t kNoTable = 0xFFFFFFFF;

// Times beyond this, in either direction, are not times: the difference of two of them would not be a number. What has
// one is counted (`times_out_of_range`) and left out.
constexpr int64_t kFarthestNs = int64_t(1) << 62;
inline bool out_of_range(int64_t ns) { return ns <= -kFarthestNs || ns >= kFarthestNs; }

// Of maps by text that are asked with views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

enum class LocationKind : uint8_t { thread = 0, stream = 1, task = 2 };

// One row of a side table while it is put together. Cells stay in the order of the layout's columns.
class TableRow {
 public:
  explicit TableRow(uint32_t table = kNoTable) : table_(table) {}
  void start(uint32_t table) { table_ = table, present_ = 0; }
  void set(size_t column, int64_t value) { present_ |= uint64_t(1) << column, cells_[column] = uint64_t(value); }
  void set(const SchemaColumn& column, int64_t value) { set(column.number, value); }
  void set_real(size_t column, double value);
  uint32_t table() const { return table_; }
  bool empty() const { return present_ == 0; }
  bool has(size_t column) const { return present_ >> column & 1; }
  int64_t cell(size_t column) const { return int64_t(cells_[column]); }
  int64_t cell_or(const SchemaColumn& column, int64_t other) const {
    return has(column.number) ? cell(column.number) : other;
  }
  void append_to(std::string& out) const;
  uint64_t present_cells(uint64_t* cells) const;  // one bit a column; `cells` (kMaxColumns) get those that are set

 private:
  uint32_t table_;
  uint64_t present_ = 0;
  uint64_t cells_[kMaxColumns];
};

// What is known of the process besides, for the first and the last chunk.
struct ProcessDescription {
  int64_t pid = 0, parent_pid = 0;
  std::string description_json = "{}";  // argv, host, python, main, and where it comes from
  std::string note_json;                // rank and ranks, or empty
  // Where they are known better than from the first and the last event.
  std::optional<int64_t> started_ns = {}, ended_ns = {};
  int64_t exit_code = -1;
};
// A note of the rank in a job of so many ranks; -1: their number is not known.
std::string rank_note(int64_t rank, int64_t ranks);

// The first chunks of a block file, and the last one.
void append_process(std::string& out, const ProcessDescription& description, int64_t started_ns);
void append_end(std::string& out, std::string_view end_state, int64_t exit_code, int64_t ended_ns,
                const std::map<std::string, uint64_t>& counters);

// Samples of metrics that become a chunk.
class Samples {
 public:
  void add(uint32_t metric, int64_t time_ns, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    rows_.u32(metric), rows_.u64(uint64_t(time_ns)), rows_.u64(bits);
    count_++;
  }
  uint32_t count() const { return count_; }
  // `location`: as in a samples chunk. Empties itself.
  void append_to(std::string& out, uint32_t location) {
    if (count_) append_chunk(out, kSamplesChunk, location, count_, rows_.bytes);
    rows_.bytes.clear(), count_ = 0;
  }

 private:
  Writer rows_;
  uint32_t count_ = 0;
};

class ImportedProcess {
 public:
  // Writes to `blocks_path`; spills to files beside it when more than `buffer_bytes` of spans wait.
  // Throws std::system_error wherever a file cannot be written.
  explicit ImportedProcess(std::string blocks_path, size_t buffer_bytes = 64u << 20);
  ~ImportedProcess();
  ImportedProcess(const ImportedProcess&) = delete;

  uint32_t region(std::string_view name, uint8_t paradigm, uint8_t role, std::string_view file = {}, uint32_t line = 0,
                  std::string_view module = {});
  uint32_t location(std::string_view name, uint64_t thread_id, LocationKind kind = LocationKind::thread,
                    int64_t device = -1);
  void name_location(uint32_t location, std::string_view name);
  uint32_t text(std::string_view value);
  uint32_t table(TableLayout layout);
  uint32_t metric(std::string_view name, std::string_view unit, uint32_t location = 0xFFFFFFFF);

  // Rows added since the last span belong to the next one.
  void attribute(const TableRow& row) { row.append_to(pending_); }
  // The same of rows that TableRow::append_to wrote.
  void attributes(std::string_view rows) { pending_ += rows; }
  // A negative duration is counted and taken as 0, and so is one that ends out of range.
  void span(uint32_t location, int64_t start_ns, int64_t duration_ns, uint32_t region) {
    span(location, start_ns, duration_ns, region, place());
  }
  // The next span has no end in the file, or is the rest of one: counted, and left open where it reaches to the end.
  void next_is_cut() { next_is_cut_ = true; }
  // Of spans with equal times the one with the lower place is outside: for those that are added when they end.
  uint32_t place() { return places_++; }
  void span(uint32_t location, int64_t start_ns, int64_t duration_ns, uint32_t region, uint32_t place);
  // A row of a table whose rows are not spans.
  void row(uint32_t location, const TableRow& row);
  // Profiles without a time axis: a chain of regions (kNoPath: its root), and what is known of its executions in all.
  uint32_t path(uint32_t parent, uint32_t region) { return paths_->child(parent, region); }
  void totals(uint32_t location, uint32_t path, const SpanTotals& totals);
  void sample(uint32_t metric, int64_t time_ns, double value);
  // On a TPU an operation holds others: what overlaps there is sound.
  void work_nests() { checks_.work_nests(); }
  void work_elsewhere(uint64_t first_correlation) { checks_.work_elsewhere(first_correlation); }
  void count(const std::string& what, uint64_t n = 1) { counters_[what] += n; }
  // Of the records that are known to be of this process.
  RecordCounts& records() { return records_; }

  // Writes the rows that there are by now, and the process at the first time: who reads the file before it is finished,
  // or after we were killed, has them.
  void save(const ProcessDescription& description);
  // Writes everything; afterwards the file is complete. `ended` as in docs/format/blocks.md.
  void finish(const ProcessDescription& description, const std::string& end_state = "closed");

  uint64_t spans() const { return spans_; }
  // Number and times of the spans, for the report about the import.
  void report(json::Object& to) const;
  // Bytes of names and texts that were looked up: what decoders should not do again and again with long ones.
  uint64_t looked_up_bytes() const { return looked_up_bytes_; }
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  struct SpanRecord {
    int64_t start_ns, duration_ns;
    uint64_t details;  // where its attributes lie, 0: none; with kCut
    uint32_t region;
    uint32_t order;  // as it came, among equal times
  };
  static_assert(sizeof(SpanRecord) == 32);
  static constexpr uint64_t kCut = uint64_t(1) << 63;
  struct Run {  // sorted, in the spill file
    uint64_t offset, count;
  };
  using Columns = std::vector<std::unique_ptr<TableColumns>>;  // by table, null where it has no rows
  struct Waiting {
    std::string name;
    uint64_t thread_id;
    LocationKind kind;
    int64_t device;
    std::vector<SpanRecord> records;
    std::vector<Run> runs;
    Columns rows;
  };
  class Spill;
  class Merge;
  struct Lane;

  static bool before(const SpanRecord& a, const SpanRecord& b);
  void spill();
  void write_location(uint32_t location);
  TableColumns& columns_of(Columns& tables, uint32_t table);
  void save_rows(TableColumns& columns, uint32_t location);
  void decode_rows(Lane& lane, TraceChecks::Walk& walk, int64_t row, std::string_view bytes);
  void write_details(Lane& lane, TraceChecks::Walk& walk, int64_t row, uint64_t details);
  void save_totals();
  void write_location_chunk(uint32_t id, const Waiting& waiting, std::string_view name);

  std::unique_ptr<OutputFile> out_;
  std::unique_ptr<Spill> spans_spill_, details_spill_;
  size_t buffer_records_, buffered_ = 0;
  std::vector<Waiting> locations_;
  uint32_t location_ids_ = 0;  // with lanes
  struct Names {
    std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> ids;
    std::string unsaved;
    uint32_t first_unsaved = 0, next = 0;
  };
  uint32_t intern(Names& names, std::string_view key, bool& is_new);
  void save_names(Names& names, ChunkKind kind);
  void save_process(const ProcessDescription& description);
  void save_samples();
  Names regions_, texts_;
  std::vector<bool> gives_way_;  // by region: what crosses a mark is clipped at its edge
  std::string region_key_;
  std::shared_ptr<ProcessTotals> so_far_;  // null: nobody watches
  std::vector<std::unique_ptr<TableLayout>> tables_;
  std::vector<size_t> time_columns_;  // by table; kMaxColumns: its rows are of spans
  std::map<std::pair<std::string, uint32_t>, uint32_t> metrics_;
  Samples samples_;  // of the next chunk
  std::string pending_;
  std::unique_ptr<PathTable> paths_ = std::make_unique<PathTable>();
  StatisticsTable totals_;
  std::map<std::string, uint64_t> counters_;
  RecordCounts records_{counters_};
  TraceChecks checks_;
  uint64_t spans_ = 0, looked_up_bytes_ = 0;
  uint32_t places_ = 0;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  uint32_t saved_locations_ = 0;
  bool begun_ = false, finished_ = false, next_is_cut_ = false;
};

}  // namespace strobe
