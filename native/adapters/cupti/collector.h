// collector.h - what GPUs do in this process, as CUPTI tells it: calls of the runtime and the driver by callbacks, on
// the threads that make them; kernels, copies and sets by activity records, on streams.
//
// Started inside of the program's own cuInit (injection.cpp). One thread of ours asks CUPTI for what is complete, every
// second and whenever buffers fill up, and tells the core in order of time. CUPTI is never called with a lock of ours
// held: it calls us with its own.
#pragma once
#include <pthread.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/cupti/buffers.h"
#include "adapters/cupti/calls.h"
#include "adapters/cupti/edge.h"
#include "adapters/cupti/launch_lines.h"
#include "adapters/cupti/launches.h"
#include "adapters/cupti/library.h"
#include "adapters/cupti/records.h"

namespace strobe::cupti {

class Collector final : public Sink {
 public:
  enum State : int { kOff, kOn, kYielded, kForked, kFailed };

  // False: nothing is recorded of GPUs, and the trace says why.
  bool start();
  State state() const { return state_.load(); }
  // Of the recording of GPUs, for the trace; the last sentence about something counts.
  void say(const char* what, const std::string& sentence);
  // The recording rests, ends or goes on: STROBE_STREAMS_... Never waits for longer than a few seconds.
  void turned(int what);
  void forked();
  // Another profiler of this process, `to`, gets the GPUs: what is over is told, and nothing of ours stays enabled. Our
  // thread does it; the caller waits, for a few seconds at most. True: it is done.
  bool yield(const char* to);
  bool take_back();
  // Somebody else has the GPUs.
  bool yielded() const { return state_ == kYielded || (withheld_ && wanted_); }
  // What that one has recorded; in any order. Returns how many of them were not told before.
  uint64_t ingest(const strobe_gpu_span* spans, size_t count);

  uint32_t region(const char* name, uint8_t role) override;
  uint32_t text(const char* text) override { return strobe_text(text); }
  int64_t launched_ns(uint32_t correlation) override { return launches_.ns_of(correlation); }
  uint32_t captured_by(uint64_t graph_node) override;
  uint32_t call(const ApiRecord& record) override;
  std::string kernel_name(const char* name) override;
  void device(uint32_t number, const std::string& json) override;

 private:
  static constexpr auto kLongestWait = std::chrono::seconds(5);
  static constexpr int kLongestEndMs = 100;

  static uint64_t now();
  bool subscribe();
  void calls_by_records(bool on);
  bool ours_again(std::string& why);
  bool enable(Kind kind, const char* what);
  // What is recorded only where it is asked for; levels.cpp.
  void enable_levels();
  bool wants_unified_memory() const { return unified_memory_ && context_seen_ && state_ == kOn && !resting_; }
  void enable_unified_memory();
  void tell_waits(bool last);
  void count_costs();
  static void called(void* self, Domain domain, uint32_t cbid, const void* data);
  void on_call(const Calls& calls, Domain domain, uint32_t cbid, const CallbackData& data);
  void on_context();
  void on_resource(uint32_t cbid, const ResourceData& data);
  void on_node(const GraphData& graph, bool cloned);
  static void requested(uint8_t** buffer, size_t* bytes, size_t* records);
  static void completed(Context context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);
  static void* run(void* self);
  void run();
  enum Wish : int { kNothing, kYield, kTakeBack, kGoOn };
  bool grant(Wish wish);
  void finish(int what);
  void rest();
  void go_on();
  void let_go();
  void begin_again();
  void flush(bool forced);
  void tell(bool last = false);
  void tell_all();
  void enable_calls(bool on);
  void note_devices();
  void note_said();
  void watch_times();
  strobe_stream* stream_of(const DeviceSpan& span);

  std::atomic<State> state_{kOff};
  std::atomic<bool> withheld_{false}, wanted_{false};  // yielded before the program used a GPU; it does now
  std::mutex notes_mutex_;
  std::map<uint32_t, std::string> devices_;  // what is known of each, JSON
  std::map<std::string, std::string> said_;  // of the recording of GPUs, for the trace
  Library library_;
  Subscriber subscriber_ = nullptr;
  Calls runtime_, driver_;  // never changed once we have subscribed
  std::atomic<bool> calls_by_records_{false};
  std::vector<Kind> enabled_;
  std::atomic<uint32_t> subscriptions_{0};  // a call that began under an earlier one does not end under this one
  std::atomic<uint32_t> rests_{0};          // nor one that began before the recording rested
  Launches launches_;
  LaunchLines lines_;
  Buffers buffers_;
  std::unique_ptr<Decoder> decoder_;
  std::atomic<bool> names_changed_{false}, context_seen_{false};
  std::atomic<bool> unified_memory_{false};  // is to be asked for, once there is a context
  std::mutex nodes_mutex_;
  std::unordered_map<uint64_t, uint32_t> captured_by_;  // graph nodes

  struct Filled {
    uint8_t* buffer;
    size_t valid;
  };
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_, done_;
  std::vector<Filled> filled_;
  static constexpr int kAskedNothing = -1;
  int asked_ = kAskedNothing;  // STROBE_STREAMS_...
  uint64_t rounds_ = 0;
  Wish wish_ = kNothing;
  std::string yielded_to_;
  uint64_t granted_ = 0;
  std::atomic<int64_t> yielded_ns_{0};  // while it is

  std::mutex telling_mutex_;            // one thread at a time tells; no CUPTI is called while it is held
  std::vector<DeviceSpan> last_round_;  // that our thread told
  Edge told_last_, ingested_last_;
  uint64_t ingested_ = 0;
  bool yielding_ = false;
  int64_t shared_ns_ = 0, taken_back_ns_ = 0;
  uint32_t times_shared_ = 0;

  // Of our thread alone.
  pthread_t thread_{};
  bool resting_ = false;  // nothing is enabled
  uint32_t noted_ = 0;    // the recording that knows what has been said
  std::vector<DeviceSpan> spans_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> context_numbers_;  // device, context -> its number on that device
  std::map<std::pair<uint32_t, uint32_t>, strobe_stream*> streams_;    // context, stream
  struct Costs {                                                       // that are in the table quality; whole ms
    uint64_t overhead_ms = 0, driver_ms = 0, jit_ms = 0, jit_compilations = 0, cpu_page_faults = 0, gpu_page_faults = 0;
  } told_costs_;
  uint64_t told_lost_ = 0, untimed_ = 0;
};

// Never destroyed: CUPTI calls it until the process is gone.
Collector& collector();

}  // namespace strobe::cupti
