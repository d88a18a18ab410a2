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
