#include "formats/importing/imported_process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <system_error>

#include "core/spans/location_builder.h"
#include "include/strobe.h"

namespace strobe {

namespace {
constexpr size_t kFlushBytes = 1 << 20;
constexpr size_t kChunkRows = 4096;
constexpr size_t kMostNames = 1 << 20;  // remembered; later ones that come again get another number
constexpr size_t kMostLanes = 1024;     // of a location: every span is held against all of them
constexpr size_t kRunBuffer = 2048;     // records of one run in memory while runs are merged
}  // namespace

void TableRow::set_real(size_t column, double value) {
  int64_t bits;
  memcpy(&bits, &value, 8);
  set(column, bits);
}

void TableRow::append_to(std::string& out) const {
  uint8_t bytes[(kMaxColumns + 2) * 10];  // of a varint: 10 at most
  uint8_t* at = bytes;
  const auto number = [&at](uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = uint8_t(value | 0x80);
    *at++ = uint8_t(value);
  };
  number(table_), number(present_);
  for (uint64_t left = present_; left; left &= left - 1) number(zigzag(int64_t(cells_[__builtin_ctzll(left)])));
  out.append(reinterpret_cast<const char*>(bytes), size_t(at - bytes));
}

uint64_t TableRow::present_cells(uint64_t* cells) const {
  size_t n = 0;
  for (uint64_t left = present_; left; left &= left - 1) cells[n++] = cells_[__builtin_ctzll(left)];
  return present_;
}

// Bytes that wait: in memory while they are few, then in a file that has no name any more.
class ImportedProcess::Spill {
 public:
  Spill(std::string path, size_t memory) : file_(std::move(path)), memory_(memory) {}
  uint64_t size() const { return file_.size() + tail_.size(); }
  void append(const void* data, size_t n) {
    tail_.append(static_cast<const char*>(data), n);
    if (tail_.size() > memory_) file_.append(tail_), tail_.clear();
  }
  // `most` bytes, fewer only at the end.
  std::string_view read(uint64_t offset, size_t most) {
    if (offset >= file_.size()) return std::string_view(tail_).substr(size_t(offset - file_.size()), most);
    for (const Window& window : windows_)
      if (offset >= window.at && offset + most <= window.at + window.bytes.size())
        return std::string_view(window.bytes).substr(size_t(offset - window.at), most);
    Window& window = windows_[next_window_++ % kWindows];
    window.bytes.resize(size_t(std::min<uint64_t>(std::max(most, kWindowBytes), size() - offset)));
    window.at = offset;
    read_into(offset, window.bytes.data(), window.bytes.size());
    return std::string_view(window.bytes).substr(0, most);
  }
  void read_into(uint64_t offset, char* to, size_t n) {
    const size_t in_file = size_t(std::min<uint64_t>(n, file_.size() - std::min(offset, file_.size())));
    file_.read(offset, to, in_file);
    if (n > in_file) tail_.copy(to + in_file, n - in_file, size_t(offset + in_file - file_.size()));
  }

 private:
  // A thread's spans may come from several tables, each written from its start to its end: one window for each.
  static constexpr size_t kWindows = 8, kWindowBytes = 1 << 16;
  struct Window {
    uint64_t at = 0;
    std::string bytes;
  };
  SpillFile file_;
  std::string tail_;
  Window windows_[kWindows];
  size_t memory_, next_window_ = 0;
};

bool ImportedProcess::before(const SpanRecord& a, const SpanRecord& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
  return a.order < b.order;
}

// The spans of one location in order, from memory or from sorted runs.
class ImportedProcess::Merge {
 public:
  Merge(Waiting& waiting, Spill& spill) : waiting_(waiting), spill_(spill) {
    auto& records = waiting.records;
    if (!std::is_sorted(records.begin(), records.end(), before)) std::sort(records.begin(), records.end(), before);
    for (const Run& run : waiting.runs) heads_.push_back({run, {}, 0});
    for (size_t i = 0; i < heads_.size(); i++)
      if (refill(heads_[i])) heap_.push_back(i);
    std::make_heap(heap_.begin(), heap_.end(), Later{heads_});
  }
  bool next(SpanRecord& out) {
    const bool memory_left = at_ < waiting_.records.size();
    if (heap_.empty()) {
      if (memory_left) out = waiting_.records[at_++];
      return memory_left;
    }
    const Head& first = heads_[heap_.front()];
    if (memory_left && before(waiting_.records[at_], first.buffer[first.at])) {
      out = waiting_.records[at_++];
      return true;
    }
    std::pop_heap(heap_.begin(), heap_.end(), Later{heads_});
    Head& head = heads_[heap_.back()];
    out = head.buffer[head.at++];
    if (head.at < head.buffer.size() || refill(head))
      std::push_heap(heap_.begin(), heap_.end(), Later{heads_});
    else
      heap_.pop_back();
    return true;
  }

 private:
  struct Head {
    Run left;
    std::vector<SpanRecord> buffer;
    size_t at;
  };
  struct Later {  // for heaps: the earliest first
    const std::vector<Head>& heads;
    bool operator()(size_t a, size_t b) const {
      return before(heads[b].buffer[heads[b].at], heads[a].buffer[heads[a].at]);
    }
  };
  bool refill(Head& head) {
    const size_t n = size_t(std::min<uint64_t>(head.left.count, kRunBuffer));
    head.buffer.resize(n), head.at = 0;
    if (!n) return false;
    spill_.read_into(head.left.offset, reinterpret_cast<char*>(head.buffer.data()), n * sizeof(SpanRecord));
    head.left.offset += n * sizeof(SpanRecord), head.left.count -= n;
    return true;
  }
  Waiting& waiting_;
  Spill& spill_;
  std::vector<Head> heads_;
  std::vector<size_t> heap_;
  size_t at_ = 0;
};

ImportedProcess::ImportedProcess(std::string blocks_path, size_t buffer_bytes)
    : out_(std::make_unique<OutputFile>(blocks_path)),
      spans_spill_(std::make_unique<Spill>(blocks_path + ".spans", 0)),
      details_spill_(std::make_unique<Spill>(blocks_path + ".details", buffer_bytes / 4)),
      buffer_records_(std::max<size_t>(buffer_bytes / sizeof(SpanRecord), 1)) {
  regions_.first_unsaved = regions_.next = 1;
  so_far_ = ImportTotals::of(blocks_path);
}

ImportedProcess::~ImportedProcess() = default;

uint32_t ImportedProcess::intern(Names& names, std::string_view key, bool& is_new) {
  looked_up_bytes_ += key.size();
  if (names.ids.size() >= kMostNames) names.ids.clear();
  const auto at = names.ids.find(key);
  is_new = at == names.ids.end();
  if (!is_new) return at->second;
  names.ids.emplace(key, names.next);
  return names.next++;
}

void ImportedProcess::save_names(Names& names, ChunkKind kind) {
  if (names.next == names.first_unsaved) return;
  append_chunk(out_->bytes, kind, names.first_unsaved, names.next - names.first_unsaved, names.unsaved);
  names.unsaved.clear();
  names.first_unsaved = names.next;
  out_->flush(kFlushBytes);
}

// Where an object lay in one run, "<method 'f' of numpy.ndarray object at 0x7cbf780f01b0>", is no part of a name: else
// no two runs would have the same names.
static constexpr std::string_view kAddress = " at 0x";
static std::string without_addresses(std::string_view name) {
  std::string out;
  for (size_t at; (at = name.find(kAddress)) != name.npos;) {
    out += name.substr(0, at);
    name.remove_prefix(at + kAddress.size());
    name.remove_prefix(std::min(name.find_first_not_of("0123456789abcdefABCDEF"), name.size()));
  }
  return out += name;
}

uint32_t ImportedProcess::region(std::string_view name, uint8_t paradigm, uint8_t role, std::string_view file,
                                 uint32_t line, std::string_view module) {
  if (name.find(kAddress) != name.npos) {
    const std::string without = without_addresses(name);
    return region(without, paradigm, role, file, line, module);
  }
  Writer key;
  key.bytes.swap(region_key_);
  key.bytes.clear();
  key.u8(paradigm), key.u8(role), key.u32(line), key.text(name), key.text(file), key.text(module);
  bool is_new;
  const uint32_t id = intern(regions_, key.bytes, is_new);
  if (is_new) {
    checks_.define_region(id, name, paradigm, role);
    gives_way_.resize(id + 1);
    gives_way_[id] = paradigm == STROBE_PYTHON && role == STROBE_ROLE_FUNCTION;
    regions_.unsaved.append(reinterpret_cast<const char*>(&id), 4).append(key.bytes);
    if (regions_.unsaved.size() > kFlushBytes) save_names(regions_, kRegionsChunk);
    if (so_far_) so_far_->region(id, name, role);
  }
  key.bytes.swap(region_key_);
  return id;
}

uint32_t ImportedProcess::text(std::string_view value) {
  bool is_new;
  const uint32_t id = intern(texts_, value, is_new);
  if (is_new) {
    checks_.define_text(id, value);
    const uint32_t size = uint32_t(value.size());
    texts_.unsaved.append(reinterpret_cast<const char*>(&size), 4).append(value);
    if (texts_.unsaved.size() > kFlushBytes) save_names(texts_, kTextsChunk);
  }
  return id;
}

uint32_t ImportedProcess::location(std::string_view name, uint64_t thread_id, LocationKind kind, int64_t device) {
  locations_.push_back({std::string(name), thread_id, kind, device, {}, {}, {}});
  return uint32_t(locations_.size() - 1);
}

void ImportedProcess::name_location(uint32_t location, std::string_view name) {
  Waiting& waiting = locations_[location];
  if (waiting.name == name) return;
  waiting.name = name;
  if (location < saved_locations_) write_location_chunk(location, waiting, name);
}

uint32_t ImportedProcess::table(TableLayout layout) {
  size_t time_column = kMaxColumns;
  for (size_t i = 0; !layout.of_spans && i < layout.columns.size(); i++)
    if (layout.columns[i].name == "time_ns") time_column = i;
  time_columns_.push_back(time_column);
  checks_.define_table(layout);
  tables_.push_back(std::make_unique<TableLayout>(std::move(layout)));
  return uint32_t(tables_.size() - 1);
}

uint32_t ImportedProcess::metric(std::string_view name, std::string_view unit, uint32_t location) {
  const auto [at, added] = metrics_.try_emplace({std::string(name), location}, uint32_t(metrics_.size()));
  if (added) {
    Writer w;
    w.text(name), w.text(unit), w.u32(location);
    append_chunk(out_->bytes, kMetricChunk, at->second, 1, w.bytes);
  }
  return at->second;
}

void ImportedProcess::sample(uint32_t metric, int64_t time_ns, double value) {
  if (out_of_range(time_ns)) return count("times_out_of_range");
  samples_.add(metric, time_ns, value);
  if (samples_.count() == kChunkRows) save_samples();
  first_ns_ = std::min(first_ns_, time_ns), last_ns_ = std::max(last_ns_, time_ns);
}

void ImportedProcess::save_samples() {
  samples_.append_to(out_->bytes, kSamplesAsTheyAre);
  out_->flush(kFlushBytes);
}

void ImportedProcess::span(uint32_t location, int64_t start_ns, int64_t duration_ns, uint32_t region, uint32_t place) {
  if (location >= locations_.size()) throw std::runtime_error("a span of a location that was not defined");
  if (out_of_range(start_ns)) {
    pending_.clear(), next_is_cut_ = false;
    return count("times_out_of_range");
  }
  if (duration_ns < 0) count("negative_durations"), duration_ns = 0;
  if (duration_ns >= kFarthestNs - std::max<int64_t>(start_ns, 0)) count("times_out_of_range"), duration_ns = 0;
  uint64_t details = 0;
  if (!pending_.empty()) {
    details = details_spill_->size() + 1;
    Writer length;
    length.number(pending_.size());
    details_spill_->append(length.bytes.data(), length.bytes.size());
    details_spill_->append(pending_.data(), pending_.size());
    pending_.clear();
  }
  if (next_is_cut_) {
    count("spans_cut");
    if (checks_.is_step(region)) count("steps_cut");
    details |= kCut;
    next_is_cut_ = false;
  }
  Waiting& at = locations_[location];
  at.records.push_back({start_ns, duration_ns, details, region, place});
  spans_++;
  checks_.seen(start_ns, region);
  if (so_far_) so_far_->span(region, duration_ns);
  first_ns_ = std::min(first_ns_, start_ns), last_ns_ = std::max(last_ns_, start_ns + duration_ns);
  if (++buffered_ >= buffer_records_) spill();
}

void ImportedProcess::spill() {
  for (Waiting& waiting : locations_) {
    auto& records = waiting.records;
    if (records.empty()) continue;
    if (!std::is_sorted(records.begin(), records.end(), before)) std::sort(records.begin(), records.end(), before);
    waiting.runs.push_back({spans_spill_->size(), records.size()});
    spans_spill_->append(records.data(), records.size() * sizeof(SpanRecord));
    std::vector<SpanRecord>().swap(records);
  }
  buffered_ = 0;
}

void ImportedProcess::row(uint32_t location, const TableRow& row) {
  if (location >= locations_.size()) throw std::runtime_error("a row of a location that was not defined");
  if (row.table() >= tables_.size()) return;
  const size_t time_column = time_columns_[row.table()];
  if (time_column < kMaxColumns && row.has(time_column) && out_of_range(row.cell(time_column)))
    return count("times_out_of_range");
  TableColumns& columns = columns_of(locations_[location].rows, row.table());
  uint64_t cells[kMaxColumns];
  const uint64_t present = row.present_cells(cells);
  columns.add(-1, present, cells);
  checks_.row(row.table(), present, cells);
  if (columns.rows() == kChunkRows) save_rows(columns, location);
}

TableColumns& ImportedProcess::columns_of(Columns& tables, uint32_t table) {
  if (tables.size() <= table) tables.resize(tables_.size());
  if (!tables[table]) tables[table] = std::make_unique<TableColumns>(*tables_[table]);
  return *tables[table];
}

void ImportedProcess::save_rows(TableColumns& columns, uint32_t location) {
  columns.append_to(out_->bytes, location);
  out_->flush(kFlushBytes);
}

// Spans that nest properly, and their attributes.
struct ImportedProcess::Lane {
  uint32_t id;
  LocationBuilder builder;
  struct Open {
    int64_t end_ns;
    uint32_t region;
    bool cut;
  };
  std::vector<Open> stack;
  Columns tables;
  void leave_until(int64_t ns) {
    for (; !stack.empty() && stack.back().end_ns <= ns; stack.pop_back())
      builder.leave(stack.back().region, stack.back().end_ns);
  }
  bool fits(int64_t end_ns) const { return stack.empty() || stack.back().end_ns >= end_ns; }
  // The number of innermost open spans that end before `end_ns`, if all of them give way, or none; else 0.
  size_t crossed(int64_t end_ns, const std::vector<bool>& gives_way, bool all) const {
    size_t n = 0;
    for (; n < stack.size() && stack[stack.size() - 1 - n].end_ns < end_ns; n++)
      if (gives_way[stack[stack.size() - 1 - n].region] != all) return 0;
    return n;
  }
  // The innermost `n` open spans end there.
  void clip(size_t n, int64_t ns) {
    for (size_t i = stack.size() - n; i < stack.size(); i++) stack[i].end_ns = ns;
    leave_until(ns);
  }
  // What has no end in the file stays open in ours, if it reaches to the end and nothing around it ends.
  void leave_rest(int64_t last_ns) {
    size_t open = 0;
    while (open < stack.size() && stack[open].cut && stack[open].end_ns == last_ns) open++;
    for (; stack.size() > open; stack.pop_back()) builder.leave(stack.back().region, stack.back().end_ns);
    if (open) builder.last_at(last_ns);
  }
};

// Reads rows as TableRow wrote them into columns; writes those that are full.
void ImportedProcess::decode_rows(Lane& lane, TraceChecks::Walk& walk, int64_t row, std::string_view bytes) {
  ByteReader in{bytes};
  uint64_t cells[kMaxColumns];
  while (!in.bytes.empty()) {
    const uint64_t table = in.number(), present = in.number();
    size_t n = 0;
    for (uint64_t left = present; left; left &= left - 1) cells[n++] = uint64_t(in.difference());
    if (!in.ok || table >= tables_.size()) return;
    TableColumns& columns = columns_of(lane.tables, uint32_t(table));
    columns.add(row, present, cells);
    checks_.row_of_span(walk, uint32_t(table), present, cells);
    if (columns.rows() == kChunkRows) save_rows(columns, lane.id);
  }
}

void ImportedProcess::write_details(Lane& lane, TraceChecks::Walk& walk, int64_t row, uint64_t details) {
  const std::string_view head = details_spill_->read(details - 1, 10);
  ByteReader in{head};
  const uint64_t size = in.number();
  const size_t length_bytes = head.size() - in.bytes.size();
  decode_rows(lane, walk, row, details_spill_->read(details - 1 + length_bytes, size));
}

void ImportedProcess::write_location_chunk(uint32_t id, const Waiting& waiting, std::string_view name) {
  Writer w;
  w.u64(waiting.thread_id), w.u8(uint8_t(waiting.kind)), w.text(name), w.u64(uint64_t(waiting.device));
  append_chunk(out_->bytes, kLocationChunk, id, 1, w.bytes);
}

void ImportedProcess::write_location(uint32_t location) {
  Waiting& waiting = locations_[location];
  checks_.see_text(waiting.name);
  if (location >= saved_locations_) write_location_chunk(location, waiting, waiting.name);
  std::deque<Lane> lanes;  // a builder does not move
  const auto add_lane = [&](uint32_t id) {
    lanes.push_back({id, LocationBuilder(id, *paths_), {}, {}});
    lanes.back().builder.resume(0, {}, first_ns_);  // times may be below 0
  };
  add_lane(location);
  TraceChecks::Walk walk;
  walk.stream = waiting.kind == LocationKind::stream, walk.host = waiting.device < 0;
  std::vector<SpanRecord> delayed;  // a heap, the earliest first
  const auto later = [](const SpanRecord& x, const SpanRecord& y) { return before(y, x); };
  const auto put = [&](const SpanRecord& record) {
    const int64_t end_ns = record.start_ns + record.duration_ns;
    for (Lane& lane : lanes) lane.leave_until(record.start_ns);
    // A mark begins inside of the function that sets it, and ends inside of another. Functions of Python give way, so
    // that the mark stays around all that it marks.
    Lane& first = lanes.front();
    const bool gives_way = gives_way_[record.region];
    if (const size_t n = first.crossed(end_ns, gives_way_, !gives_way)) {
      count("spans_clipped", gives_way ? 1 : n);
      if (gives_way) {
        const int64_t start_ns = first.stack[first.stack.size() - n].end_ns;
        delayed.push_back({start_ns, end_ns - start_ns, record.details, record.region, record.order});
        std::ranges::push_heap(delayed, later);
        return;
      }
      first.clip(n, record.start_ns);
    }
    const auto found = std::ranges::find_if(lanes, [&](const Lane& lane) { return lane.fits(end_ns); });
    Lane* fits = found == lanes.end() ? nullptr : &*found;
    if (!fits && lanes.size() == kMostLanes) return count("spans_not_kept");
    if (!fits) {
      const uint32_t id = location_ids_++;
      write_location_chunk(id, waiting, waiting.name + " (lane " + std::to_string(lanes.size() + 1) + ")");
      add_lane(id);
      fits = &lanes.back();
    }
    if (fits != &lanes.front()) count("overlapping_spans");
    checks_.span(walk, record.start_ns, end_ns, record.region);
    // A block ends before a span begins, so that what is open there is what encloses it.
    if (fits->builder.full()) fits->builder.seal(out_->bytes, 0, 0), out_->flush(kFlushBytes);
    const int64_t row = int64_t(fits->builder.spans());
    fits->builder.enter(record.region, record.start_ns);
    fits->stack.push_back({end_ns, record.region, (record.details & kCut) != 0});
    if (const uint64_t details = record.details & ~kCut) write_details(*fits, walk, row, details);
  };
  const auto put_delayed_before = [&](const SpanRecord* next) {
    while (!delayed.empty() && (!next || before(delayed.front(), *next))) {
      std::ranges::pop_heap(delayed, later);
      const SpanRecord record = delayed.back();
      delayed.pop_back();
      put(record);
    }
  };
  Merge merge(waiting, *spans_spill_);
  for (SpanRecord record; merge.next(record);) put_delayed_before(&record), put(record);
  put_delayed_before(nullptr);
  for (Lane& lane : lanes) {
    lane.leave_rest(last_ns_);
    if (lane.builder.dirty() || !lane.stack.empty()) lane.builder.seal(out_->bytes, 0, 0);
    for (auto& columns : lane.tables)
      if (columns) columns->append_to(out_->bytes, lane.id);
  }
  for (auto& columns : waiting.rows)
    if (columns) columns->append_to(out_->bytes, location);
  std::vector<SpanRecord>().swap(waiting.records);
  out_->flush(kFlushBytes);
}

void ImportedProcess::totals(uint32_t location, uint32_t path, const SpanTotals& totals) {
  if (location >= locations_.size() || path >= paths_->size())
    throw std::runtime_error("a total of a location or a call path that was not defined");
  SpanStatistics row;
  static_cast<SpanTotals&>(row) = totals;
  totals_.add({location, path, kNoClass}, row);
}

void ImportedProcess::save_totals() {
  uint32_t count = 0;
  // Paths that only totals have: those of spans were written with their blocks.
  const std::string paths = paths_->unsaved(count);
  if (count) append_chunk(out_->bytes, kPathsChunk, paths_->size() - count, count, paths);
  paths_->mark_saved();
  append_statistics(out_->bytes, totals_);
}

std::string rank_note(int64_t rank, int64_t ranks) {
  std::string note;
  json::Object object(note);
  object.number("rank", rank);
  if (ranks >= 0) object.number("ranks", ranks);
  object.end();
  return note;
}

void append_process(std::string& out, const ProcessDescription& description, int64_t started_ns) {
  std::string json;
  json::Object process(json);
  process.number("pid", description.pid), process.number("parent_pid", description.parent_pid);
  process.number("started_ns", started_ns), process.key("forked") += "false", process.number("put_ns", 0);
  process.key("description") += description.description_json;
  process.end();
  append_chunk(out, kProcessChunk, 0, 1, json);
  if (!description.note_json.empty()) append_chunk(out, kNoteChunk, 0, 1, description.note_json);
}

void append_end(std::string& out, std::string_view end_state, int64_t exit_code, int64_t ended_ns,
                const std::map<std::string, uint64_t>& counters) {
  std::string json;
  json::Object end(json);
  end.text("end_state", end_state), end.number("exit_code", exit_code), end.number("ended_ns", ended_ns);
  end.numbers("counters", counters);
  end.end();
  append_chunk(out, kEndChunk, 0, 1, json);
}

void ImportedProcess::report(json::Object& to) const {
  to.number("spans", int64_t(spans_)), to.number("first_ns", first_ns_), to.number("last_ns", last_ns_);
}

void ImportedProcess::save_process(const ProcessDescription& description) {
  if (!begun_) append_process(out_->bytes, description, description.started_ns.value_or(first_ns_));
  begun_ = true;
}

void ImportedProcess::save(const ProcessDescription& description) {
  save_process(description);
  save_names(texts_, kTextsChunk);
  for (uint32_t location = 0; location < locations_.size(); location++) {
    Waiting& waiting = locations_[location];
    if (location >= saved_locations_) write_location_chunk(location, waiting, waiting.name);
    for (auto& columns : waiting.rows)
      if (columns && columns->rows()) save_rows(*columns, location);
  }
  saved_locations_ = uint32_t(locations_.size());
  out_->flush();
}

void ImportedProcess::finish(const ProcessDescription& description, const std::string& end_state) {
  if (finished_) return;
  finished_ = true;
  if (first_ns_ > last_ns_) first_ns_ = last_ns_ = 0;
  save_process(description);
  save_names(regions_, kRegionsChunk);
  save_names(texts_, kTextsChunk);
  location_ids_ = uint32_t(locations_.size());
  checks_.sort();
  for (uint32_t location = 0; location < locations_.size(); location++) write_location(location);
  checks_.add_to(counters_);
  if (paths_->folded()) counters_["paths_folded"] = paths_->folded();
  save_totals();
  save_samples();
  records_.not_kept(counters_.contains("spans_not_kept") ? counters_["spans_not_kept"] : 0);
  append_end(out_->bytes, end_state, description.exit_code, description.ended_ns.value_or(last_ns_), counters_);
  out_->flush();
}

}  // namespace strobe
