// free_blocks.cpp - the free pieces of the memory that a caching allocator holds, event by event.
#include "kernels/memory/free_blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace strobe {

namespace {

// c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize.
constexpr int64_t kMinBlock = 512, kSmall = 1 << 20;
constexpr int64_t kLargest = int64_t(1) << 62;

class FreePieces {
 public:
  int64_t largest() const { return lengths_.empty() ? 0 : *lengths_.rbegin(); }

  void reserve(int64_t from, int64_t to, bool segment) {
    if (segment) borders_.insert({from, to});
    add(from, to);
  }

  // All of it is free, or it is not what an allocator does.
  bool release(int64_t from, int64_t to) {
    if (borders_.count(from) && borders_.count(to)) {
      forget_border(from);
      forget_border(to);
    }
    return cut(from, to);
  }

  bool take(int64_t address, int64_t size, bool exact, bool expandable) {
    const auto piece = containing(address);
    if (piece == free_.end()) return false;
    int64_t end = exact ? address + size : address + (size + kMinBlock - 1) / kMinBlock * kMinBlock;
    if (end > piece->second) return false;
    const int64_t left = piece->second - end;
    const bool splits = size <= kSmall || expandable ? left >= kMinBlock : left > kSmall;
    if (!exact && !splits) end = piece->second;
    taken_[address] = end;
    return cut(address, end);
  }

  void free(int64_t address) {
    const auto block = taken_.find(address);
    if (block == taken_.end()) return;
    add(address, block->second);
    taken_.erase(block);
  }

 private:
  std::map<int64_t, int64_t>::iterator containing(int64_t address) {
    auto after = free_.upper_bound(address);
    if (after == free_.begin()) return free_.end();
    --after;
    return address < after->second ? after : free_.end();
  }

  void forget_border(int64_t at) {
    if (const auto found = borders_.find(at); found != borders_.end()) borders_.erase(found);
  }

  void forget(std::map<int64_t, int64_t>::iterator piece) {
    lengths_.erase(lengths_.find(piece->second - piece->first));
    free_.erase(piece);
  }

  void keep(int64_t from, int64_t to) {
    if (from >= to) return;
    free_[from] = to;
    lengths_.insert(to - from);
  }

  void add(int64_t from, int64_t to) {
    if (const auto next = free_.find(to); next != free_.end() && !borders_.count(to)) {
      to = next->second;
      forget(next);
    }
    if (from > 0 && !borders_.count(from))
      if (const auto before = containing(from - 1); before != free_.end() && before->second == from) {
        from = before->first;
        forget(before);
      }
    keep(from, to);
  }

  bool cut(int64_t from, int64_t to) {
    const auto piece = containing(from);
    if (piece == free_.end() || piece->second < to) return false;
    const auto [first, last] = *piece;
    forget(piece);
    keep(first, from);
    keep(to, last);
    return true;
  }

  std::map<int64_t, int64_t> free_;  // end of each free piece, by its beginning
  std::multiset<int64_t> lengths_;
  std::unordered_map<int64_t, int64_t> taken_;  // end of each block in use, by its address
  std::multiset<int64_t> borders_;              // of segments: blocks do not reach across them
};

bool happen(FreePieces& pieces, AllocatorAction action, int64_t address, int64_t size, bool expandable) {
  using enum AllocatorAction;
  if (action == kOther) return true;
  if (address < 0 || size < 0 || address > kLargest - size) return false;
  switch (action) {
    case kSegment:
    case kMap:
      pieces.reserve(address, address + size, action == kSegment);
      return true;
    case kRelease:
      return pieces.release(address, address + size);
    case kTake:
    case kTakeExact:
      return size == 0 || pieces.take(address, size, action == kTakeExact, expandable);
    case kFree:
      pieces.free(address);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<int64_t> largest_free_blocks(const AllocatorEvents& events, bool expandable) {
  std::vector<int64_t> largest(events.action.size(), -1);
  FreePieces pieces;
  for (size_t i = 0; i < largest.size(); i++) {
    const auto action = static_cast<AllocatorAction>(events.action[i]);
    if (!happen(pieces, action, events.address[i], events.size_bytes[i], expandable)) break;
    largest[i] = pieces.largest();
  }
  return largest;
}

}  // namespace strobe
