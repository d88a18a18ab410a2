// session.h - recording of one process. session.cpp: start, stop, fork, windows; recording_thread.cpp and
// recording_rows.cpp: the slow path of the recording threads; streams.cpp: what ran on devices; c_api.cpp: strobe.h.
// The parts: trace_files.h, ring_slots.h, drainer.h, metric_samples.h, budget.h.
#pragma once
#include <pthread.h>
#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <string>

#include "core/rings/ring.h"
#include "core/rings/ring_sums.h"
#include "core/rings/row_kinds.h"
#include "core/session/drainer.h"
#include "core/session/metric_samples.h"
#include "core/session/ring_slots.h"
#include "core/session/streams.h"
#include "core/session/trace_files.h"
#include "core/spans/region_table.h"
#include "core/spans/text_table.h"
#include "core/spans/throttle.h"

namespace strobe {

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
  // Whether what comes now is recorded: begins with a forked child, and goes on where the recorder rests.
  bool awake();
  // A child that was forked and has made no record yet.
  bool forked() const { return state_.load(std::memory_order_acquire) == kForked && !muted_; }
  const char* folder() const { return folder_.c_str(); }
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

  // What became known while the process runs, as JSON.
  void note(std::string_view json) { files_.append_chunk(kNoteChunk, 0, 1, json); }
  void note_rank(int rank, int size);
  void note_call_site(const char* site, const char* object, uint64_t address);
  void name_process(const char* name);
  // The name of this process's block file with another suffix; empty without a session.
  std::string file_beside(const char* suffix) { return files_.beside(suffix); }
  void count(const char* what, uint64_t n) { files_.count(what, n); }
  double ns_per_tick() {
    const RingsHeader* header = files_.header();
    return header ? clock_line(header->first_pair, clock_pair()).ns_per_tick : 1;
  }
  // The program is about to become a user who may not make files in the trace folder.
  void open_all_files();
  const char* error() const { return files_.error(); }

  void slow_put(RecordKind kind, uint32_t region, uint64_t at_ticks, Producer& p);
  void slow_row(uint32_t kind, uint64_t at_ticks, const int64_t* values);
  void name_thread(const char* name);
  void thread_ended(Producer* owner);
  uint32_t text(std::string_view value);
  uint32_t region(const strobe_region_info& info);
  uint32_t location_of(uint64_t thread_id, const char* name);
  void location_over(uint64_t thread_id);
  void total(const strobe_total_key& key, const strobe_total_sums& more);
  strobe_line* lines(const char* file, const char* function, uint32_t function_line, uint32_t first, uint32_t count);
  void sample(uint32_t metric, double value);
  uint32_t metric(const char* name, const char* unit) { return samples_.metric(name, unit); }
  // Records what ran on a lane of a stream, from start_ns on, with the spans inside of it; false: it could not be.
  bool record(const strobe_stream& stream, StreamLane& lane, std::span<const strobe_stream_span> spans,
              int64_t start_ns);
  void set_streams_complete(int64_t launched_ns) { drainer_.set_streams_complete(launched_ns); }

  Throttle& throttle() { return throttle_; }
  RecorderCost& cost() { return cost_; }
  std::mutex& adapters_mutex() { return adapters_mutex_; }  // for the tables of adapters
  // For those that open streams, and for several threads that record one: held while they wait for room.
  std::mutex& streams_mutex() { return streams_mutex_; }

  // at-fork handlers
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  bool rests() const { return !active() || files_.failed() || paused_; }
  void set_state(State state);
  void forget_parts();
  void write_beginning();
  std::string process_json() const;
  std::string end_chunk(int exit_code);
  void count_unrecorded();
  void forked_without_files();
  void resume();
  bool new_ring(Producer& p);
  bool new_row_ring(RowProducer& r, const Producer& p);
  bool new_stream_ring(const strobe_stream& stream, StreamLane& lane);
  void connect(Producer& p, Slot& slot);
  bool make_recordable(Producer& p);  // files, drainer, ring of this thread; false: nothing is recorded
  bool wait_for_room(const RingHeader& ring, uint64_t head, uint64_t reserve);
  uint64_t next_look(const RingHeader& ring, uint64_t head, uint64_t reserve) const;
  static pthread_key_t thread_key();  // its destructor is called at a thread's end

  std::atomic<int> state_{kIdle};
  // A fork takes all mutexes, and that of own memory at last: in the child none is held by a thread that is not there.
  std::array<std::mutex*, 11> mutexes();
  std::mutex windows_;  // mute, unmute
  std::mutex streams_mutex_;
  std::mutex control_;  // start, stop, restart
  std::mutex adapters_mutex_;
  TraceFiles files_;
  RingSlots slots_{files_};
  RegionTable regions_;
  TextTable texts_;
  Throttle throttle_;
  MetricSamples samples_{files_};
  RecorderCost cost_;
  Drainer drainer_{files_, slots_, regions_, texts_, throttle_, samples_, cost_};
  std::atomic<RingHeader*> totals_{nullptr};
  RingHeader* lines_ = nullptr;  // the part of the rings file that still has room for counters of lines

  std::string folder_, description_, process_name_, counters_;
  strobe_options options_{};
  int64_t started_ns_ = 0;
  bool child_ = false, busy_before_fork_ = false;
  std::atomic<bool> paused_{false}, forks_{false}, stops_at_exit_{false};
  std::atomic<uint32_t> generation_{0};  // of the session: a ring of an earlier one must not be used
  // Recording windows.
  std::atomic<bool> muted_{false};
  int64_t muted_since_ns_ = 0;
  std::atomic<int64_t> recording_since_ns_{0};  // what was launched before belongs to no window, or to an earlier one
  bool was_muted_ = false;                      // spans that began outside of a window end in it
  std::atomic<uint32_t> window_{0};             // counts what mute ends
};

// Never destroyed: threads may still run while the process ends.
Session& session();

}  // namespace strobe
