// session.h - recording of one process. session.cpp: start, stop, fork; session_files.cpp: what it writes;
// producer.cpp: the slow path of the recording threads; drainer.cpp: the thread that turns records into blocks.
#pragma once
#include <pthread.h>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/builder.h"
#include "core/collector.h"
#include "core/held_file.h"
#include "core/line_counts.h"
#include "core/node_clock.h"
#include "core/process_metrics.h"
#include "core/regions.h"
#include "core/ring.h"
#include "core/rows.h"
#include "core/streams.h"
#include "core/texts.h"
#include "core/throttle.h"
#include "core/totals.h"

namespace strobe {

struct Slot {  // a part of the rings file: a ring of spans and the location it records, a ring of rows, or totals
  RingHeader* header = nullptr;
  uint64_t* data = nullptr;
  bool of_spans() const { return header->magic == kRingMagic; }
  const RowRecord* records() const { return reinterpret_cast<const RowRecord*>(data); }  // of a ring of rows
  Producer* owner = nullptr;  // nullptr once the thread has ended, and of other parts
  RowProducer* row_owner = nullptr;
  std::atomic<Slot*> rows{nullptr};  // of a ring of spans: the same thread's ring of rows, if it has one
  std::unique_ptr<LocationBuilder> builder;
  RecordDecoder decoder;
  uint64_t read = 0;     // records consumed
  bool watched = false;  // by the collector
};

class Session {
 public:
  enum State : int { kIdle = 0, kActive = 1, kForked = 2, kStopped = 3 };

  int start(const strobe_options& options);
  // `exit_code` >= 0: the process is about to end by _exit.
  void stop(int exit_code);
  void stop_at_exit();
  bool stops_at_exit() const { return stops_at_exit_; }
  bool active() const { return state_.load(std::memory_order_acquire) == kActive; }
  // Ends the drainer. The first record starts it again, in a fork the first after its end.
  void pause();
  void fork_begins() { forks_ = true, pause(); }
  void fork_ends() { forks_ = false; }
  // Between recording windows nothing is recorded: spans that are open end now, and what comes is dropped until unmute.
  void mute();
  void unmute();
  bool recording() const { return active() && !muted_.load(std::memory_order_acquire); }
  bool recording(int64_t launched_ns) const { return recording() && launched_ns >= recording_since_ns_; }
  // The name of this process's block file with another suffix; empty without a session.
  std::string file_beside(const char* suffix);
  // A fact that became known while the process runs.
  void note(std::string_view json);
  // Whether what comes now is recorded: begins with a forked child, and goes on where the recorder rests.
  bool awake();
  void slow_put(RecordKind kind, uint32_t region);
  void slow_row(uint32_t kind, uint64_t at_ticks, const int64_t* values);
  uint32_t text(std::string_view value);
  uint32_t location_of(uint64_t thread_id, const char* name);
  void location_over(uint64_t thread_id);
  void total(const strobe_total_key& key, const strobe_total_sums& more);
  strobe_line* lines(const char* file, const char* function, uint32_t function_line, uint32_t first, uint32_t count);
  bool tell(StreamProducer& stream, const strobe_stream_span& span);
  void streams_told(int64_t launched_ns) { streams_told_ns_.store(launched_ns, std::memory_order_release); }
  void turn_streams_with(void (*turn)(int));
  void turn_streams(int what);
  void name_thread(const char* name);
  void thread_ended(Producer* owner);
  void count(const char* what, uint64_t n);
  void save_regions(std::string_view payload, uint32_t count);
  uint32_t metric(const char* name, const char* unit);
  void sample(uint32_t metric, double value);
  void note_rank(int rank, int size);
  void open_all_files();
  Throttle& throttle() { return throttle_; }
  void hook_costs(const uint64_t* times, double ns);
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }
  void name_process(const char* name);
  const char* error() const { return error_; }
  RegionTable& regions() { return regions_; }
  std::mutex& adapters_mutex() { return adapters_mutex_; }  // for the tables of adapters
  // For those that open streams, and for several threads that tell of one: held while there is no room.
  std::mutex& streams_mutex() { return streams_mutex_; }

  // at-fork handlers
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  RingsHeader* header() const { return header_.load(std::memory_order_relaxed); }
  int open_files();
  int open_statistics();
  void forked_without_files();
  void forget_parent();
  void remove_files();
  int start_drainer();
  void stop_drainer();
  void resume();
  void end_open_spans();
  bool new_ring(Producer& p);
  bool new_row_ring(RowProducer& r, const Producer& p);
  bool new_stream_ring(StreamProducer& stream);
  bool make_recordable(Producer& p);  // files, drainer, ring of this thread; false: nothing is recorded
  bool wait_for_room(const RingHeader& ring, uint64_t head, uint64_t reserve);
  uint64_t next_look(const RingHeader& ring, uint64_t head, uint64_t reserve) const;
  Slot* free_slot();
  void append(const std::string& bytes);
  void write_down(const std::string& bytes);  // with file_mutex_
  bool rings_are_sound();                     // with file_mutex_; stops the recording where something was wrong
  void fail(const char* what, int error);
  void stop_producers();
  void drain();
  struct Work {         // a ring that has something to read
    Slot *slot, *rows;  // rows: its ring of rows, if it had one when `head` was read
    uint64_t head, row_head;
    bool ended;
  };
  bool round(bool last);  // whether there was anything to do
  void collect(const std::vector<Work>& work, int64_t now_ns, bool last);
  void seal(Slot& slot);
  static bool half_used(const Slot& slot);
  static bool rows_press(const Slot& slot);
  void emit_rows(Slot& slot, std::string& out);
  void rows_written(Slot& slot);
  // Writes what the collector has decided: first the snapshot of the statistics, then the blocks that let rings go on.
  void commit();
  void write_snapshot(const std::string& bytes, uint64_t sequence);
  void release(Slot& slot);
  void note_own_cpu();
  void measure_clock();
  void sample_metrics(int64_t now_ns);
  void stage(uint32_t metric, int64_t now_ns, double value);
  void save_staged();
  void write_metric(uint32_t metric, const char* name, const char* unit, uint32_t location);
  void keep_budget(int64_t now_ns);
  uint64_t bytes_of_others() const;
  bool too_dear(int64_t now_ns);
  double hook_cost_ns() const;
  void shed(uint32_t level, int64_t now_ns);
  void save_samples();
  void write_location(uint32_t location, uint64_t thread_id, const char* name);
  std::string process_json() const;
  std::string end_json(int exit_code);
  static void* drainer_main(void* self);
  static pthread_key_t thread_key();  // its destructor tells of a thread's end

  std::atomic<int> state_{kIdle};
  // Taken in this order where one holds several: streams, control, adapters, slots, regions, file, counters, throttle,
  // own memory. A fork takes them all, so that none is held in the child by a thread that is not there.
  std::mutex windows_;  // mute, unmute; before control
  std::mutex streams_mutex_;
  std::mutex control_;  // start, stop, restart
  std::mutex adapters_mutex_;
  std::mutex slots_mutex_;
  std::mutex file_mutex_;
  std::mutex samples_mutex_;  // metrics that are staged, the program's own metrics; before file
  std::mutex counters_mutex_;
  RegionTable regions_;
  Throttle throttle_;
  TextTable texts_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<PathTable> paths_;
  std::unique_ptr<Collector> collector_;  // nullptr: everything is kept
  std::vector<Slot*> live_;               // slots with a builder, as of the drainer's current round
  std::unique_ptr<ProcessMetrics> metrics_;
  NodeClock node_clock_;
  std::atomic<RingsHeader*> header_{nullptr};
  RingsHeader* parent_header_ = nullptr;  // of a forked child without files of its own: where it says that it gets none
  std::atomic<RingHeader*> totals_{nullptr};
  std::map<uint64_t, uint32_t> early_locations_;      // by thread: of threads that have recorded nothing themselves
  std::map<uint64_t, std::string> names_of_threads_;  // of those, what the program calls them
  RingHeader* lines_ = nullptr;  // the part of the rings file that still has room for counters of lines
  std::string folder_, description_, process_name_;
  HeldFile blocks_, rings_, statistics_;
  strobe_options options_{};
  std::string counters_;
  std::vector<std::pair<std::string, std::string>> own_metrics_;  // of the program: name, unit
  std::unordered_map<uint32_t, bool> thread_metrics_;             // locations whose metric is defined
  // What the budget has been spent on, and what was given up for it (budget.cpp).
  uint32_t shed_ = 0;
  int64_t next_budget_ns_ = 0, next_folder_ns_ = 0, next_overhead_ns_ = 0;
  uint64_t other_bytes_ = 0, records_seen_ = 0;
  double spent_ns_ = 0, program_cpu_ns_ = 0;
  uint64_t file_bytes_ = 0;
  uint32_t next_location_ = 0;
  int64_t earlier_cpu_ns_ = 0, started_ns_ = 0, next_sample_ns_ = 0, next_save_ns_ = 0;
  double put_ns_ = 0;
  // Of hooks that cost even where nothing is recorded: how often they ran, in all and before this recording, and what
  // they cost each time.
  std::atomic<const uint64_t*> hook_times_{nullptr};
  uint64_t hook_times_before_ = 0;
  double hook_ns_ = 0;
  bool child_ = false, busy_before_fork_ = false;
  std::atomic<bool> paused_{false}, muted_{false};
  int64_t muted_since_ns_ = 0;
  std::atomic<int64_t> streams_told_ns_{INT64_MAX};
  std::atomic<void (*)(int)> turn_streams_[4]{};
  std::atomic<int64_t> recording_since_ns_{0};  // what was launched before belongs to no window, or to an earlier one
  bool was_muted_ = false;                      // spans that began outside of a window end in it
  std::atomic<bool> forks_{false};
  std::atomic<uint32_t> drainer_id_{0};
  std::atomic<bool> failed_{false}, stops_at_exit_{false};
  std::atomic<uint32_t> generation_{0};  // of the session: a ring of an earlier one is no ring of ours
  std::atomic<uint32_t> window_{0};      // counts what mute ends
  uint64_t unmatched_ = 0, cut_ = 0;
  pthread_t drainer_{};
  std::atomic<uint32_t> wake_{0};
  std::atomic<bool> quit_{false};
  char error_[512] = "";
};

// Never destroyed: threads may still run while the process ends.
Session& session();

}  // namespace strobe
