// of_others.h - spans of streams from what another profiler says of GPUs: names, as Kineto and CUPTI's samples make
// them.
#pragma once
#include <string>
#include <unordered_map>

#include "adapters/cupti/records.h"

namespace strobe::cupti {

class TextsOfOthers {
 public:
  explicit TextsOfOthers(Sink& sink) : sink_(sink) {}
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

}  // namespace strobe::cupti
