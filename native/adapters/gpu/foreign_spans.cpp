#include "adapters/gpu/foreign_spans.h"

#include <string.h>

#include <utility>

namespace strobe::gpu {

// "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"; everything else is a kernel.
const ForeignSpans::Known& ForeignSpans::known(const char* name) {
  const auto [at, fresh] = known_.try_emplace(name);
  Known& known = at->second;
  if (!fresh) return known;
  const std::string_view text = name;
  const bool copy = text.starts_with("Memcpy"), set = text.starts_with("Memset");
  known.copies = copy || set;
  known.region = sink_.region(name, known.copies ? STROBE_ROLE_COPY : STROBE_ROLE_KERNEL);
  const auto number = [&](std::string_view word) {
    return word.empty() ? std::string() : std::to_string(sink_.text(std::string(word).c_str()));
  };
  const size_t open = text.find(" ("), arrow = text.find(" -> "), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return known;
  if (set) known.copy = ",,,", known.copy += number(text.substr(open + 2, close - open - 2));
  if (copy && arrow != text.npos && arrow > open && open > strlen("Memcpy ")) {
    known.copy.clear();
    for (const auto& [from, to] : {std::pair(strlen("Memcpy "), open), {open + 2, arrow}, {arrow + 4, close}})
      known.copy += ',', known.copy += number(text.substr(from, to - from));
  }
  return known;
}

strobe_stream_span ForeignSpans::span_of(const strobe_gpu_span& of) {
  const Known& name = known(of.name ? of.name : "<unnamed kernel>");
  strobe_stream_span span{};
  span.region = name.region, span.row_kind = name.copies ? STROBE_ROW_COPY : STROBE_ROW_KERNEL;
  span.start_ns = of.start_ns, span.end_ns = of.end_ns;
  span.launched_ns = of.launched_ns ? of.launched_ns : of.start_ns;
  const int32_t correlation = of.correlation ? int32_t(of.correlation) : STROBE_NOTHING_32;
  // Device, context, stream, and what is known of a copy: the context is not.
  std::string text = std::to_string(of.device) + ",," + std::to_string(of.stream);
  if (name.copies) text += name.copy;
  span.values[0] = STROBE_TWO(correlation, sink_.text(text.c_str()));
  span.values[1] = STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32);
  span.values[2] = span.values[3] = STROBE_NOTHING;
  if (name.copies) {
    span.values[3] = of.size_bytes >= 0 ? of.size_bytes : STROBE_NOTHING;
    span.values[4] = STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32);
    span.values[5] = STROBE_NOTHING;
  }
  return span;
}

}  // namespace strobe::gpu
