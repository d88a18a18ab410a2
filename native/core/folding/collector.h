// collector.h - decides, while the program runs, which iterations stay in detail and which become statistics.
//
// Searching: everything is kept, as without a collector. Collecting, once the detector believes in a loop: rows wait in
// the builders until their iteration has ended; then they are kept, or folded. What waits too long for the ring folds
// into *pending* statistics, which join the iteration's class at its end. Only the drainer's thread comes here.
// docs/decisions/0006-loops-while-the-program-runs.md has the reasons.
//
// The parts: main_loop.h finds the loop and its marks, structure/cutter.h cuts at them, iteration_figures.h and
// structure/step_classes.h describe an iteration, kept_iterations.h chooses what stays, row_settler.h keeps or folds
// rows, folded_statistics.h holds what they become. This class has their order.
#pragma once
#include <stdint.h>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/folding/folded_statistics.h"
#include "core/folding/iteration_figures.h"
#include "core/folding/kept_iterations.h"
#include "core/folding/location_rows.h"
#include "core/folding/main_loop.h"
#include "core/folding/path_facts.h"
#include "core/folding/row_settler.h"
#include "structure/cells.h"
#include "structure/cutter.h"
#include "structure/detector.h"
#include "structure/gpu_lanes.h"
#include "structure/iterations.h"
#include "structure/step_classes.h"

namespace strobe {

class Collector {
 public:
  // `keep`: iterations to keep in detail, spread over the run; 0: none, only statistics; kAll: all, until shed() is
  // called. Functions shorter than `min_duration_ns` become statistics there, too. `commit` writes all that is decided.
  Collector(uint32_t keep, uint64_t min_duration_ns, RegionTable& regions, PathTable& paths,
            std::function<void()> commit);
  Collector(const Collector&) = delete;
  static constexpr uint32_t kAll = KeptIterations::kAll;

  // A location, before its first span. `device`: of a stream.
  void add(LocationBuilder& builder, LocationRole kind, int64_t device = -1);
  // A location's thread has ended and all its records were fed: its rows are decided now. After the next commit, remove
  // gives the graph's payload (empty: none).
  void end(LocationBuilder& builder);
  std::string remove(LocationBuilder& builder);
  bool crowded() const { return statistics_.crowded(); }
  std::string take_ended() { return statistics_.take_ended(); }

  // From now on only so many iterations, if that is less than before; 0: statistics only.
  void shed(uint32_t keep) { plan_.shed(keep); }
  // Whether rows are written as they come: nothing waits.
  bool plain() const { return !loop_.choice() && plan_.any() && !settler_.leaves_out_short(); }
  // What was launched on streams before this moment was fed.
  void set_streams_complete(int64_t launched_ns) {
    settler_.set_streams_complete(launched_ns);
    streams_complete_ns_ = launched_ns;
  }
  // Decides about the iterations that the marks fed since the last call have ended.
  void decide(int64_t now_ns);
  // The ring of this location is half full (`nearly`: three quarters) of rows that wait: makes room.
  void press(LocationBuilder& builder, bool nearly);

  // Whether so many rows are settled that they should be written.
  bool has_blocks() const;
  bool has_settled(const LocationBuilder& builder) const;
  // Whether statistics have changed since the last snapshot: one is to be written before the blocks.
  bool needs_snapshot() const { return settler_.folded(); }
  std::string snapshot();  // the bytes of the next one, for (sequence % 2) * kSnapshotStride
  uint64_t snapshot_sequence() const { return sequence_; }
  // Iteration records that fill a chunk; they are part of the next commit.
  void take_full_chunks(std::string& out);
  void committed();

  // The end of the recording: the last iteration, and everything that is still to be written but blocks.
  void finish(int64_t now_ns);
  std::string last_chunks();
  uint64_t statistics_folded() const { return statistics_.without_room(); }
  uint64_t short_spans() const { return settler_.short_spans(); }

 private:
  void loop_accepted(const structure::Choice& choice);
  std::optional<structure::Around> around(uint64_t position) const;
  void follow_on_streams();
  void cut(const structure::Cut& cut);
  void begin_iteration(const structure::Cut& cut);
  void end_iteration(const structure::Cut& end, size_t main_rows, bool last);
  void end_last_iteration();
  size_t go_on(size_t until, bool ended);
  void press_stream(LocationRows& rows, bool nearly);
  std::optional<size_t> rows_to_press(const LocationRows& rows, bool nearly);
  bool keeping() const;  // rows of the current iteration are kept as they come
  void commit_blocks() {
    if (has_blocks()) commit_();
  }
  bool is_rare(uint32_t path) const { return structure::is_rare(figures_.usage(path), figures_.iterations()); }
  uint32_t class_of_iteration(int64_t end_ns);
  std::vector<structure::ExtraCalls> extra_calls(size_t loops) const;  // of the first so many loops, the last one now
  std::string definitions(const std::vector<structure::ExtraCalls>& calls) const;
  std::string unwritten_iterations() const;
  std::string unwritten_gpu_lanes() const;

  const std::function<void()> commit_;
  PathTable& paths_;
  structure::Detector detector_;
  structure::Cutter cutter_;
  structure::KindTimeline kinds_{1u << 14};  // of the main thread
  PathFactsTable facts_;
  MainLoop loop_;
  IterationFigures figures_;
  structure::ExtraSets extras_;
  std::vector<structure::RunningMedian> durations_;  // by set of extras: the class of an iteration
  std::vector<structure::ExtraCalls> calls_;         // of the loops before this one
  KeptIterations plan_;
  FoldedStatistics statistics_;
  RowSettler settler_;
  LocationRows* main_ = nullptr;

  // The current iteration.
  bool in_iteration_ = false;
  structure::Cut begun_{};
  uint64_t ordinal_ = 0;    // since the loop was accepted
  bool kept_part_ = false;  // some of its rows are settled already
  bool pended_ = false;
  int64_t pending_until_ns_ = 0;
  int64_t goes_on_until_ns_ = 0;
  bool goes_on_ = true;

  std::vector<structure::IterationRecord> iterations_;  // that no chunk holds yet
  structure::CellColumns cells_;                        // of these
  structure::GpuLanes gpus_;                            // of all iterations
  int64_t streams_complete_ns_ = INT64_MAX;
  uint64_t written_iterations_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace strobe
