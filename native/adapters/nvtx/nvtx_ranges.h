// nvtx_ranges.h - start/end ranges of NVTX: they may end on another thread than they began on, and overlap freely. They
// are spans of locations beside the threads.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace strobe::nvtx {

constexpr size_t kMostOpen = 1u << 16;  // a program that ends none must not fill memory

// The number that NVTX hands out, unique in the process; 0 where there are too many open ones.
uint64_t start_range(uint32_t region);
void end_range(uint64_t id);

}  // namespace strobe::nvtx
