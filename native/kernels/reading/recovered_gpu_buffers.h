// recovered_gpu_buffers.h - what the GPU buffers of a killed process still hold: records that the core never got.
#pragma once
#include <stdint.h>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/gpu/decode/decoder.h"
#include "core/spans/location_builder.h"
#include "kernels/reading/process_file.h"

namespace strobe {

class GpuBuffers {
 public:
  // Empty where the file is missing, cut, something else, or of an unknown vendor.
  explicit GpuBuffers(const std::string& path);
  // The name of a kernel; made of its address where the process had not written it down yet.
  std::string name_at(const char* address) const;
  // nullptr where the process had not written it down.
  const std::string* known_name_at(const char* address) const;
  const gpu::Decoding* decoding() const { return decoding_; }  // nullptr: it is empty
  // The spans that the process had not reported, in order of start. `on_its_way`: the one that it was reporting when it
  // was killed, and that may have arrived; of no end where there is none.
  std::vector<gpu::DeviceSpan> read(gpu::Sink& sink, gpu::DeviceSpan& on_its_way) const;

 private:
  std::string bytes_;
  const gpu::Decoding* decoding_ = nullptr;
  std::unordered_map<uint64_t, std::string> names_;
};

// The same as spans of locations, while a process is recovered: behind what the rings hold of the same stream.
class LateSpans final : gpu::Sink {
 public:
  // What it defines is appended to `chunks`.
  LateSpans(const ProcessFile& file, std::string& chunks) : file_(file), chunks_(chunks) {}
  void read(const std::string& path);
  // Those that follow what the builder of their stream has.
  void feed(LocationBuilder& builder);
  // Those that overlap reported spans, or ran on a stream without any: in locations of their own.
  void feed_others(PathTable& paths);
  std::string_view text_of(uint32_t number) const;
  uint64_t fed() const { return fed_; }
  uint64_t untimed() const { return untimed_; }

 private:
  using Stream = std::pair<uint32_t, uint32_t>;  // as in DeviceSpan: device, stream
  uint32_t region(const char* name, uint8_t role) override;
  uint32_t text(const char* text) override;
  uint32_t captured_by(uint64_t) override { return 0; }
  uint32_t call(const gpu::CallRecord& record) override;
  std::string kernel_name(const char* name) override { return buffers_->name_at(name); }
  void device(uint32_t, const std::string&) override {}
  void feed(LocationBuilder& builder, std::vector<gpu::DeviceSpan>& spans);
  bool arrived(const LocationBuilder& builder, const gpu::DeviceSpan& span) const;

  const ProcessFile& file_;
  std::string& chunks_;
  const GpuBuffers* buffers_ = nullptr;
  const gpu::Decoding* decoding_ = nullptr;
  std::map<Stream, std::vector<gpu::DeviceSpan>> spans_;
  gpu::DeviceSpan on_its_way_{};
  std::map<std::string, uint32_t> regions_;
  std::deque<std::string> texts_;  // behind those of the file
  std::unordered_map<std::string, uint32_t> text_numbers_;
  uint32_t next_region_ = 0;
  uint64_t fed_ = 0, untimed_ = 0;
};

}  // namespace strobe
