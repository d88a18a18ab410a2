#include "core/folding/collector.h"

#include <algorithm>
#include <utility>

namespace strobe {

using structure::Cut;
using structure::IterationRecord;
using structure::LoopKind;
using structure::Mark;

constexpr uint32_t kRecordsAChunk = 4096;
constexpr int64_t kPastNs = 60000000000;  // activities from before a loop is believed in

Collector::Collector(uint32_t keep, uint64_t min_duration_ns, RegionTable& regions, PathTable& paths,
                     std::function<void()> commit)
    : commit_(std::move(commit)),
      paths_(paths),
      cutter_([this](uint64_t position) { return around(position); }, true),
      facts_(regions, paths, detector_),
      loop_(facts_, regions, paths, detector_, cutter_, [this](const structure::Choice& c) { loop_accepted(c); }),
      figures_(facts_),
      plan_(keep),
      statistics_(paths),
      settler_(paths, statistics_,
               ShortSpans(min_duration_ns, [&regions](uint32_t region) { return regions.kind_of(region); }), commit_) {}

void Collector::add(LocationBuilder& builder, LocationRole kind, int64_t device) {
  if (kind == LocationRole::main_thread && main_) kind = LocationRole::thread;
  LocationRows& rows = settler_.add(builder, kind, {facts_, loop_, figures_, cutter_, kinds_, gpus_}, device);
  if (!rows.main()) return;
  main_ = &rows;
  statistics_.set_main_location(builder.location());
}

// --- iterations

void Collector::loop_accepted(const structure::Choice& choice) {
  settler_.decide_pending(kNoClass);
  in_iteration_ = false;
  ordinal_ = 0;
  calls_ = extra_calls(loop_.records().size() - 1);
  plan_.begin_loop();
  // What is usual is known from the iterations before.
  figures_.begin_loop(choice.times_ns.size() - 1, detector_.usage(choice.times_ns));
  std::vector<int64_t> durations_ns;
  for (size_t i = 1; i < choice.times_ns.size(); i++)
    durations_ns.push_back(choice.times_ns[i] - choice.times_ns[i - 1]);
  extras_.begin_loop(durations_ns);
}

void Collector::decide(int64_t now_ns) {
  facts_.update_parts();
  if (!loop_.choice()) {
    cutter_.forget(now_ns - kPastNs);
    kinds_.forget(now_ns - kPastNs);
    follow_on_streams();
    return;
  }
  for (const Mark& mark : loop_.take_marks())
    if (const auto found = cutter_.cut(mark)) cut(*found);
  follow_on_streams();
  loop_.look_for_silence(now_ns);
}

void Collector::follow_on_streams() {
  gpus_.proceed(streams_complete_ns_);
  if (settler_.settle_streams()) commit_blocks();
}

// One iteration ends here and the next one begins.
void Collector::cut(const Cut& cut) {
  if (in_iteration_ && cut.ns < begun_.ns) return;
  if (in_iteration_) {
    end_iteration(cut, RowSettler::rows_until(*main_, cut), false);
  } else {  // what lies before the first one stays, as all that came before it
    settler_.settle(cut, plan_.any(), kNoClass);
    commit_blocks();
  }
  begin_iteration(cut);
  cutter_.forget(cut.ns);
  kinds_.forget(cut.ns);
}

std::optional<structure::Around> Collector::around(uint64_t position) const {
  const LocationBuilder& builder = main_->builder;
  const size_t row = builder.first_from(position);
  if (row >= builder.rows() || builder.position_of(row) != position) return {};
  const int64_t above = builder.enclosing(row);
  if (above < int64_t(builder.settled())) return {};
  const int64_t start = builder.columns().start_ns[size_t(above)];
  const int64_t duration = builder.columns().duration_ns[size_t(above)];
  return {{start, duration == kOpen ? INT64_MAX : start + duration, builder.position_of(size_t(above))}};
}

void Collector::begin_iteration(const Cut& cut) {
  in_iteration_ = true;
  begun_ = cut;
  kept_part_ = pended_ = false;
  goes_on_until_ns_ = begun_.ns;
  goes_on_ = true;
  figures_.begin(cut, main_->builder.settled());
}

void Collector::end_iteration(const Cut& end, size_t main_rows, bool last) {
  figures_.scan(main_->builder, main_rows, end.ns);
  figures_.end();
  IterationRecord record;
  record.loop = uint32_t(loop_.records().size() - 1);
  record.start_ns = begun_.ns;
  record.duration_ns = end.ns - begun_.ns;
  record.events = figures_.events();
  record.path_hash = figures_.path_hash();
  record.class_id = class_of_iteration(end.ns);
  const std::vector<structure::PartInterval> parts =
      cutter_.split(begun_, end.ns, [this](uint32_t path) { return is_rare(path); });
  const structure::Cells cells = structure::cells_of(parts, kinds_.until(end.ns), begun_.ns, end.ns);
  for (int part = 0; part < structure::kParts; part++) record.parts_ns[part] = cells.part_ns(part);
  const bool kept =
      plan_.keeps(last || kept_part_ || loop_.silent(), ordinal_, record.duration_ns, durations_[record.class_id]);
  durations_[record.class_id].add(record.duration_ns);
  record.detail = !kept ? structure::kNoDetail : pended_ ? structure::kPartDetail : structure::kAllDetail;
  record.detail_ns = pended_ && kept ? pending_until_ns_ : record.start_ns;
  iterations_.push_back(record);
  cells_.add(cells);
  gpus_.add_step(begun_.ns, end.ns);
  ordinal_++;
  if (last) return;
  settler_.settle(end, kept, record.class_id);
  commit_blocks();
}

uint32_t Collector::class_of_iteration(int64_t end_ns) {
  const uint32_t number = extras_.add({
      .duration_ns = end_ns - begun_.ns,
      .calls = figures_.touched(),
      .validation = cutter_.validation(begun_, end_ns),
      .steps = figures_.iterations(),
      .calling = [this](uint32_t path) { return figures_.usage(path); },
      .called = [this](uint32_t path) { return figures_.touches(path); },
      .function_above = [this](uint32_t path) { return facts_.of(path).function_above; },
  });
  durations_.resize(extras_.all().size());
  return number;
}

std::vector<structure::ExtraCalls> Collector::extra_calls(size_t loops) const {
  std::vector<structure::ExtraCalls> calls = calls_;
  if (!loops) return calls;
  const auto loop = uint32_t(loops - 1);
  for (const uint32_t path : extras_.functions())
    calls.push_back({loop, path, figures_.recorded_usage(path), extras_.worth(path)});
  calls.push_back({loop, structure::kNoFunction, extras_.validations(), extras_.validations()});
  return calls;
}

bool Collector::keeping() const { return plan_.any() && (!in_iteration_ || loop_.silent() || plan_.planned(ordinal_)); }

// --- room in the rings

void Collector::press(LocationBuilder& builder, bool nearly) {
  LocationRows& rows = settler_.at(builder);
  if (rows.stream()) return press_stream(rows, nearly);
  // What is settled of an iteration that lasts long must not count for the one before.
  if (loop_.choice() && in_iteration_)
    if (const auto found = cutter_.cut_early(nearly)) {
      cut(*found);
      if (!nearly) return;  // what was settled now may be enough
    }
  const std::optional<size_t> settled = rows_to_press(rows, nearly);
  if (!settled) return;
  const size_t n = *settled;
  const int64_t until_ns = n < builder.rows() ? builder.columns().start_ns[n] : INT64_MAX;
  if (rows.main() && in_iteration_) {
    figures_.scan(builder, n, INT64_MAX);
    go_on(n, false);
  }
  if (keeping()) {
    kept_part_ = in_iteration_;
  } else if (rows.main() && in_iteration_) {
    pended_ = true;
    pending_until_ns_ = n < builder.rows() ? until_ns : builder.last_ns();
  }
  settler_.settle_rows(rows, n, keeping(), in_iteration_, kNoClass);
  builder.attached.decide(until_ns, keeping());
  if (rows.main()) figures_.continue_at(builder.settled());
}

void Collector::press_stream(LocationRows& rows, bool nearly) {
  const LocationBuilder& builder = rows.builder;
  const size_t waiting = builder.rows() - builder.settled();
  settler_.settle_stream_now(rows);
  if (builder.rows() - builder.settled() < waiting && !nearly) return;
  settler_.settle_rows(rows, builder.rows(), keeping(), in_iteration_, kNoClass);
}

// Up to which row a location under pressure is settled; nothing: it waits.
std::optional<size_t> Collector::rows_to_press(const LocationRows& rows, bool nearly) {
  const LocationBuilder& builder = rows.builder;
  // Rows from the next cut on belong to the next iteration: they go only if there is hardly any room left.
  size_t n = loop_.choice() ? RowSettler::rows_until(rows, cutter_.earliest(loop_.open_wait())) : builder.rows();
  if (n <= builder.settled()) {
    if (!nearly) return std::nullopt;
    n = builder.rows();
  }
  if (!settler_.leaves_out_short() || !keeping()) return n;
  // What may turn out to be short waits, unless there is hardly any room left.
  ShortSpans& rule = settler_.short_rule();
  const size_t decided =
      builder.first_undecided(n, rule.min_ns(), [&rule](uint32_t region) { return rule.may_go(region); });
  if (decided > builder.settled()) return decided;
  return nearly ? std::optional(n) : std::nullopt;
}

// --- the end of a location

void Collector::end(LocationBuilder& builder) {
  LocationRows& rows = settler_.at(builder);
  rows.over = true;
  const bool keep = plain() || keeping();
  settler_.settle_rows(rows, builder.rows(), keep, in_iteration_, kNoClass);
  builder.attached.decide(INT64_MAX, keep);
  if (rows.main()) loop_.take_marks(), in_iteration_ = false;
}

std::string Collector::remove(LocationBuilder& builder) {
  LocationRows& rows = settler_.at(builder);
  std::string payload = rows.take_graph();
  if (main_ == &rows) {
    main_ = nullptr;
    loop_.lose();
    statistics_.set_main_location(UINT32_MAX);
  }
  settler_.remove(builder.location());
  statistics_.location_ended(builder.location());
  return payload;
}

// --- what is written

bool Collector::has_settled(const LocationBuilder& builder) const {
  const LocationRows& rows = settler_.at(builder);
  return builder.settled() > 0 || rows.folded || (rows.over && builder.dirty());
}

bool Collector::has_blocks() const {
  return settler_.has_block() || iterations_.size() >= kRecordsAChunk || gpus_.most_known() >= kRecordsAChunk;
}

void Collector::take_full_chunks(std::string& out) {
  if (gpus_.most_known() >= kRecordsAChunk) {
    out += unwritten_gpu_lanes();
    gpus_.take_known();
  }
  if (iterations_.size() < kRecordsAChunk) return;
  out += unwritten_iterations();
  written_iterations_ += iterations_.size();
  iterations_.clear();
  cells_.clear();
}

std::string Collector::unwritten_iterations() const {
  std::string out;
  if (!iterations_.empty())
    append_chunk(out, kIterationsChunk, uint32_t(written_iterations_), uint32_t(iterations_.size()),
                 structure::encode_iterations(iterations_, cells_));
  return out;
}

std::string Collector::unwritten_gpu_lanes() const {
  std::string out;
  for (const auto& [device, known] : gpus_.known()) {
    if (!known.lanes.size()) continue;
    append_chunk(out, kGpuLanesChunk, known.first, uint32_t(known.lanes.size()),
                 structure::encode_gpu_lanes(device, known.lanes));
  }
  return out;
}

std::string Collector::definitions(const std::vector<structure::ExtraCalls>& calls) const {
  std::string out;
  const auto& loops = loop_.records();
  if (loops.empty()) return out;
  std::vector<structure::IterationClass> classes;
  for (const structure::ExtraSet& extras : extras_.all()) {
    classes.emplace_back();
    for (const structure::Extra& each : extras) {
      const bool function = each.kind == structure::Extra::function;
      classes.back().regions.push_back(function ? paths_.region(each.number) : each.kind == structure::Extra::other);
      classes.back().paths.push_back(each.number);
    }
  }
  append_chunk(out, kLoopsChunk, 0, uint32_t(loops.size()), structure::encode_loops(loops));
  append_chunk(out, kClassesChunk, 0, uint32_t(classes.size()), structure::encode_classes(classes, calls));
  return out + unwritten_iterations() + unwritten_gpu_lanes();
}

std::string Collector::snapshot() {
  Snapshot snapshot;
  snapshot.sequence = ++sequence_;
  if (main_) snapshot.main_location = main_->builder.location();
  for (const auto& [location, rows] : settler_.locations()) snapshot.folded_until[location] = rows->folded_until;
  snapshot.chunks = definitions(extra_calls(loop_.records().size()));
  statistics_.append_chunks(snapshot.chunks);
  return encode_snapshot(snapshot);
}

void Collector::committed() {
  settler_.committed();
  if (main_) figures_.continue_at(main_->builder.settled());
}

void Collector::finish(int64_t now_ns) {
  decide(now_ns);
  // What comes after the last strobe.step() is not a step.
  const bool ended = loop_.choice() && loop_.choice()->kind == LoopKind::hint && loop_.last_mark_ns() <= begun_.ns;
  if (loop_.choice() && in_iteration_ && main_ && loop_.last_mark_ns() >= begun_.ns && !ended && !cutter_.unmarked())
    end_last_iteration();
  gpus_.finish();
  settler_.decide_pending(kNoClass);
  for (auto& [location, rows] : settler_.locations()) {
    if (rows->stream()) settler_.settle_stream_now(*rows);
    rows->over = true;
    settler_.settle_rows(*rows, rows->builder.rows(), plan_.any(), false, kNoClass);
    rows->builder.attached.decide(INT64_MAX, plan_.any());
  }
}

void Collector::end_last_iteration() {
  const size_t row = go_on(main_->builder.rows(), true);
  end_iteration({goes_on_until_ns_, goes_on_until_ns_, 0}, row, true);
  in_iteration_ = false;
}

// If this is the last iteration, it ends with its mark, or goes on while what runs is known from the others. Returns
// the first waiting row behind that. `ended`: nothing more will come; else a function that is open may be known.
size_t Collector::go_on(size_t until, bool ended) {
  const LocationBuilder& builder = main_->builder;
  const RowColumns& columns = builder.columns();
  int64_t& end_ns = goes_on_until_ns_;
  if (const int64_t marked_ns = std::max(loop_.last_mark_ns(), begun_.fed_ns); marked_ns > end_ns) {
    end_ns = marked_ns;
    goes_on_ = true;
  }
  size_t row = builder.first_since(end_ns);
  for (; row < until && goes_on_; row++) {
    if (columns.start_ns[row] < end_ns) continue;  // inside of what was accepted already
    const uint32_t path = columns.path[row];
    const bool open = columns.duration_ns[row] == kOpen;
    if (open && !ended) continue;
    goes_on_ = !open && figures_.is_known(path);
    if (!goes_on_) break;
    const int64_t begin_ns = columns.start_ns[row];
    end_ns = begin_ns + columns.duration_ns[row];
    if (!cutter_.feeds(path)) continue;
    // Asked again: a new one begins, unless in vain, and something else is done with the end of the data.
    const size_t next = builder.first_since(end_ns);
    if (next < builder.rows() && 2 * figures_.usage(columns.path[next]) < figures_.iterations()) continue;
    end_ns = begin_ns;
    goes_on_ = false;
    break;
  }
  return row;
}

std::string Collector::last_chunks() {
  const std::vector<structure::ExtraCalls> calls = extra_calls(loop_.records().size());
  // What is encoded takes memory of its own: what nobody will ask again makes room first, one part after the other.
  detector_ = {};
  facts_.clear();
  std::string out = definitions(calls);
  statistics_.take_last_chunk(out);
  for (const auto& [location, rows] : settler_.locations()) {
    const uint32_t nodes = rows->graph.nodes();
    if (const std::string graph = rows->take_graph(); !graph.empty())
      append_chunk(out, kGraphChunk, location, nodes, graph);
  }
  return out;
}

}  // namespace strobe
