#include "core/collector.h"

#include <algorithm>
#include <utility>

namespace strobe {

using structure::Activity;
using structure::Choice;
using structure::Cut;
using structure::IterationClass;
using structure::IterationRecord;
using structure::LoopKind;
using structure::Mark;

namespace {

constexpr uint32_t kRecordsAChunk = 4096;
constexpr size_t kMostCaptures = 8;
constexpr int64_t kSilenceIntervals = 4;         // longest intervals without a mark ...
constexpr int64_t kLeastSilenceNs = 2000000000;  // ... and at least so long: the loop may have ended
constexpr int64_t kPastNs = 60000000000;         // activities from before a loop is believed in
constexpr uint32_t kKeptAtOnce = 4;              // of --keep N, at the beginning; the others at growing distances
constexpr uint64_t kKeptPerClass = 2;
constexpr double kOutlier = 3;                 // times the running median of its class
constexpr uint64_t kMostOutliers = 64;         // that are kept by this rule ...
constexpr uint64_t kOutlierEvery = 256;        // ... and one more for so many iterations; see end_iteration
constexpr uint64_t kOutlierMembers = 5;        // a class with fewer has no usual duration
constexpr size_t kLatest = 101;                // iterations that the running median is of
constexpr size_t kMostTransitions = 1u << 14;  // of one iteration that its hash is of
constexpr size_t kMostTouched = 1u << 14;      // functions of one iteration that may tell its class
// Less than usual: the detector's windows and what is known of paths take memory, too. 7.2 MB.
constexpr structure::GraphLimits kOnlineLimits{.nodes = 32768, .edges = 57344, .partition_bytes = 3u << 18};
constexpr size_t kEndedAtOnce = 256;                          // threads whose statistics are written together ...
constexpr size_t kRowsAtOnce = StatisticsTable::kLimit / 16;  // ... or rows, where the table is half full
constexpr double kUnusual = 0.5;       // share of the iterations that call an unusual function at most
constexpr double kWorthAClass = 0.02;  // share of a usual iteration that it costs at least

// The payload of a graph, which is gone then; empty without events.
std::string last_graph(structure::FlowGraph& graph) {
  if (!graph.events()) return {};
  const structure::GraphTables tables = structure::FlowGraph(std::move(graph)).tables();
  return structure::encode_graph(tables);
}

uint64_t mix(uint64_t v) {
  v = (v ^ v >> 31) * 0x9E3779B97F4A7C15ull;
  return v ^ v >> 29;
}

}  // namespace

// One location: its event flow graph, and what is known of its rows.
class Collector::Place final : public SpanObserver {
 public:
  Place(Collector& collector, LocationBuilder& builder, PlaceKind kind)
      : builder(builder),
        collector_(collector),
        main_(kind == kMain),
        stream_(kind == kStream || kind == kTask),
        task_(kind == kTask) {
    builder.observe(this);
  }

  void entered(uint32_t path, int64_t ns, uint64_t position) override {
    const uint32_t node = graph.enter(collector_.facts(path).signature.bits(), ns);
    open_.push_back({node, position});
    if (main_) collector_.main_entered(path, node, ns, position);
  }

  void closed(uint32_t path, size_t depth, int64_t start_ns, int64_t end_ns, uint64_t position) override {
    const Open open = open_[depth];
    open_.resize(depth);
    graph.leave(open.node, end_ns - start_ns);
    if (main_)
      collector_.main_closed(path, start_ns, open.position, end_ns, position);
    else if (const PathFacts& f = collector_.facts(path); !stream_ && f.part == structure::kBackward && f.activity())
      collector_.cutter_.add_elsewhere(start_ns, end_ns);
  }

  LocationBuilder& builder;
  structure::FlowGraph graph{kOnlineLimits};
  uint64_t folded_until = 0;          // position in the ring behind the last row that was folded
  bool folded = false, kept = false;  // since the last commit
  bool over = false;                  // nothing follows: the ends of open spans are to be written, too
  bool main() const { return main_; }
  bool stream() const { return stream_; }  // told when over, also a task
  bool task() const { return task_; }
  uint64_t followed = 0;  // of a stream: decisions, from the first one on

 private:
  struct Open {
    uint32_t node;
    uint64_t position;
  };
  Collector& collector_;
  const bool main_, stream_, task_;
  std::vector<Open> open_;
};

void Collector::ClassFacts::add(int64_t duration_ns) {
  if (latest_ns_.size() < kLatest) {
    latest_ns_.push_back(duration_ns);
  } else {
    const int64_t gone = std::exchange(latest_ns_[oldest_], duration_ns);
    oldest_ = (oldest_ + 1) % kLatest;
    sorted_ns_.erase(std::lower_bound(sorted_ns_.begin(), sorted_ns_.end(), gone));
  }
  sorted_ns_.insert(std::upper_bound(sorted_ns_.begin(), sorted_ns_.end(), duration_ns), duration_ns);
}

Collector::Collector(uint32_t keep, uint64_t min_duration_ns, RegionTable& regions, PathTable& paths,
                     std::function<void()> commit)
    : keep_(keep),
      regions_(regions),
      paths_(paths),
      short_(min_duration_ns, [&regions](uint32_t region) { return regions.kind_of(region); }),
      commit_(std::move(commit)) {
  facts_of_others_.signature = structure::Signature::of_region(kOverflowRegion);
}
Collector::~Collector() = default;

void Collector::add(LocationBuilder& builder, PlaceKind kind) {
  auto& place = places_[builder.location()];
  place = std::make_unique<Place>(*this, builder, kind == kMain && main_ ? kThread : kind);
  if (place->main()) main_ = place.get();
  place->followed = decisions_gone_;
}

// --- what paths are
// ----------------------------------------------------------------------------------------------------

void Collector::learn(uint32_t path) {
  const uint32_t region = paths_.region(path), parent = paths_.parent(path);
  const auto [name, paradigm] = regions_.name_of(region);
  facts_.emplace_back();
  PathFacts& f = facts_.back();
  f.part = structure::part_of_region(name, paradigm);
  f.function = structure::is_function(paradigm);
  f.torch = paradigm == STROBE_TORCH;
  if (paradigm == STROBE_PYTHON || paradigm == STROBE_USER)
    f.signature = structure::Signature::of_function(region, parent == kNoPath ? 0 : paths_.region(parent));
  else if (paradigm == STROBE_MPI)
    f.signature = structure::Signature::of_path(path);
  else
    f.signature = structure::Signature::of_region(region);
  if (const LoopKind kind = structure::anchor_of_region(name, paradigm); kind != LoopKind::structure) {
    const uint32_t anchor = detector_.add_anchor(kind, structure::anchor_name(name));
    if (anchor < kNoAnchor) f.anchor = uint16_t(anchor);
  }
  if (parent != kNoPath) f.function_above = facts_[parent].function ? parent : facts_[parent].function_above;
  for (uint32_t above = parent; above != kNoPath; above = paths_.parent(above)) {
    PathFacts& a = facts_[above];
    if (paths_.region(above) == region) f.recursive = true;
    if (a.anchor == f.anchor) f.anchor = kNoAnchor;  // an optimizer around another counts once
    // Users put ranges around a whole step; some optimizers run the backward pass.
    const bool other = (a.part == structure::kForward && f.part != structure::kForward && f.part >= 0) ||
                       (a.part == structure::kOptimizer && f.part == structure::kBackward);
    if (other && !a.container) a.container = true, uncovered_ = true;
  }
  f.covered = parent != kNoPath && (facts_[parent].covered || facts_[parent].activity());
}

void Collector::cover() {  // parents have smaller numbers than their children
  for (uint32_t path = 0; path < facts_.size(); path++) {
    const uint32_t parent = paths_.parent(path);
    facts_[path].covered = parent != kNoPath && (facts_[parent].covered || facts_[parent].activity());
  }
  uncovered_ = false;
}

// --- the main thread, event by event
// -----------------------------------------------------------------------------------

void Collector::main_entered(uint32_t path, uint32_t node, int64_t ns, uint64_t position) {
  PathFacts& f = facts(path);
  if (!f.node) {
    f.node = node + 1;
    if (region_of_node_.size() <= node) region_of_node_.resize(node + 1, 0);
    region_of_node_[node] = paths_.region(path);
    if (f.anchor != kNoAnchor) detector_.set_anchor(node, f.anchor);
  }
  if (f.part == structure::kDataWait && f.activity()) open_wait_ = {ns, 0, position};
  const Mark here{ns, ns, position, position};
  if (f.torch || !f.recursive) {
    uint32_t& previous = f.torch ? previous_operator_ : previous_call_;
    if (loop_) {
      if (loop_->by_level && loop_->among_operators == f.torch && loop_->marker.target == node &&
          (loop_->marker.is_node() || loop_->marker.source == previous)) {
        if (loop_->anchor == Choice::no_anchor)
          mark(here);
        else if (anchored_)
          mark(last_anchor_);  // the last anchor of an iteration ends it
      } else if (!loop_->by_level && f.anchor == loop_->anchor &&
                 (loop_->kind == LoopKind::range || loop_->kind == LoopKind::zero_grad)) {
        mark(here);
      }
    }
    previous = node;
    if (f.torch)
      detector_.operator_began(node, ns);
    else
      detector_.call_began(node, ns);
  }
  if (detector_.due()) look(ns, here);
}

void Collector::main_closed(uint32_t path, int64_t start_ns, uint64_t start_position, int64_t end_ns,
                            uint64_t position) {
  const PathFacts& f = facts(path);
  if (start_position == open_wait_.position) open_wait_ = structure::kNowhere;
  if (!open_functions_.empty() && open_functions_.back() == start_position) {
    open_functions_.pop_back();
    touch(path, start_ns, end_ns);
  }
  if (f.part >= 0 && f.activity()) {
    cutter_.add({start_ns, end_ns, start_position, path, structure::Part(f.part)});
    if (f.part == structure::kBackward) detector_.training_seen();
  }
  if (f.anchor == kNoAnchor) return;
  const Mark here{start_ns, end_ns, start_position, position};
  if (loop_ && f.anchor == loop_->anchor) {
    if (loop_->by_level)
      last_anchor_ = here, anchored_ = true;
    else if (loop_->kind != LoopKind::range && loop_->kind != LoopKind::zero_grad)
      mark(here);
  }
  detector_.anchor_ended(f.anchor, end_ns);
  if (detector_.due()) look(end_ns, here);
}

void Collector::mark(const Mark& mark) {
  marks_.push_back(mark);
  anchored_ = false;
  longest_ns_ = std::max(longest_ns_, mark.end_ns - last_mark_ns_);
  last_mark_ns_ = mark.end_ns;
  silent_ = false;
}

void Collector::look(int64_t ns, const Mark& here) {
  const auto choice = detector_.analyse(ns);
  if (!choice) return;
  if (loops_.size() < kMostCaptures) accept(*choice, ns, here);
  detector_.believe(&*choice);
}

void Collector::accept(const Choice& choice, int64_t ns, const Mark& here) {
  if (!loops_.empty()) loops_.back().ended_ns = ns;
  release_pending(kNoClass);
  loop_ = std::make_unique<Choice>(choice);
  structure::LoopRecord record;
  record.number = uint32_t(loops_.size());
  record.kind = choice.kind;
  if (choice.anchor != Choice::no_anchor)
    record.name = detector_.anchor_name(choice.anchor);
  else if (choice.marker.target < region_of_node_.size())
    record.name = regions_.name_of(region_of_node_[choice.marker.target]).first;
  record.accepted_ns = ns;
  record.accepted_iteration = choice.iterations;
  record.reason = choice.reason;
  record.confidence = choice.confidence;
  loops_.push_back(std::move(record));

  marks_.clear();
  in_iteration_ = false;
  ordinal_ = 0;
  outliers_ = 0;
  outlier_factor_ = kOutlier;
  validations_ = 0;
  silent_ = false;
  last_mark_ns_ = ns;
  longest_ns_ = choice.longest_ns;
  last_anchor_ = here;
  anchored_ = false;
  cutter_.begin(choice.kind, here);
  // What is usual is known from the iterations before.
  iterations_seen_ = choice.times_ns.size() - 1;
  const std::vector<uint32_t> usage = detector_.usage(choice.times_ns);
  node_usage_.assign(usage.begin(), usage.end());
  all_ = {};
  for (size_t i = 1; i < choice.times_ns.size(); i++) all_.add(choice.times_ns[i] - choice.times_ns[i - 1]);
}

// --- iterations
// --------------------------------------------------------------------------------------------------------

void Collector::decide(int64_t now_ns) {
  if (uncovered_) cover();
  if (!loop_) {
    cutter_.forget(now_ns - kPastNs);
    settle_streams();
    return;
  }
  const std::vector<Mark> marks = std::move(marks_);
  marks_.clear();
  for (const Mark& mark : marks)
    if (const auto found = cutter_.cut(mark, asking())) cut(*found);
  settle_streams();
  if (!silent_ && now_ns - last_mark_ns_ > std::max(kSilenceIntervals * longest_ns_, kLeastSilenceNs)) {
    silent_ = true;
    detector_.believe(nullptr);
  }
}

// One iteration ends here and the next one begins.
void Collector::cut(const Cut& cut) {
  if (in_iteration_ && cut.ns < begun_.ns) return;
  if (in_iteration_) {
    end_iteration(cut, rows_until(*main_, cut), false);
  } else {  // what lies before the first one stays, as all that came before it
    settle(cut, keep_ > 0, kNoClass);
  }
  begin_iteration(cut);
  cutter_.forget(cut.ns);
}

structure::Cutter::Asking Collector::asking() const {
  return [this](const Activity& wait, int64_t since, int64_t latest) { return asked(wait, since, latest); };
}

Cut Collector::asked(const Activity& wait, int64_t since_ns, int64_t latest_ns) const {
  const LocationBuilder& builder = main_->builder;
  size_t row = builder.first_from(wait.position);
  if (row >= builder.rows() || builder.position_of(row) != wait.position) return {wait.start_ns, 0, wait.position};
  const SpanColumns& columns = builder.columns();
  for (int64_t above; (above = builder.enclosing(row)) >= int64_t(builder.settled()); row = size_t(above)) {
    const int64_t start = columns.start_ns[size_t(above)], duration = columns.duration_ns[size_t(above)];
    if (duration == kOpen || start < since_ns || start + duration > latest_ns) break;
  }
  return {columns.start_ns[row], 0, builder.position_of(row)};
}

size_t Collector::rows_until(const Place& place, const Cut& cut) const {
  return place.main() ? place.builder.first_from(cut.position) : place.builder.first_since(cut.ns);
}

void Collector::begin_iteration(const Cut& cut) {
  in_iteration_ = true;
  begun_ = cut;
  kept_part_ = pended_ = false;
  events_ = 0;
  path_hash_ = 0;
  scanned_ = main_->builder.settled();
  scan_number_++;
  for (const Touch& touch : touched_) touch_of_path_[touch.path] = 0;
  touched_.clear();
  open_functions_.clear();
  edges_used_ = 0;
}

// Adds the rows of the main thread up to `until` to the figures of the current iteration.
void Collector::scan(size_t until, int64_t end_ns) {
  if (!in_iteration_) return;
  const LocationBuilder& builder = main_->builder;
  const SpanColumns& columns = builder.columns();
  for (size_t row = std::max(scanned_, builder.settled()); row < until; row++) {
    const uint32_t path = columns.path[row];
    const PathFacts& f = facts(path);
    const uint32_t node = f.node ? f.node - 1 : 0;
    events_++;
    if (node >= node_seen_.size()) node_seen_.resize(node + 1, 0);
    if (node >= node_usage_.size()) node_usage_.resize(node + 1, 0);
    if (node_seen_[node] != scan_number_) node_seen_[node] = scan_number_, node_usage_[node]++;

    const uint64_t key = uint64_t(previous_node_) << 32 | node;
    previous_node_ = node;
    if (edges_used_ < kMostTransitions && (edges_used_ + 1) * 2 > edges_.size()) {
      std::vector<Edge> old(std::max<size_t>(256, edges_.size() * 2));
      old.swap(edges_);
      for (const Edge& e : old) {
        if (e.iteration != scan_number_) continue;
        size_t at = mix(e.key) & (edges_.size() - 1);
        while (edges_[at].iteration == scan_number_) at = (at + 1) & (edges_.size() - 1);
        edges_[at] = e;
      }
    }
    const uint64_t hash = mix(key);
    size_t at = hash & (edges_.size() - 1);
    while (edges_[at].iteration == scan_number_ && edges_[at].key != key) at = (at + 1) & (edges_.size() - 1);
    if (edges_[at].iteration != scan_number_ && edges_used_ < kMostTransitions) {
      edges_[at] = {key, scan_number_};
      edges_used_++;
      path_hash_ += mix(hash + 1);
    }

    const int64_t start = columns.start_ns[row], duration = columns.duration_ns[row];
    if (!f.function || start < begun_.fed_ns) continue;
    if (duration == kOpen)
      open_functions_.push_back(builder.position_of(row));
    else if (start + duration <= end_ns)
      touch(path, start, start + duration);
  }
  scanned_ = std::max(scanned_, until);
}

void Collector::touch(uint32_t path, int64_t start_ns, int64_t end_ns) {
  if (path >= touch_of_path_.size()) touch_of_path_.resize(path + 1, 0);
  if (!touch_of_path_[path]) {
    if (touched_.size() >= kMostTouched) return;
    touched_.push_back({path, 0, start_ns, 0});
    touch_of_path_[path] = uint32_t(touched_.size());
  }
  Touch& touch = touched_[touch_of_path_[path] - 1];
  touch.total_ns += end_ns - start_ns;
  touch.last_ns = end_ns;
}

// The class of the iteration that has ended: the functions that at most half of the iterations call, and that cost
// enough.
uint32_t Collector::class_of(const Cut& from, int64_t end_ns) {
  const double most = kUnusual * double(iterations_seen_), least_ns = kWorthAClass * double(all_.median());
  const auto unusual = [&](uint32_t path) {
    const uint32_t node = facts_[path].node;
    return node && node - 1 < node_usage_.size() && double(node_usage_[node - 1]) <= most;
  };
  const auto validation = cutter_.validation(from, end_ns);
  bool enclosed = false;
  std::vector<std::pair<int64_t, uint32_t>> extras;
  for (const Touch& touch : touched_) {
    if (!unusual(touch.path)) continue;
    bool below = false;
    for (uint32_t above = facts_[touch.path].function_above; above != kNoPath && !below;
         above = facts_[above].function_above)
      below = unusual(above) && touch_of_path_[above];
    if (below || double(touch.total_ns) < least_ns) continue;
    extras.emplace_back(touch.first_ns, paths_.region(touch.path));
    enclosed |= validation && touch.first_ns <= validation->start_ns && touch.last_ns >= validation->end_ns;
  }
  if (validation && double(++validations_) <= std::max(1.0, most) && !enclosed)
    extras.emplace_back(validation->start_ns, 0);
  std::sort(extras.begin(), extras.end());
  IterationClass regions;
  for (const auto& [ns, region] : extras)
    if (std::find(regions.begin(), regions.end(), region) == regions.end()) regions.push_back(region);
  IterationClass key = regions;
  std::sort(key.begin(), key.end());
  const auto known = class_by_regions_.find(key);
  if (known != class_by_regions_.end()) return known->second;
  if (classes_.size() >= structure::kMostClasses) {
    if (classes_.size() == structure::kMostClasses)
      classes_.push_back(IterationClass{kOverflowRegion}), class_facts_.emplace_back();
    return structure::kMostClasses;
  }
  const auto id = uint32_t(classes_.size());
  classes_.push_back(std::move(regions));
  class_by_regions_.emplace(std::move(key), id);
  class_facts_.emplace_back();
  return id;
}

bool Collector::planned(uint64_t ordinal) const {
  if (keep_ == kAll) return true;
  if (ordinal < std::min(keep_, kKeptAtOnce)) return true;
  uint64_t at = kKeptAtOnce - 1, distance = 4;
  for (uint32_t i = kKeptAtOnce; i < keep_ && at < ordinal; i++, distance *= 4) at += distance;
  return keep_ > kKeptAtOnce && at == ordinal;
}

bool Collector::keeping() const { return keep_ > 0 && (!in_iteration_ || silent_ || planned(ordinal_)); }

void Collector::end_iteration(const Cut& end, size_t main_rows, bool last) {
  const int64_t end_ns = end.ns;
  scan(main_rows, end_ns);
  iterations_seen_++;
  IterationRecord record;
  record.loop = uint32_t(loops_.size() - 1);
  record.start_ns = begun_.ns;
  record.duration_ns = end_ns - begun_.ns;
  record.events = events_;
  record.path_hash = path_hash_;
  record.class_id = class_of(begun_, end_ns);
  cutter_.split(begun_, end_ns, record.parts_ns);

  ClassFacts& c = class_facts_[record.class_id];
  bool kept = keep_ > 0 && (last || kept_part_ || keeping() || c.iterations < kKeptPerClass);
  if (!kept && keep_ > 0 && c.iterations >= kOutlierMembers &&
      double(record.duration_ns) > outlier_factor_ * double(c.median())) {
    kept = true;
    outliers_++;
  }
  // Where many iterations are slow it takes more to be kept: noise must not hide a stall, nor fill the disk.
  if (outliers_ > kMostOutliers + ordinal_ / kOutlierEvery)
    outlier_factor_ *= kept ? 1.1 : 1;
  else
    outlier_factor_ = std::max(kOutlier, outlier_factor_ * 0.99);
  for (ClassFacts* each : {&c, &all_}) {
    each->add(record.duration_ns);
    each->iterations++;
  }
  record.detail = !kept ? structure::kNoDetail : pended_ ? structure::kPartDetail : structure::kAllDetail;
  record.detail_ns = pended_ && kept ? pending_until_ns_ : record.start_ns;
  iterations_.push_back(record);
  ordinal_++;
  if (!last) settle(end, kept, record.class_id);
}

// All rows before the cut are kept, or folded into the class; those of other threads go with them by their start.
void Collector::settle(const Cut& until, bool keep_them, uint32_t class_id) {
  release_pending(class_id);
  decisions_.push_back({until.ns, keep_them, class_id});
  for (auto& [location, place] : places_) {
    if (place->stream()) continue;
    const size_t n = rows_until(*place, until);
    if (keep_them)
      keep(*place, n, false, class_id);
    else
      fold(*place, n, false, class_id);
    place->builder.attached.decide(until.ns, keep_them);
  }
  if (has_blocks()) commit_();
}

void Collector::settle_streams() {
  uint64_t sure = decisions_gone_;
  for (const Decision& decision : decisions_) {
    if (decision.until_ns > streams_told_ns_) break;
    sure++;
  }
  if (sure == decisions_gone_) return;
  for (auto& [location, place] : places_)
    if (place->stream()) settle_stream(*place, sure);
  decisions_.erase(decisions_.begin(), decisions_.begin() + ptrdiff_t(sure - decisions_gone_));
  decisions_gone_ = sure;
  if (has_blocks()) commit_();
}

// A stream follows the first so many decisions.
void Collector::settle_stream(Place& place, uint64_t decisions) {
  LocationBuilder& builder = place.builder;
  place.followed = std::max(place.followed, decisions_gone_);
  for (; place.followed < decisions; place.followed++) {
    const Decision& decision = decisions_[size_t(place.followed - decisions_gone_)];
    if (!builder.rows()) continue;
    size_t n = builder.rows();
    if (place.task()) {
      n = builder.first_since(decision.until_ns);
    } else if (const uint64_t row =
                   builder.attached.span_since(decision.until_ns, builder.base_row() + builder.settled());
               row != PendingRows::kNoSpan) {
      n = size_t(row - builder.base_row());
    }
    if (decision.keep)
      keep(place, n, false, decision.class_id);
    else
      fold(place, n, false, decision.class_id);
  }
}

void Collector::keep(Place& place, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = place.builder;
  if (n <= builder.settled()) return;
  if (!short_.on()) builder.keep(n);
  while (builder.settled() < n) {
    // A kill cuts between two blocks: what is left out must not lie behind the first one of a commit.
    const size_t waiting = n - builder.settled();
    if (builder.settled() >= kBlockSpans) commit_();
    const size_t left = leave_out_short(place, builder.settled() + waiting, pending, class_id);
    n = builder.settled() + left;
  }
  place.kept = true;
}

// Rows before row n are settled, the short ones are summed up; up to where a block is full. Returns how many are left.
size_t Collector::leave_out_short(Place& place, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = place.builder;
  StatisticsTable& table = pending ? pending_ : statistics_;
  const uint32_t location = builder.location(), left_out = short_class(class_id);
  const uint64_t before = short_spans_;
  const size_t left = builder.fold_short(
      n, kBlockSpans - builder.settled(),
      [&](uint32_t path, int64_t duration) { return short_.is_short(paths_.region(path), duration); },
      [&](uint32_t path, int64_t duration, int64_t own) {
        table.add(room_for(table, {location, path, left_out}), duration, own);
        short_spans_++;
      },
      [&](uint32_t path, int64_t duration) { table.add_own(room_for(table, {location, path, left_out}), -duration); });
  if (short_spans_ == before) return left;
  const size_t behind = builder.settled();
  place.folded_until = behind < builder.rows() ? builder.position_of(behind) : builder.next_position();
  place.folded = folded_ = true;
  return left;
}

void Collector::fold(Place& place, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = place.builder;
  if (n <= builder.settled()) return;
  // A block may not hold rows that were kept before others were folded: a kill after it would lose the latter.
  if (place.kept) {
    const size_t waiting = n - builder.settled();
    commit_();
    n = builder.settled() + waiting;
  }
  StatisticsTable& table = pending ? pending_ : statistics_;
  const uint32_t location = builder.location();
  const uint64_t position = n < builder.rows() ? builder.position_of(n) : builder.next_position();
  builder.fold(
      n,
      [&](uint32_t path, int64_t duration, int64_t own) {
        table.add(room_for(table, {location, path, class_id}), duration, own);
      },
      [&](uint32_t path, int64_t duration) { table.add_own(room_for(table, {location, path, class_id}), -duration); });
  place.folded_until = position;
  place.folded = folded_ = true;
}

// Beyond the limit, which both tables share, the spans of a region are counted together, and beyond a second one all of
// them are: memory stays bounded.
StatisticsKey Collector::room_for(const StatisticsTable& table, const StatisticsKey& key) {
  const size_t rows = statistics_.size() + pending_.size();
  if (rows < StatisticsTable::kLimit || table.has(key)) return key;
  statistics_folded_++;
  const uint32_t location = main_ ? main_->builder.location() : key.location;
  const uint32_t none = is_short_class(key.class_id) ? short_class(kNoClass) : kNoClass;
  const StatisticsKey of_region{location, paths_.child(kNoPath, paths_.region(key.path)), none};
  if (rows < StatisticsTable::kFoldedLimit || table.has(of_region)) return of_region;
  return {location, paths_.child(kNoPath, kOverflowRegion), none};
}

void Collector::release_pending(uint32_t class_id) {
  if (!pending_.size()) return;
  const StatisticsTable pending = std::exchange(pending_, {});
  for (size_t i = 0; i < pending.size(); i++) {
    StatisticsKey key = pending.key(i);
    key.class_id = is_short_class(key.class_id) ? short_class(class_id) : class_id;
    statistics_.add(room_for(statistics_, key), pending.entry(i));
  }
  folded_ = true;
}

// --- room in the rings
// -------------------------------------------------------------------------------------------------

void Collector::press(LocationBuilder& builder, bool nearly) {
  Place& place = *places_.at(builder.location());
  if (place.stream()) {
    const size_t waiting = builder.rows() - builder.settled();
    settle_stream(place, decisions_gone_ + decisions_.size());
    if (builder.rows() - builder.settled() < waiting && !nearly) return;
    if (keeping())
      keep(place, builder.rows(), in_iteration_, kNoClass);
    else
      fold(place, builder.rows(), in_iteration_, kNoClass);
    return;
  }
  // What is settled of an iteration that lasts long must not count for the one before.
  if (loop_ && in_iteration_)
    if (const auto found = cutter_.cut_early(nearly, asking())) {
      cut(*found);
      if (!nearly) return;  // what was settled now may be enough
    }
  // Rows from the next cut on belong to the next iteration: they go only if there is hardly any room left.
  size_t n = loop_ ? rows_until(place, cutter_.earliest(open_wait_)) : builder.rows();
  if (n <= builder.settled()) {
    if (!nearly) return;
    n = builder.rows();
  }
  if (short_.on() && keeping()) {
    // What may turn out to be short waits, unless there is hardly any room left.
    const size_t decided =
        builder.first_undecided(n, short_.min_ns(), [this](uint32_t region) { return short_.may_go(region); });
    if (decided <= builder.settled() && !nearly) return;
    if (decided > builder.settled()) n = decided;
  }
  const int64_t until_ns = n < builder.rows() ? builder.columns().start_ns[n] : INT64_MAX;
  if (place.main()) scan(n, INT64_MAX);
  if (keeping()) {
    keep(place, n, in_iteration_, kNoClass);
    kept_part_ = in_iteration_;
  } else {
    if (place.main() && in_iteration_) {
      pended_ = true;
      pending_until_ns_ = n < builder.rows() ? builder.columns().start_ns[n] : builder.last_ns();
    }
    fold(place, n, in_iteration_, kNoClass);
  }
  builder.attached.decide(until_ns, keeping());
  if (place.main()) scanned_ = builder.settled();
}

void Collector::end(LocationBuilder& builder) {
  Place& place = *places_.at(builder.location());
  place.over = true;
  if (plain() || keeping())
    keep(place, builder.rows(), in_iteration_, kNoClass);
  else
    fold(place, builder.rows(), in_iteration_, kNoClass);
  builder.attached.decide(INT64_MAX, plain() || keeping());
  if (place.main()) marks_.clear(), in_iteration_ = false;
}

std::string Collector::remove(LocationBuilder& builder) {
  const auto found = places_.find(builder.location());
  std::string payload = last_graph(found->second->graph);
  if (main_ == found->second.get()) main_ = nullptr, loop_.reset();
  places_.erase(found);
  ended_.insert(builder.location());
  return payload;
}

bool Collector::crowded() const {
  const size_t rows = statistics_.size() + pending_.size();
  return rows >= std::max<size_t>(StatisticsTable::kLimit / 2, rows_not_taken_ + kRowsAtOnce);
}

// The rows of a thread are written at once, or none of them: recovery takes them from the file where it finds any.
std::string Collector::take_ended() {
  const bool many = crowded();
  if (ended_.size() < ended_not_taken_ + kEndedAtOnce && !many) return {};
  const auto has_ended = [this](const StatisticsKey& key) { return ended_.count(key.location) > 0; };
  std::set<uint32_t> waiting;  // for the class of the iteration, unless it lasts too long
  if (many) {
    const StatisticsTable of_ended = take_statistics(pending_, has_ended);
    for (size_t i = 0; i < of_ended.size(); i++) statistics_.add(of_ended.key(i), of_ended.entry(i));
  }
  for (size_t i = 0; i < pending_.size(); i++)
    if (has_ended(pending_.key(i))) waiting.insert(pending_.key(i).location);
  const StatisticsTable rows = take_statistics(
      statistics_, [&](const StatisticsKey& key) { return has_ended(key) && !waiting.count(key.location); });
  ended_ = std::move(waiting);
  ended_not_taken_ = ended_.size();
  rows_not_taken_ = statistics_.size() + pending_.size();
  uint32_t count = 0;
  std::string chunk;
  const std::string payload = encode_statistics(rows, [](uint32_t) { return true; }, count);
  if (count) append_chunk(chunk, kStatisticsChunk, 0, count, payload);
  return chunk;
}

bool Collector::has_settled(const LocationBuilder& builder) const {
  const Place& place = *places_.at(builder.location());
  return builder.settled() > 0 || place.folded || (place.over && builder.dirty());
}

bool Collector::has_blocks() const {
  for (const auto& [location, place] : places_)
    if (place->builder.settled() >= kBlockSpans) return true;
  return iterations_.size() >= kRecordsAChunk;
}

// --- what is written
// ---------------------------------------------------------------------------------------------------

void Collector::take_full_chunks(std::string& out) {
  if (iterations_.size() < kRecordsAChunk) return;
  out += unwritten_iterations();
  written_iterations_ += iterations_.size();
  iterations_.clear();
}

std::string Collector::unwritten_iterations() const {
  std::string out;
  if (!iterations_.empty())
    append_chunk(out, kIterationsChunk, uint32_t(written_iterations_), uint32_t(iterations_.size()),
                 structure::encode_iterations(iterations_));
  return out;
}

std::string Collector::definitions() const {
  std::string out;
  if (loops_.empty()) return out;
  append_chunk(out, kLoopsChunk, 0, uint32_t(loops_.size()), structure::encode_loops(loops_));
  append_chunk(out, kClassesChunk, 0, uint32_t(classes_.size()), structure::encode_classes(classes_, 0));
  return out + unwritten_iterations();
}

std::string Collector::snapshot() {
  Snapshot snapshot;
  snapshot.sequence = ++sequence_;
  if (main_) snapshot.main_location = main_->builder.location();
  for (const auto& [location, place] : places_) snapshot.folded_until[location] = place->folded_until;
  snapshot.chunks = definitions();
  for (const StatisticsTable* table : {&statistics_, &pending_}) {
    uint32_t count = 0;
    const std::string payload = encode_statistics(*table, [](uint32_t) { return true; }, count);
    if (count) append_chunk(snapshot.chunks, kStatisticsChunk, 0, count, payload);
  }
  return encode_snapshot(snapshot);
}

void Collector::committed() {
  for (auto& [location, place] : places_) place->folded = place->kept = false;
  folded_ = false;
  if (main_) scanned_ = main_->builder.settled();
}

void Collector::finish(int64_t now_ns) {
  decide(now_ns);
  // What comes after the last strobe.step() is no step.
  const bool ended = loop_ && loop_->kind == LoopKind::hint && last_mark_ns_ <= begun_.ns;
  if (loop_ && in_iteration_ && main_ && last_mark_ns_ >= begun_.ns && !ended && !cutter_.unmarked()) {
    // The last iteration ends with its mark, or goes on while what runs is known from the others.
    const LocationBuilder& builder = main_->builder;
    const SpanColumns& columns = builder.columns();
    int64_t end_ns = std::max(last_mark_ns_, begun_.fed_ns);
    const size_t from = builder.first_since(end_ns);
    size_t row = from;
    for (; row < builder.rows(); row++) {
      if (columns.start_ns[row] < end_ns) continue;  // inside of what was accepted already
      const uint32_t node = facts(columns.path[row]).node;
      const bool known = node && node - 1 < node_usage_.size() && node_usage_[node - 1] > 1;
      if (!known || columns.duration_ns[row] == kOpen) break;
      if (facts(columns.path[row]).part == structure::kDataWait) break;  // asked again: a new one begins
      end_ns = columns.start_ns[row] + columns.duration_ns[row];
    }
    end_iteration({end_ns, end_ns, 0}, row, true);
    in_iteration_ = false;
  }
  release_pending(kNoClass);
  for (auto& [location, place] : places_) {
    if (place->stream()) settle_stream(*place, decisions_gone_ + decisions_.size());
    place->over = true;
    if (keep_ > 0)
      keep(*place, place->builder.rows(), false, kNoClass);
    else
      fold(*place, place->builder.rows(), false, kNoClass);
    place->builder.attached.decide(INT64_MAX, keep_ > 0);
  }
}

std::string Collector::last_chunks() {
  // What is encoded takes memory of its own: what nobody will ask again makes room first, one part after the other.
  detector_ = {};
  facts_.clear();
  std::string out = definitions();
  uint32_t count = 0;
  const std::string payload = encode_statistics(statistics_, [](uint32_t) { return true; }, count);
  statistics_.clear();
  if (count) append_chunk(out, kStatisticsChunk, 0, count, payload);
  for (const auto& [location, place] : places_) {
    const uint32_t nodes = place->graph.nodes();
    if (const std::string graph = last_graph(place->graph); !graph.empty())
      append_chunk(out, kGraphChunk, location, nodes, graph);
  }
  return out;
}

}  // namespace strobe
