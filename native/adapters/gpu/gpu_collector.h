// gpu_collector.h - what GPUs do in this process: calls on the threads that make them, kernels, copies and sets on
// streams.
//
// Started by a vendor (vendor.h). One thread of ours asks its library for what is complete, every second and whenever
// buffers fill up, and hands it to the core in order of time. The library is never called with a lock of ours held: it
// calls us with its own.
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
#include <utility>
#include <vector>

#include "adapters/gpu/already_recorded.h"
#include "adapters/gpu/buffers.h"
#include "adapters/gpu/launch_lines.h"
#include "adapters/gpu/launches.h"
#include "adapters/gpu/vendor.h"

namespace strobe::gpu {

class Collector final : public Recorder {
 public:
  // False: nothing is recorded of GPUs, and the trace has the reason.
  bool start(Vendor& vendor);
  // The recording rests, ends or goes on: STROBE_STREAMS_... Never waits for longer than a few seconds.
  void turned(int what);
  void forked();
  // Another profiler of this process, `to`, gets the GPUs: what is over is recorded, and nothing of ours stays enabled.
  // Our thread does it; the caller waits, for a few seconds at most. True: it is done.
  bool yield(const char* to);
  bool take_back();
  // What that one has recorded; in any order. Returns how many of them we had not recorded.
  uint64_t ingest(const strobe_gpu_span* spans, size_t count);

  uint32_t region(const char* name, uint8_t role) override;
  uint32_t text(const char* text) override { return strobe_text(text); }
  uint32_t captured_by(uint64_t graph_node) override;
  uint32_t call(const CallRecord& record) override;
  std::string kernel_name(const char* name) override;
  void device(uint32_t number, const std::string& json) override;

  void note(const char* what, const std::string& sentence) override;
  void call_begins(const Call& call, uint32_t correlation, bool outer) override;
  void call_ends(const Call& call, uint32_t correlation, uint32_t number, int32_t returned, bool outer) override;
  void name_function(uint64_t function, const std::string& name) override;
  void node_added(uint64_t node) override;
  void node_cloned(uint64_t node, uint64_t original) override;
  void names_change() override { names_changed_ = true; }
  uint8_t* take_buffer(size_t& bytes) override;
  void completed(uint8_t* buffer, size_t valid) override;
  void wake() override;

 private:
  static constexpr auto kLongestWait = std::chrono::seconds(5);
  static constexpr int kLongestEndMs = 100;

  static void* run(void* self);
  void run();
  enum Wish : int { kNothing, kYield, kTakeBack, kGoOn };
  bool grant(Wish wish);
  void finish(int what);
  void rest();
  void go_on();
  void let_go();
  std::string yielded_to();
  void begin_again();
  void record_completed(bool last = false);
  void record_all();
  void record_waits(bool last);
  void count_losses();
  void note_devices();
  void note_sentences();
  strobe_stream* stream_of(const DeviceSpan& span);

  Vendor* vendor_ = nullptr;
  std::atomic<bool> withheld_{false};              // yielded before the program used a GPU
  std::atomic<Vendor*> withheld_vendor_{nullptr};  // that would have started since
  std::mutex notes_mutex_;
  std::map<uint32_t, std::string> devices_;       // properties of each, JSON
  std::map<std::string, std::string> sentences_;  // about the recording of GPUs
  std::atomic<uint32_t> subscriptions_{0};        // a call that began under an earlier one does not end under this one
  std::atomic<uint32_t> rests_{0};                // nor one that began before the recording rested
  Launches launches_;
  LaunchLines lines_;
  Buffers buffers_;
  std::unique_ptr<Decoder> decoder_;
  std::atomic<bool> names_changed_{false};
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
  bool woken_ = false;
  std::string yielded_to_;
  uint64_t granted_ = 0;
  std::atomic<int64_t> yielded_ns_{0};  // while it is

  std::mutex recording_mutex_;          // one thread at a time records; no library is called while it is held
  std::vector<DeviceSpan> last_round_;  // that our thread recorded
  AlreadyRecorded recorded_last_, ingested_last_;
  uint64_t ingested_ = 0;
  bool yielding_ = false;
  int64_t shared_ns_ = 0, taken_back_ns_ = 0;
  uint32_t times_shared_ = 0;

  // Of our thread alone.
  pthread_t thread_{};
  bool resting_ = false;  // nothing is enabled
  uint32_t noted_ = 0;    // the recording that has our notes
  std::vector<DeviceSpan> spans_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> context_numbers_;  // device, context -> its number on that device
  std::map<std::pair<uint32_t, uint32_t>, strobe_stream*> streams_;    // context, stream
  std::map<std::string, uint64_t> counted_;                            // what the table quality has, by name
};

// Never destroyed: libraries call it until the process is gone.
Collector& collector();

}  // namespace strobe::gpu
