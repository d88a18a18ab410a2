// opencl_decoder.h - commands of OpenCL's queues, as our layer (opencl_layer.cpp) has written them.
#pragma once
#include <stdint.h>
#include <unordered_map>

#include "adapters/gpu/decode/decoder.h"

namespace strobe::opencl {

enum What : uint32_t { kKernel, kHtoD, kDtoH, kDtoD, kShared, kSet, kMap, kUnmap };

constexpr uint32_t kCommandRecord = 1;
struct Record {
  uint32_t kind;  // kCommandRecord
  What what;
  uint32_t device, context, queue, correlation;
  uint32_t grid[3], block[3];  // of a kernel; 0: not known
  const char* name;            // of a kernel
  int64_t bytes;               // of all others; STROBE_NOTHING: not known
  int64_t start_ns, end_ns;
};

class Decoder final : public gpu::Decoder {
 public:
  using gpu::Decoder::Decoder;
  void read(const char* bytes, size_t size, std::vector<gpu::DeviceSpan>& out) override;

 private:
  std::unordered_map<const char*, uint32_t> kernels_;  // regions, by where the name lies
};

extern const gpu::Decoding kDecoding;

}  // namespace strobe::opencl
