#include "adapters/gpu/decode/spans.h"

#include <cxxabi.h>
#include <stdlib.h>

#include <algorithm>
#include <unordered_map>

#include "adapters/gpu/decode/decoder.h"

namespace strobe::gpu {

namespace {

std::vector<Decoding>& decodings() {
  static std::vector<Decoding> all;
  return all;
}

}  // namespace

Registered::Registered(const Decoding& decoding) { decodings().push_back(decoding); }

const Decoding* decoding(std::string_view adapter) {
  for (const Decoding& each : decodings())
    if (adapter == each.adapter || (adapter.empty() && each.is_default)) return &each;
  return nullptr;
}

std::string calls_row(const Decoding& decoding, uint32_t thread) {
  return std::string(decoding.api) + " calls of thread " + std::to_string(thread);
}

std::string name_beside_streams(uint32_t device, uint32_t stream) {
  if (stream == kUnifiedMemoryStream) return "unified memory";
  return "GPU " + std::to_string(device) + (stream == kMemoryStream ? " memory" : " waits");
}

std::string LaunchText::joined() const {
  const int64_t values[] = {
      device,           context,  stream,    grid[0], grid[1],       grid[2],        block[0],
      block[1],         block[2], registers, shared,  static_shared, dynamic_shared, executed_shared,
      local_per_thread, local,    priority,  type,    cache,
  };
  return gpu::joined(values);
}

void sort_by_start(std::vector<DeviceSpan>& spans) {
  const auto earlier = [](const DeviceSpan& a, const DeviceSpan& b) { return a.span.start_ns < b.span.start_ns; };
  // One stream's come in order.
  if (!std::is_sorted(spans.begin(), spans.end(), earlier)) std::stable_sort(spans.begin(), spans.end(), earlier);
}

void without_inner_calls(std::vector<DeviceSpan>& spans) {
  std::unordered_map<uint32_t, int64_t> ends;  // of the outermost call, by thread
  std::erase_if(spans, [&ends](const DeviceSpan& each) {
    if (!each.is_call()) return false;
    int64_t& end = ends[each.stream];
    if (each.span.end_ns <= end) return true;
    end = each.span.end_ns;
    return false;
  });
}

std::string demangled(const char* name) {
  int status = 0;
  char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = readable && status == 0 ? readable : name;
  free(readable);
  return out;
}

}  // namespace strobe::gpu
