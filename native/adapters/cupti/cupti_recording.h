// cupti_recording.h - NVIDIA's GPUs through CUPTI: calls of the runtime and the driver by callbacks, on the threads
// that make them; kernels, copies and sets by activity records.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "adapters/cupti/calls.h"
#include "adapters/cupti/decode/cupti_decoder.h"
#include "adapters/cupti/library.h"
#include "adapters/gpu/vendor.h"

namespace strobe::cupti {

class Recording final : public gpu::Vendor {
 public:
  const gpu::Decoding& decoding() const override { return kDecoding; }
  bool open(gpu::Recorder& recorder) override;
  const gpu::RecordBytes& record_bytes() const override { return library_.sizes; }
  bool start() override;
  void rest() override;
  void go_on() override;
  void let_go() override;
  bool take_back(std::string& why) override;
  void flush(bool forced) override;
  void read(uint8_t* buffer, size_t valid, gpu::Decoder& decoder, std::vector<DeviceSpan>& out) override;
  void each_round() override;
  uint64_t dropped() override;
  int64_t calls_late_ns() const override;
  const gpu::Call* call(uint64_t function) const override;

 private:
  static void requested(uint8_t** buffer, size_t* bytes, size_t* records);
  static void completed(Context context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);
  bool subscribe();
  bool enable(Kind kind, const char* what);
  void enable_levels();
  void enable_calls(bool on);
  void calls_by_records(bool on);
  void watch_times(const std::vector<DeviceSpan>& spans, size_t first);
  void missing(const char* what, Result result);
  static void called(void* self, Domain domain, uint32_t cbid, const void* data);
  void on_call(const Calls& calls, Domain domain, uint32_t cbid, const CallbackData& data);
  void on_resource(uint32_t cbid, const ResourceData& data);
  void on_node(const GraphData& graph, bool cloned);

  gpu::Recorder* recorder_ = nullptr;
  Library library_;
  Subscriber subscriber_ = nullptr;
  Calls runtime_, driver_;  // never changed once we have subscribed
  std::atomic<bool> calls_by_records_{false};
  std::vector<Kind> enabled_;
  std::atomic<bool> unified_memory_{false};  // is to be asked for, once there is a context
  uint64_t untimed_ = 0;                     // kernels, one after the other
};

// Never destroyed: CUPTI calls it until the process is gone.
Recording& recording();

}  // namespace strobe::cupti
