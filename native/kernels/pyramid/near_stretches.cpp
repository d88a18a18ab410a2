#include "kernels/pyramid/near_stretches.h"

namespace strobe {

constexpr size_t kMostStretches = 8 << 20;  // 96 MB
constexpr size_t kMostOfOne = 8192;         // so that a thousand rows have room
constexpr int64_t kMostBlocks = 2;          // more than these hold nothing that a neighbour would read again
constexpr double kMostSpans = 2048;         // that are asked for; with those around them
constexpr double kMostAround = 3072;
constexpr double kAround = 3;       // times what was asked for, before and after it
constexpr size_t kOverlapping = 8;  // lists that are looked at for one that holds all of a window

[[gnu::noinline]] BlockScratch& scratch_of_thread() {
  thread_local BlockScratch scratch;
  return scratch;
}

std::shared_ptr<const StretchList> NearStretches::find(const ProcessFile& file, uint32_t location, int64_t from,
                                                       int64_t to) {
  const std::lock_guard lock(mutex_);
  auto at = known_.upper_bound({&file, location, from});
  for (size_t i = 0; i < kOverlapping && at != known_.begin(); i++) {
    --at;
    if (std::get<0>(at->first) != &file || std::get<1>(at->first) != location) break;
    if (at->second->list->to_ns < to) continue;
    order_.splice(order_.begin(), order_, at->second);
    return at->second->list;
  }
  return nullptr;
}

void NearStretches::keep(const Key& key, const std::shared_ptr<const StretchList>& list) {
  const std::lock_guard lock(mutex_);
  auto drop = [&](std::map<Key, Order::iterator>::iterator known) {
    stretches_ -= known->second->list->region.size();
    order_.erase(known->second);
    known_.erase(known);
  };
  if (const auto known = known_.find(key); known != known_.end()) drop(known);
  order_.push_front({key, list});
  known_[key] = order_.begin();
  stretches_ += list->region.size();
  while (stretches_ > kMostStretches) drop(known_.find(order_.back().key));
}

std::shared_ptr<const StretchList> NearStretches::around(const ProcessFile& file, uint32_t location, int64_t from,
                                                         int64_t to) {
  const auto of = file.locations.find(location);
  if (of == file.locations.end() || from >= to) return nullptr;
  const std::vector<Block>& blocks = of->second.blocks;
  // Stretches of a block end where the next one begins: no block before the one that `from` is in is needed.
  auto first = std::ranges::upper_bound(blocks, from, {}, &Block::first_ns);
  if (first != blocks.begin()) --first;
  const auto last = std::ranges::lower_bound(first, blocks.end(), to, {}, &Block::first_ns);
  if (first == last || last - first > ptrdiff_t(kMostBlocks)) return nullptr;
  if (auto found = find(file, location, from, to)) return found;

  const bool is_first = first == blocks.begin(), is_last = last == blocks.end();
  const int64_t blocks_from = first->first_ns, blocks_to = is_last ? (last - 1)->last_ns : last->first_ns;
  double spans = 0;
  for (auto block = first; block != last; ++block) spans += block->count;
  // As if they were spread evenly.
  const double asked_ns = std::max(1.0, double(std::min(to, blocks_to)) - double(std::max(from, blocks_from)));
  const double spans_a_ns = spans / std::max(1.0, double(blocks_to) - double(blocks_from));
  if (asked_ns * spans_a_ns > kMostSpans) return nullptr;
  const double around_ns = std::max(0.0, kMostAround / spans_a_ns - asked_ns) / 2;
  const auto reach = int64_t(std::min({kAround * double(to - from), around_ns, double(int64_t(1) << 60)}));

  auto list = std::make_shared<StretchList>();
  StretchList& out = *list;
  out.from_ns = std::max(from - reach, is_first ? INT64_MIN : blocks_from);
  out.to_ns = std::min(to + reach, is_last ? INT64_MAX : blocks_to);
  out.end_ns = blocks_from;
  const auto expected = size_t(2 * std::min(spans, (asked_ns + 2 * double(reach)) * spans_a_ns)) + 16;
  out.start_ns.reserve(expected), out.region.reserve(expected);
  BlockScratch& scratch = scratch_of_thread();
  for (auto block = first; block != last; ++block)
    visit_block(
        file, of->second, size_t(block - blocks.begin()), out.to_ns, scratch, [](int64_t, uint32_t) {},
        [&](const Stretch& each) {
          if (each.end_ns <= out.from_ns) return;
          if (!out.region.empty() && each.start_ns != out.end_ns)
            out.start_ns.push_back(out.end_ns), out.region.push_back(kNothing);
          out.start_ns.push_back(each.start_ns), out.region.push_back(each.region);
          out.end_ns = each.end_ns;
        });
  if (out.region.size() <= kMostOfOne) {
    out.start_ns.shrink_to_fit(), out.region.shrink_to_fit();
    keep({&file, location, out.from_ns}, list);
  }
  return list;
}

}  // namespace strobe
