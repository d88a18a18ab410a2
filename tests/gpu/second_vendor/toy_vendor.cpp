// toy_vendor.cpp - strobe's side, as the folder of a vendor in native/adapters/ has it: a Decoder and a Vendor.
#include <string.h>

#include "adapters/gpu/vendor.h"
#include "toy.h"

namespace {

using namespace strobe::gpu;

class ToyDecoder final : public Decoder {
 public:
  using Decoder::Decoder;
  void read(const char* bytes, size_t size, std::vector<DeviceSpan>& out) override {
    toy_record r;
    for (; size >= sizeof r; bytes += sizeof r, size -= sizeof r) {
      memcpy(&r, bytes, sizeof r);
      if (r.kind != 1) return;
      const uint32_t region = sink_.region(sink_.kernel_name(r.name).c_str(), STROBE_ROLE_KERNEL);
      LaunchText text;
      text.device = r.device, text.stream = r.stream, text.grid[0] = 4, text.registers = 16;
      set_kernel(add_work(out, r.device, 0, r.stream, r.correlation, region, STROBE_ROW_KERNEL, r.start_ns, r.end_ns,
                          sink_.text(text.joined().c_str())),
                 0, 0, 0, 0);
    }
  }
};

const Decoding kToy{"toy", "Toy", STROBE_HIP, false,
                    [](Sink& sink, const RecordBytes&) -> std::unique_ptr<Decoder> {
                      return std::make_unique<ToyDecoder>(sink);
                    }};

class Toy final : public Vendor {
 public:
  const Decoding& decoding() const override { return kToy; }
  bool open(Recorder& recorder) override { return recorder_ = &recorder, true; }
  const RecordBytes& record_bytes() const override { return bytes_; }
  bool start() override {
    launch_ = {recorder_->region("toyLaunch", STROBE_ROLE_FUNCTION), true, "toyLaunch"};
    recorder_->note("recorded_with", "the runtime of toys");
    return true;
  }
  void rest() override {}
  void go_on() override {}
  void let_go() override {}
  bool take_back(std::string&) override { return true; }
  void flush(bool) override { toyFlush(); }

  Recorder* recorder_ = nullptr;
  Call launch_;

 private:
  const RecordBytes bytes_{0, sizeof(toy_record)};
};

Toy& toy() {
  static Toy* one = new Toy;
  return *one;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void toy_tool_begin(toy_tool* tool) {
  if (!strobe_gpu_start(&toy())) return;
  tool->request = [](size_t* bytes) { return toy().recorder_->take_buffer(*bytes); };
  tool->complete = [](uint8_t* buffer, size_t valid) { toy().recorder_->completed(buffer, valid); };
  tool->called = [](int begins, uint32_t correlation) {
    Recorder& recorder = *toy().recorder_;
    if (!recorder.recording()) return;
    if (begins)
      recorder.call_begins(toy().launch_, correlation, true);
    else
      recorder.call_ends(toy().launch_, correlation, 1, 0, true);
  };
}
