// foreign_spans.h - spans of streams from what another profiler has recorded of GPUs: from names, as Kineto and CUPTI's
// samples make them.
#pragma once
#include <string>
#include <unordered_map>

#include "adapters/gpu/decode/spans.h"

namespace strobe::gpu {

class ForeignSpans {
 public:
  explicit ForeignSpans(Sink& sink) : sink_(sink) {}
  strobe_stream_span span_of(const strobe_gpu_span& span);

 private:
  struct Known {
    uint32_t region = 0;
    bool copies = false;       // or sets
    std::string copy = ",,,";  // kind, source and destination of the copy text
  };
  const Known& known(const char* name);

  Sink& sink_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace strobe::gpu
