// drainer.h - the thread that picks up what other threads record: pairs records, seals blocks, reads metrics, keeps the
// budget. One a process.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/folding/collector.h"
#include "core/session/budget.h"
#include "core/session/file_parts.h"
#include "core/session/metric_samples.h"
#include "core/session/ring_slots.h"
#include "core/session/trace_files.h"
#include "core/spans/region_table.h"
#include "core/spans/text_table.h"
#include "core/system/node_clock.h"

namespace strobe {

class Drainer {
 public:
  Drainer(TraceFiles& files, RingSlots& slots, RegionTable& regions, TextTable& texts, Throttle& throttle,
          MetricSamples& samples, RecorderCost& cost)
      : files_(files),
        slots_(slots),
        regions_(regions),
        texts_(texts),
        samples_(samples),
        cost_(cost),
        budget_(files, samples, throttle, cost) {}

  // A recording begins.
  void begin(const strobe_options& options, const std::string& folder);
  void set_clock_server(const std::string& server) { node_clock_.ask(server); }
  int start();  // the thread; 0 or errno
  void stop();
  void wait_until_gone();  // after stop, until the kernel has forgotten the thread
  void wake();
  void measure_metrics_now(int64_t now_ns) { next_sample_ns_ = now_ns; }

  // The rest while the thread does not run.
  // Reads what the rings hold; `last`: nothing follows. Returns whether the next round should come soon: much was
  // there, or a thread has ended, whose ring the next one can have.
  bool round(bool last);
  void end_open_spans();
  void measure_clock();
  std::unique_ptr<LocationBuilder> new_builder(uint32_t location) {
    return std::make_unique<LocationBuilder>(location, *paths_);
  }
  // Everything that was launched on streams before this moment is in the rings.
  void set_streams_complete(int64_t launched_ns) { streams_complete_ns_.store(launched_ns, std::memory_order_release); }
  bool folds() const { return collector_ != nullptr; }
  // What the quality table gets at the end.
  std::vector<std::pair<std::string, uint64_t>> counters() const;
  void forked();

 private:
  struct Work {         // a ring that has something to read
    Slot *slot, *rows;  // rows: its ring of rows, if it had one when `head` was read
    uint64_t head, row_head;
    bool ended;
  };
  void run();
  std::vector<Work> find_work(bool last);
  void watch(Slot& slot);
  void feed(const Work& work, const ClockPair& now);
  template <class At>
  void feed(const Work& work, At at_ns);
  void collect(const std::vector<Work>& work, int64_t now_ns, bool last);
  bool press_full_rings();
  void seal(Slot& slot);
  // Of a flight recorder: a new part begins with where every location is.
  void begin_part(int64_t now_ns);
  void emit_rows(Slot& slot, std::string& out);
  void rows_written(Slot& slot);
  // Writes what the collector has decided: first the snapshot of the statistics, then the blocks that let rings go on.
  void commit();
  void release(Slot& slot);
  void note_own_cpu();
  void read_metrics(int64_t now_ns);

  TraceFiles& files_;
  RingSlots& slots_;
  RegionTable& regions_;
  TextTable& texts_;
  MetricSamples& samples_;
  RecorderCost& cost_;
  Budget budget_;
  PartPlan parts_;
  NodeClock node_clock_;
  ClockCurve curve_;
  std::unique_ptr<PathTable> paths_;
  std::unique_ptr<Collector> collector_;  // nullptr: everything is kept
  std::vector<Slot*> live_;               // slots with a builder, as of the current round
  uint64_t unmatched_ = 0, cut_ = 0;      // of locations that are released
  uint32_t period_us_ = 0, metrics_period_ms_ = 0, ring_bytes_ = 0;
  bool metrics_as_they_cost_ = false;  // the program set no period
  uint64_t min_duration_ns_ = 0;
  int64_t next_sample_ns_ = 0, next_save_ns_ = 0, earlier_cpu_ns_ = 0;
  std::atomic<int64_t> streams_complete_ns_{INT64_MAX};
  pthread_t thread_{};
  std::atomic<uint32_t> thread_id_{0}, wake_{0};
  std::atomic<bool> quit_{false};
};

}  // namespace strobe
