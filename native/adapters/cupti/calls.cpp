#include "adapters/cupti/calls.h"

#include <string.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace strobe::cupti {

namespace {

constexpr uint32_t kMostUnknown = 1000;  // one after the other

// Calls that are worth a span: they start or stop work, wait for it, or move memory. What only asks is left out, as
// other profilers do: PyTorch asks for the current device before every launch.
struct Chosen {
  const char* prefix;
  bool launches;
};
constexpr Chosen kRuntimeCalls[] = {
    {"cudaLaunch", true},
    {"cudaGraphLaunch", true},
    {"cudaMemcpy", true},
    {"cudaMemset", true},
    {"cudaMalloc", false},
    {"cudaFree", false},
    {"cudaHostAlloc", false},
    {"cudaHostRegister", false},
    {"cudaHostUnregister", false},
    {"cudaMemPrefetch", false},  // what moves is recorded without the number of its call
    {"cudaDeviceSynchronize", false},
    {"cudaThreadSynchronize", false},
    {"cudaStreamSynchronize", false},
    {"cudaEventSynchronize", false},
    {"cudaEventRecord", false},
    {"cudaStreamWaitEvent", false},
    {"cudaStreamBeginCapture", false},
    {"cudaStreamEndCapture", false},
    {"cudaGraphInstantiate", false},
    {"cudaGraphExecUpdate", false},
    {"cudaGraphUpload", false},
    {"cudaStreamCreate", false},
    {"cudaStreamDestroy", false},
    {"cudaModuleLoad", false},
    {"cudaLibraryLoad", false},
    {"cudaSignalExternal", false},
    {"cudaWaitExternal", false},
    {"cudaDeviceReset", false},
};
constexpr Chosen kDriverCalls[] = {
    {"cuLaunch", true},
    {"cuGraphLaunch", true},
    {"cuMemcpy", true},
    {"cuMemset", true},
    {"cuMemAlloc", false},
    {"cuMemFree", false},
    {"cuMemCreate", false},
    {"cuMemMap", false},
    {"cuMemPrefetch", false},
    {"cuCtxSynchronize", false},
    {"cuStreamSynchronize", false},
    {"cuEventSynchronize", false},
    {"cuEventRecord", false},
    {"cuStreamWaitEvent", false},
    {"cuStreamBeginCapture", false},
    {"cuStreamEndCapture", false},
    {"cuGraphInstantiate", false},
    {"cuModuleLoad", false},
    {"cuLibraryLoad", false},
    {"cuStreamWaitValue", false},
    {"cuStreamWriteValue", false},
    {"cuStreamBatchMemOp", false},
};

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
  const auto* begin = runtime ? std::begin(kRuntimeCalls) : std::begin(kDriverCalls);
  const auto* end = runtime ? std::end(kRuntimeCalls) : std::end(kDriverCalls);
  Calls calls;
  // Numbers have gaps, and the last one is not known.
  for (uint32_t cbid = 1, unknown = 0; unknown < kMostUnknown; cbid++) {
    const char* name = nullptr;
    if (call.get_callback_name(domain, cbid, &name) != kSuccess || !name) {
      unknown++;
      continue;
    }
    unknown = 0;
    const auto* chosen = std::find_if(
        begin, end, [name](const Chosen& each) { return strncmp(name, each.prefix, strlen(each.prefix)) == 0; });
    calls.resize(cbid + 1);
    if (chosen == end) continue;
    const std::string plain = plain_name(name);
    const uint8_t role = gpu::waits(plain) ? STROBE_ROLE_SYNC : STROBE_ROLE_FUNCTION;
    calls[cbid] = {sink.region(plain.c_str(), role), chosen->launches, plain};
  }
  return calls;
}

}  // namespace strobe::cupti
