// near_stretches.h - what pictures read from blocks last, kept for the next tile of the same picture.
//
// Where one zooms in to less than a tile holds, a picture reads blocks: 4096 spans are decoded to draw ten. The tiles
// beside it, and the next zoom or pan, need the same block once more. So the stretches around what was asked for are
// kept: as far as those blocks reach, up to a few times the time that was asked for, in a bounded number of bytes.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "kernels/pyramid/stretches.h"

namespace strobe {

// All stretches that overlap [from_ns, to_ns) of a location, one after the other.
struct StretchList {
  int64_t from_ns = 0, to_ns = 0, end_ns = 0;  // end_ns: of the last one
  std::vector<int64_t> start_ns;
  std::vector<uint32_t> region;  // kNothing: not known, as its block is damaged

  template <class OnStretch>
  void visit(int64_t from, int64_t to, OnStretch&& on_stretch) const {
    auto at = size_t(std::upper_bound(start_ns.begin(), start_ns.end(), from) - start_ns.begin());
    if (at > 0) at--;
    for (; at < start_ns.size() && start_ns[at] < to; at++) {
      const int64_t end = at + 1 < start_ns.size() ? start_ns[at + 1] : end_ns;
      if (region[at] != kNothing && end > from) on_stretch(Stretch{start_ns[at], end, region[at]});
    }
  }
};

// Through a call, so that code that uses it holds a pointer instead of asking for the thread's copy at every access.
BlockScratch& scratch_of_thread();

// Threads may share it. Files must live as long as it does.
class NearStretches {
 public:
  // Calls on_stretch for every stretch of a location that overlaps [from, to), in order, as it is: not cut.
  template <class OnStretch>
  void visit(const ProcessFile& file, uint32_t location, int64_t from, int64_t to, OnStretch&& on_stretch) {
    if (const auto list = around(file, location, from, to)) {
      list->visit(from, to, on_stretch);
      return;
    }
    visit_window(file, location, from, to, scratch_of_thread(), [](int64_t, uint32_t) {}, on_stretch);
  }

 private:
  using Key = std::tuple<const ProcessFile*, uint32_t, int64_t>;  // location, from_ns
  struct Kept {
    Key key;
    std::shared_ptr<const StretchList> list;
  };
  using Order = std::list<Kept>;  // what was asked for last is the first

  // Null where it is too much to be kept.
  std::shared_ptr<const StretchList> around(const ProcessFile& file, uint32_t location, int64_t from, int64_t to);
  std::shared_ptr<const StretchList> find(const ProcessFile& file, uint32_t location, int64_t from, int64_t to);
  void keep(const Key& key, const std::shared_ptr<const StretchList>& list);

  std::mutex mutex_;
  Order order_;
  std::map<Key, Order::iterator> known_;
  size_t stretches_ = 0;
};

}  // namespace strobe
