#include "structure/alternation.h"

#include <algorithm>
#include <array>
#include <bit>

namespace strobe::structure {
namespace {

// q[i] <= p[i] <= q[i + 1] for all i.
bool alternates(Positions q, Positions p) {
  const size_t last = q.size() - 1;
  if (p[last] < q[last]) return false;
  for (size_t i = 0; i < last; ++i)
    if (p[i] < q[i] || p[i] > q[i + 1]) return false;
  return true;
}

// The classes of one count, of which almost all must be ruled out at a glance for each item: an item p fits only where
// the occurrence i of the class lies between p[i - 1] and p[i], which is looked at for some i. The latest classes are
// compared one by one. The older ones lie in blocks that have, by position, the set of their classes with
// occurrence i until there, so that 64 of them are compared at once.
class OpenClasses {
 public:
  explicit OpenClasses(uint32_t most_open)
      : most_(most_open), blocks_(most_open / block_size + 2), representatives_(blocks_.size() * block_size) {}

  // From now on for these items, which are all of one count.
  void begin(std::span<const Candidate> items) {
    count_ = items[0].at.size();
    probes_ = std::min(most_probes, count_ - 1);
    for (size_t k = 0; k < probes_; ++k) probe_[k] = 1 + (k * (count_ - 2)) / std::max<size_t>(probes_ - 1, 1);
    for (size_t k = 0; k < 3; ++k) glance_[k] = probe_[k * (probes_ - 1) / 2];
    size_ = over_ = 0;
    if (items.size() > block_size) choose_buckets(items);
  }

  // A new class; they are numbered from 0.
  void add(Positions q) {
    const size_t at = size_ % block_size;
    for (size_t k = 0; k < 3; ++k) latest_[k][at] = int32_t(q[glance_[k]]);
    representatives_[size_ % representatives_.size()] = q.data();
    if (++size_ % block_size == 0) close_block();
  }
  size_t size() const { return size_; }

  // The first of the latest classes that p alternates with, or size().
  size_t find(Positions p) {
    const size_t oldest = size_ - std::min(size_, most_);
    const size_t found = find_in_blocks(p, oldest);
    return found < size_ ? found : find_in_latest(p, oldest);
  }

 private:
  static constexpr size_t most_probes = 10, buckets = 64, block_size = 64;
  using Set = uint64_t;  // of the classes of a block
  struct Block {
    uint32_t over = 0;                                            // no item that begins later fits
    std::array<std::array<Set, buckets + 1>, most_probes> until;  // [k][b]: those with their probe k before bucket b
  };

  // Buckets of positions for each probe, so that they hold about as many items; where they lie is estimated.
  void choose_buckets(std::span<const Candidate> items) {
    const size_t stride = std::max<size_t>(1, items.size() / 512);
    for (size_t k = 0; k < probes_; ++k) {
      uint32_t low = UINT32_MAX, high = 0;
      for (size_t i = 0; i < items.size(); i += stride) {
        const uint32_t at = items[i].at[probe_[k]];
        low = std::min(low, at), high = std::max(high, at);
      }
      low_[k] = low;
      scale_[k] = (uint64_t{buckets} << 32) / (uint64_t{high} - low + 1);
    }
  }
  size_t bucket(size_t k, uint32_t position) const {
    if (position < low_[k]) return 0;
    return std::min<size_t>(size_t((position - low_[k]) * scale_[k] >> 32), buckets - 1);
  }

  Positions representative(size_t number) const { return {representatives_[number % representatives_.size()], count_}; }
  Block& block(size_t number) { return blocks_[number % blocks_.size()]; }

  void close_block() {
    Block& closed = block(size_ / block_size - 1);
    closed.over = 0;
    for (size_t k = 0; k < probes_; ++k) closed.until[k].fill({});
    for (size_t i = 0; i < block_size; ++i) {
      const Positions q = representative(size_ - block_size + i);
      closed.over = std::max(closed.over, q[1]);
      for (size_t k = 0; k < probes_; ++k) closed.until[k][bucket(k, q[probe_[k]]) + 1] |= Set{1} << i;
    }
    for (size_t k = 0; k < probes_; ++k)
      for (size_t b = 1; b <= buckets; ++b) closed.until[k][b] |= closed.until[k][b - 1];
  }

  size_t find_in_blocks(Positions p, size_t oldest) {
    // Items come in order of their first positions: what is over now stays so.
    const size_t blocks = size_ / block_size;
    over_ = std::max(over_, oldest / block_size);
    while (over_ < blocks && block(over_).over < p[0]) ++over_;
    if (over_ == blocks) return size_;
    std::array<size_t, most_probes> low, high;
    for (size_t k = 0; k < probes_; ++k) {
      low[k] = bucket(k, p[probe_[k] - 1]);
      high[k] = bucket(k, p[probe_[k]]) + 1;
    }
    for (size_t b = over_; b < blocks; ++b) {
      const Block& at = block(b);
      if (at.over < p[0]) continue;
      Set possible = ~Set{0};
      for (size_t k = 0; k < probes_; ++k) possible &= at.until[k][high[k]] & ~at.until[k][low[k]];
      for (; possible != 0; possible &= possible - 1) {
        const size_t number = b * block_size + size_t(std::countr_zero(possible));
        if (number >= oldest && alternates(representative(number), p)) return number;
      }
    }
    return size_;
  }

  size_t find_in_latest(Positions p, size_t oldest) const {
    std::array<int32_t, 3> low, high;
    for (size_t k = 0; k < 3; ++k) {
      low[k] = int32_t(p[glance_[k] - 1]);
      high[k] = int32_t(p[glance_[k]]);
    }
    const size_t in_latest = size_ % block_size, begin = size_ - in_latest;
    constexpr size_t step = 32;
    for (size_t first = 0; first < in_latest; first += step) {
      if (!any_possible<step>(first, low, high)) continue;  // behind the last one lies what was there before
      for (size_t i = first; i < std::min(first + step, in_latest); ++i) {
        bool possible = begin + i >= oldest;
        for (size_t k = 0; k < 3; ++k) possible &= (latest_[k][i] >= low[k]) & (latest_[k][i] <= high[k]);
        if (possible && alternates(representative(begin + i), p)) return begin + i;
      }
    }
    return size_;
  }

  template <size_t step>
  bool any_possible(size_t first, const std::array<int32_t, 3>& low, const std::array<int32_t, 3>& high) const {
    const int32_t *a = &latest_[0][first], *b = &latest_[1][first], *c = &latest_[2][first];
    int32_t any = 0;
    for (size_t i = 0; i < step; ++i)
      any |= (a[i] >= low[0]) & (a[i] <= high[0]) & (b[i] >= low[1]) & (b[i] <= high[1]) & (c[i] >= low[2]) &
             (c[i] <= high[2]);
    return any != 0;
  }

  const size_t most_;
  size_t count_ = 0;  // of the items
  size_t size_ = 0;   // classes
  size_t over_ = 0;   // blocks before this one fit nothing any more
  size_t probes_ = 0;
  std::array<size_t, most_probes> probe_{};  // which occurrences are looked at
  std::array<size_t, 3> glance_{};           // those for the latest classes
  std::array<uint32_t, most_probes> low_{};
  std::array<uint64_t, most_probes> scale_{};
  std::array<std::array<int32_t, block_size>, 3> latest_{};
  std::vector<Block> blocks_;                     // a ring, as are the
  std::vector<const uint32_t*> representatives_;  // positions of each class's first member
};

}  // namespace

Alternation alternation_classes(std::span<const Candidate> candidates, uint32_t most_open) {
  Alternation out;
  out.class_of.resize(candidates.size());
  OpenClasses open(most_open);
  for (size_t begin = 0, end = 0; begin < candidates.size(); begin = end) {
    while (end < candidates.size() && candidates[end].at.size() == candidates[begin].at.size()) ++end;
    open.begin(candidates.subspan(begin, end - begin));
    const size_t first_class = out.classes.size();
    for (size_t i = begin; i < end; ++i) {
      prefetch(candidates, i);
      const size_t home = first_class + open.find(candidates[i].at);
      if (home == out.classes.size()) {
        out.classes.push_back({.first = uint32_t(i)});
        open.add(candidates[i].at);
      }
      AlternationClass& joined = out.classes[home];
      ++joined.members;
      if (joined.node == AlternationClass::no_node && candidates[i].item.is_node()) joined.node = uint32_t(i);
      out.class_of[i] = uint32_t(home);
    }
  }
  return out;
}

}  // namespace strobe::structure
