#include "adapters/cupti/calls.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace strobe::cupti {

namespace {

constexpr uint32_t kMostUnknown = 1000;  // one after the other

using Beginnings = std::span<const std::string_view>;
// Calls that are worth a span, by how their names go on behind "cuda" or "cu": they start or stop work, wait for it, or
// move memory. What only asks is left out, as other profilers do: PyTorch asks for the current device before every
// launch.
constexpr std::string_view kLaunches[] = {"Launch", "GraphLaunch", "Memcpy", "Memset"};
// Of a prefetch what moves is recorded without the number of its call.
constexpr std::string_view kOthers[] = {"MemPrefetch",     "StreamSynchronize",  "EventSynchronize", "EventRecord",
                                        "StreamWaitEvent", "StreamBeginCapture", "StreamEndCapture", "GraphInstantiate",
                                        "ModuleLoad",      "LibraryLoad"};
constexpr std::string_view kOfRuntime[] = {
    "Malloc",      "StreamCreate", "DeviceSynchronize", "Free",        "StreamDestroy",  "ThreadSynchronize",
    "HostAlloc",   "HostRegister", "GraphExecUpdate",   "GraphUpload", "HostUnregister", "SignalExternal",
    "DeviceReset", "WaitExternal"};
constexpr std::string_view kOfDriver[] = {"MemAlloc",       "MemFree",         "MemCreate",        "MemMap",
                                          "CtxSynchronize", "StreamWaitValue", "StreamWriteValue", "StreamBatchMemOp"};

bool is_one_of(Beginnings beginnings, std::string_view name) {
  return std::ranges::any_of(beginnings, [name](std::string_view each) { return name.starts_with(each); });
}

// "cudaLaunchKernel_v7000" and "cuMemcpyHtoD_v2" without the version, which no program writes.
std::string plain_name(const char* name) {
  std::string out = name;
  if (const size_t at = out.rfind("_v");
      at != out.npos && at + 2 < out.size() && out.find_first_not_of("0123456789", at + 2) == out.npos)
    out.resize(at);
  return out;
}

}  // namespace

Calls chosen_calls(const Functions& call, Domain domain, gpu::Sink& sink) {
  const bool runtime = domain == kRuntimeDomain;
  const std::string_view prefix = runtime ? "cuda" : "cu";
  const Beginnings own = runtime ? Beginnings(kOfRuntime) : Beginnings(kOfDriver);
  Calls calls;
  // Numbers have gaps, and the last one is not known.
  for (uint32_t cbid = 1, unknown = 0; unknown < kMostUnknown; cbid++) {
    const char* name = nullptr;
    if (call.get_callback_name(domain, cbid, &name) != kSuccess || !name) {
      unknown++;
      continue;
    }
    unknown = 0;
    calls.resize(cbid + 1);
    std::string_view rest = name;
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    const bool launches = is_one_of(kLaunches, rest);
    if (!launches && !is_one_of(kOthers, rest) && !is_one_of(own, rest)) continue;
    const std::string plain = plain_name(name);
    const uint8_t role = gpu::waits(plain) ? STROBE_ROLE_SYNC : STROBE_ROLE_FUNCTION;
    calls[cbid] = {sink.region(plain.c_str(), role), launches, plain};
  }
  return calls;
}

}  // namespace strobe::cupti
