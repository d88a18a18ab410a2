// free_blocks.h - the free pieces of the memory that a caching allocator holds, event by event.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strobe {

// What an allocator did. Numbers as in strobe/gpu/block_lifetimes.py.
enum class AllocatorAction : uint8_t {
  kSegment = 0,    // memory was reserved, as a segment of its own
  kMap = 1,        // memory was reserved that continues the one before it
  kRelease = 2,    // memory was given back
  kTake = 3,       // a block was allocated
  kTakeExact = 4,  // the same, of exactly so many bytes
  kFree = 5,       // a block can be used again
  kOther = 6,
};

struct AllocatorEvents {
  std::span<const uint8_t> action;
  std::span<const int64_t> address;
  std::span<const int64_t> size_bytes;
};

// Bytes of the largest free piece after each event; -1 from the first event on that does not fit what came before.
//
// Blocks are taken as PyTorch's CUDACachingAllocator takes them: rounded up to 512 bytes; what is left of the free
// piece stays with the block if it is too small to be split off (`expandable`: segments that grow, which always split).
// O(log n) for each event.
std::vector<int64_t> largest_free_blocks(const AllocatorEvents& events, bool expandable);

}  // namespace strobe
