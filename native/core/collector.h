// collector.h - decides, while the program runs, which iterations stay in detail and which become statistics.
//
// Searching: everything is kept, as without a collector. Collecting, once the detector believes in a loop: rows wait in
// the builders until their iteration has ended; then they are kept, or folded. What waits too long for the ring folds
// into *pending* statistics, which join the iteration's class at its end. Only the drainer's thread comes here.
// docs/decisions/0006-loops-while-the-program-runs.md says why.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/builder.h"
#include "core/regions.h"
#include "core/ring.h"
#include "core/short_spans.h"
#include "core/statistics.h"
#include "structure/cutter.h"
#include "structure/detector.h"
#include "structure/flow_graph.h"
#include "structure/iterations.h"
#include "structure/regions.h"

namespace strobe {

class Collector {
 public:
  // `keep`: iterations to keep in detail, spread over the run; 0: none, only statistics. Functions shorter than
  // `min_duration_ns` become statistics there, too. `commit` writes all that is decided (see Session::commit).
  Collector(uint32_t keep, uint64_t min_duration_ns, RegionTable& regions, PathTable& paths,
            std::function<void()> commit);
  ~Collector();
  Collector(const Collector&) = delete;

  enum PlaceKind { kThread, kMain, kStream, kTask };
  // A location, before its first span.
  void add(LocationBuilder& builder, PlaceKind kind);
  // A location's thread has ended and all its records were fed: its rows are decided now. After the next commit, remove
  // gives the graph's payload (empty: none).
  void end(LocationBuilder& builder);
  std::string remove(LocationBuilder& builder);
  // Whether statistics take so much room that those of locations that have ended should be written now.
  bool crowded() const;
  // A chunk with the statistics of locations that were removed, once there are some; they are in memory no more.
  std::string take_ended();

  // `keep` of a collector that keeps every iteration, until it is told otherwise.
  static constexpr uint32_t kAll = 0x7FFFFFFF;
  // From now on only so many iterations, if that is less than before; 0: statistics only.
  void shed(uint32_t keep) { keep_ = std::min(keep_, keep); }

  // Whether rows are written as they come: nothing waits.
  bool plain() const { return !loop_ && keep_ > 0 && !short_.on(); }
  // What was launched on streams before this moment was fed.
  void streams_told(int64_t launched_ns) { streams_told_ns_ = launched_ns; }
  // Decides about what the marks fed since the last call tell.
  void decide(int64_t now_ns);
  // The ring of this location is half full (`nearly`: three quarters) of rows that wait: makes room.
  void press(LocationBuilder& builder, bool nearly);
  // Whether so many rows are settled that they should be written.
  bool has_blocks() const;
  bool has_settled(const LocationBuilder& builder) const;
  // Whether statistics have changed since the last snapshot: one is to be written before the blocks.
  bool needs_snapshot() const { return folded_; }
  std::string snapshot();  // the bytes of the next one, for (sequence % 2) * kSnapshotStride
  uint64_t snapshot_sequence() const { return sequence_; }
  // Iteration records that fill a chunk; they are part of the next commit.
  void take_full_chunks(std::string& out);
  void committed();

  // The end of the recording: the last iteration, and everything that is still to be written but blocks.
  void finish(int64_t now_ns);
  std::string last_chunks();
  uint64_t statistics_folded() const { return statistics_folded_; }
  uint64_t short_spans() const { return short_spans_; }  // left out of what is kept in detail

 private:
  struct PathFacts {
    structure::Signature signature{0};
    uint32_t function_above = kNoPath;  // the nearest path above that is a function
    uint32_t node = 0;                  // in the main thread's graph, + 1; 0: not seen there
    uint16_t anchor = kNoAnchor;
    int8_t part = structure::kNoPart;
    bool container : 1 = false;  // holds other parts of the step
    bool covered : 1 = false;    // an activity lies above
    bool function : 1 = false, torch : 1 = false, recursive : 1 = false;
    bool activity() const { return part >= 0 && !container && !covered; }
  };
  static_assert(sizeof(PathFacts) == 24);  // there are many
  static constexpr uint16_t kNoAnchor = 0xFFFF;
  class Place;
  friend class Place;

  struct Touch {  // a function that the current iteration has called
    uint32_t path = 0;
    int64_t total_ns = 0, first_ns = 0, last_ns = 0;
  };
  struct ClassFacts {
    uint64_t iterations = 0, kept = 0;
    void add(int64_t duration_ns);
    int64_t median() const { return sorted_ns_.empty() ? 0 : sorted_ns_[sorted_ns_.size() / 2]; }

   private:
    std::vector<int64_t> latest_ns_, sorted_ns_;  // durations of its latest iterations: a ring, and the same by size
    size_t oldest_ = 0;                           // in the ring
  };

  // Memory stays bounded: of a program with more paths the later ones are no part of any loop.
  static constexpr uint32_t kMostFacts = 1u << 16;
  PathFacts& facts(uint32_t path) {
    if (path >= kMostFacts) return facts_of_others_;
    while (path >= facts_.size()) learn(uint32_t(facts_.size()));
    return facts_[path];
  }
  void learn(uint32_t path);
  void cover();
  void main_entered(uint32_t path, uint32_t node, int64_t ns, uint64_t position);
  void main_closed(uint32_t path, int64_t start_ns, uint64_t start_position, int64_t end_ns, uint64_t position);
  void look(int64_t ns, const structure::Mark& here);
  void accept(const structure::Choice& choice, int64_t ns, const structure::Mark& here);
  void mark(const structure::Mark& mark);

  structure::Cut asked(const structure::Activity& wait, int64_t since_ns, int64_t latest_ns) const;
  structure::Cutter::Asking asking() const;
  void cut(const structure::Cut& cut);
  void begin_iteration(const structure::Cut& cut);
  void end_iteration(const structure::Cut& end, size_t main_rows, bool last);
  void scan(size_t until, int64_t end_ns);
  void touch(uint32_t path, int64_t start_ns, int64_t end_ns);
  // What ran on a stream is told long after it was launched: it follows the iteration that launched it. A task follows
  // that in which it began, or where it is told after that was decided, the next one.
  struct Decision {
    int64_t until_ns;
    bool keep;
    uint32_t class_id;
  };
  void settle_streams();
  void settle_stream(Place& place, uint64_t decisions);
  uint32_t class_of(const structure::Cut& from, int64_t end_ns);
  bool planned(uint64_t ordinal) const;
  bool keeping() const;  // rows of the current iteration are kept as they come
  void settle(const structure::Cut& until, bool keep, uint32_t class_id);
  size_t rows_until(const Place& place, const structure::Cut& cut) const;
  void fold(Place& place, size_t n, bool pending, uint32_t class_id);
  void keep(Place& place, size_t n, bool pending, uint32_t class_id);
  size_t leave_out_short(Place& place, size_t n, bool pending, uint32_t class_id);
  StatisticsKey room_for(const StatisticsTable& table, const StatisticsKey& key);
  void release_pending(uint32_t class_id);
  std::string definitions() const;
  std::string unwritten_iterations() const;

  uint32_t keep_;
  RegionTable& regions_;
  PathTable& paths_;
  ShortSpans short_;
  uint64_t short_spans_ = 0;
  std::function<void()> commit_;
  std::map<uint32_t, std::unique_ptr<Place>> places_;  // by location
  Place* main_ = nullptr;
  std::deque<Decision> decisions_;  // that some stream has still to follow; decision n is at n - decisions_gone_
  uint64_t decisions_gone_ = 0;
  int64_t streams_told_ns_ = INT64_MAX;

  std::deque<PathFacts> facts_;
  PathFacts facts_of_others_;
  bool uncovered_ = false;  // `covered` is to be told anew
  std::vector<uint32_t> region_of_node_;

  structure::Detector detector_;
  uint32_t previous_operator_ = 0, previous_call_ = 0;  // nodes of the latest events
  structure::Cutter cutter_;
  std::unique_ptr<structure::Choice> loop_;
  std::vector<structure::LoopRecord> loops_;
  std::vector<structure::Mark> marks_;              // not decided yet
  structure::Cut open_wait_ = structure::kNowhere;  // the data wait that the main thread is in
  structure::Mark last_anchor_{};
  bool anchored_ = false;  // an anchor has ended since the last mark
  int64_t last_mark_ns_ = 0, longest_ns_ = 0;
  bool silent_ = false;

  // The current iteration.
  bool in_iteration_ = false;
  structure::Cut begun_{};
  uint64_t ordinal_ = 0;    // since the loop was accepted
  bool kept_part_ = false;  // some of its rows are settled already
  bool pended_ = false;
  int64_t pending_until_ns_ = 0;
  size_t scanned_ = 0;  // rows of the main thread before this one are in the figures below
  uint32_t events_ = 0;
  uint64_t path_hash_ = 0;
  uint32_t previous_node_ = 0;
  std::vector<Touch> touched_;
  std::vector<uint32_t> touch_of_path_;   // index in touched_ + 1
  std::vector<uint64_t> open_functions_;  // positions of those that had not ended when they were looked at
  struct Edge {
    uint64_t key = 0;
    uint64_t iteration = 0;
  };
  std::vector<Edge> edges_;  // transitions taken, open addressing; those of earlier iterations count as empty
  size_t edges_used_ = 0;
  std::vector<uint64_t> node_seen_;   // iteration in which a node was seen last, + 1
  std::vector<uint64_t> node_usage_;  // iterations in which it was
  uint64_t iterations_seen_ = 0;      // with those before acceptance
  uint64_t scan_number_ = 0;
  uint64_t validations_ = 0;
  uint64_t outliers_ = 0;      // kept because they are slow
  double outlier_factor_ = 0;  // times the median of its class that an iteration takes to be one

  std::vector<structure::IterationClass> classes_;
  std::map<structure::IterationClass, uint32_t> class_by_regions_;
  std::deque<ClassFacts> class_facts_;
  ClassFacts all_;                                      // of all classes
  std::vector<structure::IterationRecord> iterations_;  // that no chunk holds yet
  uint64_t written_iterations_ = 0;

  StatisticsTable statistics_, pending_;
  std::set<uint32_t> ended_;    // locations that were removed and may have statistics
  size_t ended_not_taken_ = 0;  // of these, and of all rows, when it was last tried to write some
  size_t rows_not_taken_ = 0;
  bool folded_ = false;
  uint64_t statistics_folded_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace strobe
