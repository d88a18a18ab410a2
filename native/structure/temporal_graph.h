// Temporal event flow graphs (t-EFG, Aguilar, Fürlinger, Laure 2014): which visits of its source an edge was taken at.
//
// The visits of a node are counted 1, 2, 3, ...; each of them takes one outgoing edge, so the edges of a node partition
// its visits. A partition (first, last, stride, block) stands for blocks of `block` visits in a row, the first of them
// at `first`, one every `stride`, up to the visit `last`. Stride 0: a single block.
#pragma once
#include <cstdint>

namespace strobe::structure {

struct Partition {
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t stride = 0;
  uint32_t block = 1;
  bool operator==(const Partition&) const = default;
  bool contains(uint32_t visit) const {
    return visit >= first && visit <= last && (stride == 0 || (visit - first) % stride < block);
  }
};

// The partition that an edge is at: it grows visit by visit, in constant time and space.
struct OpenPartition {
  Partition grown;
  uint32_t begin = 0;  // of the block that is being filled

  static OpenPartition at(uint32_t visit) { return {{visit, visit, 0, 1}, visit}; }

  // Takes one more visit (later than all before) if the pattern goes on.
  bool extend(uint32_t visit) {
    if (grown.stride == 0) {
      if (visit == grown.last + 1) {
        ++grown.block;  // the first block grows
      } else {
        grown.stride = visit - grown.first;  // the second block: now the period is known
        begin = visit;
      }
    } else if (grown.last - begin + 1 < grown.block) {
      if (visit != grown.last + 1) return false;
    } else {
      if (visit != begin + grown.stride) return false;
      begin = visit;
    }
    grown.last = visit;
    return true;
  }

  // The longest part of the pattern that ends with a full block; all of it unless a block is unfinished.
  Partition finished() const {
    if (!unfinished()) return grown;
    const uint32_t last_full = begin - grown.stride;
    return {grown.first, last_full + grown.block - 1, last_full == grown.first ? 0 : grown.stride, grown.block};
  }
  bool unfinished() const { return grown.stride != 0 && grown.last - begin + 1 < grown.block; }
  Partition unfinished_block() const { return {begin, grown.last, 0, grown.last - begin + 1}; }

  // What follows finished() after extend(visit) failed: an unfinished block may be the start of another pattern.
  OpenPartition next(uint32_t visit) const {
    if (!unfinished()) return at(visit);
    return {{begin, visit, visit - begin, grown.last - begin + 1}, visit};
  }
};

}  // namespace strobe::structure
