// staged_samples.h - readings of metrics that wait in the header of the rings, as a chunk of the block file holds them.
#pragma once
#include <bit>
#include <string>

#include "core/format/blocks.h"
#include "core/rings/ring.h"

namespace strobe {

inline std::string encode_staged_samples(const RingsHeader& header, uint32_t count) {
  Writer w;
  for (uint32_t i = 0; i < count; i++) {
    const MetricSample& sample = header.staged[i];
    w.u32(sample.metric), w.u64(uint64_t(sample.time_ns)), w.u64(std::bit_cast<uint64_t>(sample.value));
  }
  return std::move(w.bytes);
}

}  // namespace strobe
