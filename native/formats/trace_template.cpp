#include "formats/trace_template.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>

#include "core/spans/location_builder.h"
#include "formats/encoding/output_file.h"

namespace strobe {

namespace {

constexpr size_t kFlushBytes = 1 << 20;
constexpr uint32_t kChunkRows = 4096;
constexpr int64_t kLeastGapNs = 20;       // what a clock and a call take
constexpr uint64_t kMostSpans = 1 << 26;  // of a template, which is held in memory
constexpr size_t kFactors = 1 << 14;  // a table of random factors is as good as drawing each, at a tenth of the time

// Factors with a log-normal distribution and a mean of 1.
std::vector<float> random_factors(double sigma) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<float> factors(kFactors);
  double sum = 0;
  for (float& each : factors) sum += each = float(std::exp(normal(random)));
  for (float& each : factors) each = float(each * kFactors / sum);
  return factors;
}

// splitmix64 (Steele, Lea, Flood 2014): four factors are drawn from each number.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
};

std::string regions_of(const ProcessFile& process) {
  Writer w;
  for (const Region& r : process.regions) {
    w.u32(r.id), w.u8(r.paradigm), w.u8(r.role), w.u32(r.line);
    w.text(r.name), w.text(r.file), w.text(r.module);
  }
  std::string out;
  append_chunk(out, kRegionsChunk, 1, uint32_t(process.regions.size()), w.bytes);
  return out;
}

std::string texts_of(const ProcessFile& process) {
  std::string out;
  for (size_t first = 0; first < process.texts.size(); first += kChunkRows) {
    Writer w;
    const size_t end = std::min<size_t>(first + kChunkRows, process.texts.size());
    for (size_t i = first; i < end; i++) w.u32(uint32_t(process.texts[i].size())), w.bytes.append(process.texts[i]);
    append_chunk(out, kTextsChunk, uint32_t(first), uint32_t(end - first), w.bytes);
  }
  return out;
}

}  // namespace

TraceTemplate::TraceTemplate(const ProcessFile& process, const std::map<std::string, std::string>& ids,
                             bool attributes) {
  uint64_t spans = 0;
  for (const auto& [id, location] : process.locations) spans += location.spans;
  if (!spans) throw std::runtime_error("it contains no spans");
  if (spans > kMostSpans)
    throw std::runtime_error("its " + std::to_string(spans) + " spans are too many: cut a part out (strobe cut)");
  definitions_ = regions_of(process);
  if (attributes) definitions_ += texts_of(process);
  for (const auto& [id, location] : process.locations)
    if (location.spans) add_location(process, location);
  if (attributes) {
    for (LocationTemplate& location : locations_) {
      std::vector<int64_t> rows;
      process.each(location.id, INT64_MIN, INT64_MAX,
                   [&](uint64_t row, int64_t, int64_t, uint32_t, bool) { rows.push_back(int64_t(row)); });
      for (const auto& [name, chunks] : process.tables) add_table(process, name, location, rows, ids);
    }
  }
  for (const auto& [id, metric] : process.metrics) {
    const bool of_process = metric.location == 0xFFFFFFFF;
    if (!of_process && std::none_of(locations_.begin(), locations_.end(),
                                    [&, of = metric.location](const auto& each) { return each.id == of; }))
      continue;
    Writer w;
    w.text(metric.name), w.text(metric.unit), w.u32(metric.location);
    append_chunk(definitions_, kMetricChunk, id, 1, w.bytes);
    Samples samples{id, {}, metric.value};
    for (int64_t time : metric.time_ns) samples.moment.push_back(uint32_t(times_.size())), times_.push_back(time);
    samples_.push_back(std::move(samples));
  }
  number_moments();
}

void TraceTemplate::add_location(const ProcessFile& process, const Location& location) {
  Writer w;
  w.u64(location.thread_id), w.u8(location.kind), w.text(location.name), w.u64(uint64_t(location.device));
  append_chunk(definitions_, kLocationChunk, location.id, 1, w.bytes);
  LocationTemplate& made = locations_.emplace_back();
  made.id = location.id, made.spans = 0;
  struct Open {
    int64_t end_ns;
    uint32_t region;
  };
  std::vector<Open> stack;
  const auto step = [&](uint32_t region, int64_t ns, bool ends) {
    made.steps.push_back({region, uint32_t(times_.size()) << 1 | ends});
    times_.push_back(ns);
  };
  const auto leave = [&] {
    step(stack.back().region, stack.back().end_ns, true);
    stack.pop_back();
  };
  process.each(location.id, INT64_MIN, INT64_MAX, [&](uint64_t, int64_t start, int64_t end, uint32_t path, bool) {
    // Where spans begin and end at the same time, the depth shows which is inside.
    const size_t depth = process.path_depth[path];
    while (!stack.empty() && (stack.back().end_ns < start || (stack.size() > depth && stack.back().end_ns <= start)))
      leave();
    const uint32_t region = process.path_region[path];
    step(region, start, false);
    stack.push_back({stack.empty() ? end : std::min(end, stack.back().end_ns), region});
    made.spans++;
  });
  while (!stack.empty()) leave();
  spans_ += made.spans;
}

void TraceTemplate::add_table(const ProcessFile& process, const std::string& name, LocationTemplate& into,
                              const std::vector<int64_t>& rows, const std::map<std::string, std::string>& ids) {
  Table table;
  for (const auto& chunk : process.table_chunks(name))
    if (chunk.location == into.id && process.whole(chunk.payload))
      decode_table(chunk.payload, chunk.location, chunk.count, table);
  if (table.row.empty() || table.columns.size() > kMaxColumns) return;
  Rows made;
  made.layout = {name, {}, table.row[0] >= 0};
  for (const auto& [column, values] : table.columns) {
    if (column == "time_ns") made.time_column = made.layout.columns.size();
    made.layout.columns.push_back({column, values.type});
    const auto group = ids.find(column);
    made.id_group.push_back(kNoGroup);
    if (group == ids.end() || values.type != CellType::integer) continue;
    const auto known = std::find(groups_.begin(), groups_.end(), group->second);
    made.id_group.back() = size_t(known - groups_.begin());
    if (known == groups_.end()) groups_.push_back(group->second), highest_id_.push_back(0);
  }
  if (!made.layout.of_spans && made.time_column == kMaxColumns) return;  // sums without a time: of the run as a whole
  for (size_t i = 0; i < table.row.size(); i++) {
    int64_t span = -1;
    if (made.layout.of_spans) {
      const auto at = std::lower_bound(rows.begin(), rows.end(), table.row[i]);
      if (at == rows.end() || *at != table.row[i]) continue;  // of a span that is lost
      span = at - rows.begin();
    } else if (!table.columns[made.time_column].second.valid[i]) {
      continue;
    }
    uint64_t present = 0;
    for (size_t c = 0; c < table.columns.size(); c++) {
      const Table::Column& column = table.columns[c].second;
      if (!column.valid[i]) continue;
      present |= uint64_t(1) << c;
      made.cells.push_back(uint64_t(column.value[i]));
      if (made.id_group[c] != kNoGroup && column.value[i] > 0)
        highest_id_[made.id_group[c]] = std::max(highest_id_[made.id_group[c]], uint64_t(column.value[i]));
    }
    made.present.push_back(present);
    made.span.push_back(span);
    if (made.time_column < kMaxColumns) {
      made.moment.push_back(uint32_t(times_.size()));
      times_.push_back(table.columns[made.time_column].second.value[i]);
    }
  }
  into.tables.push_back(std::move(made));
}

// From the times as they were found to the moments at which something happens, in order.
void TraceTemplate::number_moments() {
  std::vector<int64_t> moments = times_;
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  const auto moment = [&](uint32_t found) {
    return uint32_t(std::lower_bound(moments.begin(), moments.end(), times_[found]) - moments.begin());
  };
  for (LocationTemplate& location : locations_) {
    for (Step& step : location.steps) step.moment_type = moment(step.moment_type >> 1) << 1 | (step.moment_type & 1);
    for (Rows& rows : location.tables)
      for (uint32_t& each : rows.moment) each = moment(each);
  }
  for (Samples& samples : samples_)
    for (uint32_t& each : samples.moment) each = moment(each);
  gap_ns_.push_back(0);
  for (size_t i = 1; i < moments.size(); i++) gap_ns_.push_back(moments[i] - moments[i - 1]);
  length_ns_ = moments.back() - moments.front();
  std::vector<int64_t>().swap(times_);
}

// One process as it is written: the builder of each location, and rows that wait to become chunks.
class TraceTemplate::Output {
 public:
  Output(const TraceTemplate& of, const ProcessCopy& copy)
      : template_(of), copy_(copy), file_(copy.blocks_path), random_{copy.seed}, factors_(random_factors(copy.sigma)) {
    const int64_t begin = copy.begin_ns.empty() ? 0 : copy.begin_ns[0];
    append_process(file_.bytes, copy.description, begin);
    file_.bytes += of.definitions_;
    for (const LocationTemplate& location : of.locations_) {
      builders_.push_back(std::make_unique<LocationBuilder>(location.id, paths_));
      builders_.back()->resume(0, {}, INT64_MIN);
      tables_.emplace_back();
      for (const Rows& rows : location.tables) tables_.back().push_back(std::make_unique<TableColumns>(rows.layout));
    }
    for (uint64_t highest : of.highest_id_)
      id_step_.push_back(highest > (uint64_t(1) << 62) / (copy.begin_ns.size() + 1) ? 0 : highest);
    moments_.resize(of.gap_ns_.size());
    written_.first_ns = begin;
  }

  void repeat(uint64_t repetition) {
    warp(repetition);
    for (size_t i = 0; i < template_.locations_.size(); i++) {
      const uint64_t first_row = builders_[i]->spans();
      write_spans(template_.locations_[i], *builders_[i]);
      for (size_t t = 0; t < tables_[i].size(); t++)
        write_rows(template_.locations_[i].tables[t], *tables_[i][t], template_.locations_[i].id, first_row,
                   repetition);
    }
    for (const Samples& samples : template_.samples_)
      for (size_t i = 0; i < samples.moment.size(); i++)
        write_sample(samples.metric, moments_[samples.moment[i]], samples.value[i]);
    written_.last_ns = moments_.back();
    written_.spans += template_.spans_;
  }

  WrittenProcess finish() {
    for (size_t i = 0; i < builders_.size(); i++) {
      if (builders_[i]->dirty()) builders_[i]->seal(file_.bytes, 0, 0);
      for (auto& table : tables_[i]) table->append_to(file_.bytes, template_.locations_[i].id);
    }
    waiting_.append_to(file_.bytes, 0);
    append_end(file_.bytes, "closed", 0, written_.last_ns, {});
    file_.flush();
    return std::move(written_);
  }

 private:
  // When each moment of the template comes in this repetition: every stretch between two takes longer or shorter by a
  // factor of its own. All locations share the moments, so whatever came first comes first.
  void warp(uint64_t repetition) {
    const double factor = copy_.factor[repetition];
    int64_t now = copy_.begin_ns[repetition];
    if (repetition) now = std::max(now, written_.last_ns + kLeastGapNs);
    const std::vector<int64_t>& gaps = template_.gap_ns_;
    moments_[0] = now;
    uint64_t bits = 0;
    for (size_t i = 1; i < gaps.size(); i++) {
      bits = i % 4 == 1 ? random_.next() : bits >> 16;
      const double gap = double(gaps[i]) * factor * double(factors_[bits & (kFactors - 1)]);
      moments_[i] = now += std::max(int64_t(gap), kLeastGapNs);
    }
    for (const ProcessCopy::Stall& stall : copy_.stalls) {
      if (stall.repetition != repetition || gaps.size() < 2) continue;
      const size_t at = 1 + std::min(size_t(stall.place * double(gaps.size() - 1)), gaps.size() - 2);
      written_.stall_ns.push_back(moments_[at - 1]);
      for (size_t i = at; i < gaps.size(); i++) moments_[i] += stall.duration_ns;
    }
  }

  void write_spans(const LocationTemplate& location, LocationBuilder& builder) {
    for (const Step& step : location.steps) {
      const int64_t ns = moments_[step.moment_type >> 1];
      if (step.moment_type & 1) {
        builder.leave(step.region, ns);
        continue;
      }
      // A block ends before a span begins, so that what is open there is what encloses it.
      if (builder.full()) builder.seal(file_.bytes, 0, 0), file_.flush(kFlushBytes);
      builder.enter(step.region, ns);
    }
  }

  void write_rows(const Rows& rows, TableColumns& into, uint32_t location, uint64_t first_row, uint64_t repetition) {
    const uint64_t* cell = rows.cells.data();
    uint64_t cells[kMaxColumns];
    for (size_t i = 0; i < rows.present.size(); i++) {
      size_t n = 0;
      for (uint64_t left = rows.present[i]; left; left &= left - 1, n++) {
        const auto column = size_t(__builtin_ctzll(left));
        const size_t group = rows.id_group[column];
        cells[n] = *cell++;
        if (group != kNoGroup && int64_t(cells[n]) > 0) cells[n] += repetition * id_step_[group];
        if (column == rows.time_column) cells[n] = uint64_t(moments_[rows.moment[i]]);
      }
      into.add(int64_t(first_row) + rows.span[i], rows.present[i], cells);
      if (into.rows() == kChunkRows) into.append_to(file_.bytes, location), file_.flush(kFlushBytes);
    }
  }

  void write_sample(uint32_t metric, int64_t ns, double value) {
    waiting_.add(metric, ns, value);
    if (waiting_.count() == kChunkRows) waiting_.append_to(file_.bytes, 0);
  }

  const TraceTemplate& template_;
  const ProcessCopy& copy_;
  OutputFile file_;
  Random random_;
  std::vector<float> factors_;
  PathTable paths_;
  std::vector<std::unique_ptr<LocationBuilder>> builders_;          // by location
  std::vector<std::vector<std::unique_ptr<TableColumns>>> tables_;  // by location, as its template has them
  std::vector<uint64_t> id_step_;                                   // by group: what each repetition adds
  std::vector<int64_t> moments_;
  strobe::Samples waiting_;
  WrittenProcess written_;
};

WrittenProcess TraceTemplate::write(const ProcessCopy& copy) const {
  Output out(*this, copy);
  for (uint64_t repetition = 0; repetition < copy.begin_ns.size(); repetition++) out.repeat(repetition);
  return out.finish();
}

}  // namespace strobe
