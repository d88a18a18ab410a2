// calls.h - the functions of the runtime and the driver that are recorded.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cupti/functions.h"
#include "adapters/cupti/records.h"

namespace strobe::cupti {

struct Call {
  uint32_t region = 0;  // 0: not recorded
  bool launches = false;
  std::string name;
};
using Calls = std::vector<Call>;  // by callback id

// Of the runtime or of the driver; asks the library for their names.
Calls chosen_calls(const Functions& call, Domain domain, Sink& sink);
inline bool waits(std::string_view name) { return name.find("Synchronize") != name.npos; }

// Where a thread's calls are that records tell of.
inline std::string calls_row(uint32_t thread) { return "CUDA calls of thread " + std::to_string(thread); }
// Their names among those of kernels, for recovery: nothing of a program lies there.
inline const char* call_address(Kind kind, uint32_t cbid) {
  return reinterpret_cast<const char*>(uintptr_t(kind) << 32 | cbid | uintptr_t(1) << 63);
}

}  // namespace strobe::cupti
