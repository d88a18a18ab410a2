// injection.cpp - CUDA_INJECTION64_PATH names this library: libcuda loads it inside of the program's cuInit and calls
// the function below. A process that does not use CUDA never comes here.
#include "adapters/cupti/collector.h"
#include "adapters/cupti/probe.h"
#include "core/from_environment.h"
#include "core/ring.h"
#include "core/session.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const strobe::Inside inside;
  if (const char* file = strobe::cupti::probe_file()) {
    strobe::cupti::probe(file);
    return 1;
  }
  // Between two recording windows, too: a GPU is opened once.
  if (strobe::session().active() || strobe::start_from_environment("cuda")) strobe::cupti::collector().start();
  return 1;
}

extern "C" int strobe_gpu_yield(const char* to) {
  const strobe::Inside inside;
  return strobe::cupti::collector().yield(to) ? 1 : 0;
}
extern "C" int strobe_gpu_take_back() {
  const strobe::Inside inside;
  return strobe::cupti::collector().take_back() ? 1 : 0;
}
extern "C" int strobe_gpu_recorded() { return strobe::cupti::collector().state() == strobe::cupti::Collector::kOn; }
extern "C" int strobe_gpu_yielded() { return strobe::cupti::collector().state() == strobe::cupti::Collector::kYielded; }
extern "C" void strobe_gpu_say(const char* what, const char* sentence) {
  const strobe::Inside inside;
  strobe::cupti::collector().say(what, sentence);
}
extern "C" uint64_t strobe_gpu_ingest(const strobe_gpu_span* spans, size_t count) {
  const strobe::Inside inside;
  return strobe::cupti::collector().ingest(spans, count);
}
