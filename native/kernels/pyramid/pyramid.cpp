#include "kernels/pyramid/pyramid.h"

#include <algorithm>
#include <array>

#include "kernels/pyramid/exceptional.h"

namespace strobe {

namespace {

struct Start {
  int64_t start_ns;
  uint32_t region;
};

// The spans and stretches of a location in order, read some blocks ahead.
class Ahead {
 public:
  Ahead(const ProcessFile& file, const Location& location) : file_(file), location_(location) {}

  // Whether at least kTileSpans spans begin before `end_ns`.
  bool many_before(int64_t end_ns) {
    while (starts_.size() - start_ < kTileSpans && last_ns_ < end_ns && read()) {
    }
    return starts_.size() - start_ >= kTileSpans && starts_[start_ + kTileSpans - 1].start_ns < end_ns;
  }

  // Hands out what begins before `end_ns`; a stretch that goes on there stays, to be handed out again.
  template <class OnStart, class OnStretch>
  void take(int64_t end_ns, OnStart&& on_start, OnStretch&& on_stretch) {
    while (last_ns_ < end_ns && read()) {
    }
    for (; start_ < starts_.size() && starts_[start_].start_ns < end_ns; start_++) on_start(starts_[start_]);
    for (; stretch_ < stretches_.size() && stretches_[stretch_].start_ns < end_ns; stretch_++) {
      on_stretch(stretches_[stretch_]);
      if (stretches_[stretch_].end_ns > end_ns) break;
    }
  }

 private:
  bool read() {
    if (block_ == location_.blocks.size()) return false;
    starts_.erase(starts_.begin(), starts_.begin() + ptrdiff_t(start_)), start_ = 0;
    stretches_.erase(stretches_.begin(), stretches_.begin() + ptrdiff_t(stretch_)), stretch_ = 0;
    visit_block(
        file_, location_, block_, INT64_MAX, scratch_,
        [&](int64_t start, uint32_t region) {
          last_ns_ = std::max(last_ns_, start);
          starts_.push_back({last_ns_, region});
        },
        [&](const Stretch& stretch) { stretches_.push_back(stretch); });
    block_++;
    return true;
  }

  const ProcessFile& file_;
  const Location& location_;
  BlockScratch scratch_;
  std::vector<Start> starts_;
  std::vector<Stretch> stretches_;
  size_t block_ = 0, start_ = 0, stretch_ = 0;
  int64_t last_ns_ = INT64_MIN;  // of the last start that was read
};

// What is known of an interval of 256 bins: exact, whether it is stored or not.
struct Part {
  struct Cell {
    uint32_t bin, region;
    int64_t ns;
  };
  std::vector<Cell> cells;         // by bin and region
  std::vector<RegionSum> profile;  // by region
  std::vector<Mark> marks;         // by bin
  uint64_t spans = 0;
  void clear() { cells.clear(), profile.clear(), marks.clear(), spans = 0; }
};

// Two lists in order of a key become one; what has the same key in both is joined.
template <class Each, class Key, class Join>
void merge(const Each* a, const Each* a_end, const Each* b, const Each* b_end, std::vector<Each>& out, Key&& key,
           Join&& join) {
  while (a != a_end && b != b_end) {
    if (key(*a) < key(*b)) {
      out.push_back(*a++);
    } else if (key(*b) < key(*a)) {
      out.push_back(*b++);
    } else {
      out.push_back(*a++);
      join(out.back(), *b++);
    }
  }
  out.insert(out.end(), a, a_end);
  out.insert(out.end(), b, b_end);
}

// Of a bin only the longest mark is kept, the first of equal ones. They come in order of bins.
void add_mark(std::vector<Mark>& marks, const Mark& mark) {
  if (marks.empty() || marks.back().bin != mark.bin)
    marks.push_back(mark);
  else if (mark.ns > marks.back().ns)
    marks.back() = mark;
}

// A half becomes 128 bins of its parent, from `first_bin` on: every two neighbours become one.
void halve(const Part& half, uint32_t first_bin, Part& out) {
  const Part::Cell *at = half.cells.data(), *end = at + half.cells.size();
  while (at != end) {
    const uint32_t pair = at->bin / 2, before = uint32_t(out.cells.size());
    const Part::Cell* middle = std::find_if(at, end, [&](const Part::Cell& each) { return each.bin > pair * 2; });
    const Part::Cell* next = std::find_if(middle, end, [&](const Part::Cell& each) { return each.bin / 2 != pair; });
    merge(
        at, middle, middle, next, out.cells, [](const Part::Cell& each) { return each.region; },
        [](Part::Cell& into, const Part::Cell& each) { into.ns += each.ns; });
    for (size_t i = before; i < out.cells.size(); i++) out.cells[i].bin = first_bin + pair;
    at = next;
  }
  for (const Mark& mark : half.marks) add_mark(out.marks, {first_bin + mark.bin / 2, mark.region, mark.ns});
  out.spans += half.spans;
}

void join(const Part& first, const Part& second, Part& out) {
  out.clear();
  halve(first, 0, out);
  halve(second, kTileBins / 2, out);
  const RegionSum *a = first.profile.data(), *b = second.profile.data();
  merge(
      a, a + first.profile.size(), b, b + second.profile.size(), out.profile,
      [](const RegionSum& each) { return each.region; },
      [](RegionSum& into, const RegionSum& each) { into.count += each.count, into.own_ns += each.own_ns; });
}

// The tiles of one location, from its spans in order of time. The finest tiles are found by looking ahead: an interval
// is divided as long as enough spans begin in it.
class Builder {
 public:
  Builder(const ProcessFile& file, const Location& location, const Exceptional& exceptional, const Groups& groups,
          int64_t origin_ns, TilesWriter& out)
      : ahead_(file, location),
        location_(location.id),
        exceptional_(exceptional),
        groups_(groups),
        origin_ns_(origin_ns),
        out_(out) {}

  void build(int64_t first_ns, int64_t last_ns) {
    // From the trace's zero on: whatever picture of the whole trace is drawn, there are tiles as coarse as its pixels.
    const int64_t begin = std::min<int64_t>(first_ns - origin_ns_, 0), end = std::max<int64_t>(last_ns - origin_ns_, 0);
    uint32_t level = 0;
    while (level < kMaxLevel && ((begin >> (level + kTileBits)) < -1 || (end >> (level + kTileBits)) > 0)) level++;
    if ((begin >> (level + kTileBits)) < -1 || (end >> (level + kTileBits)) > 0) return;  // no times that clocks show
    parts_.resize(level + 1);
    Part root, above, nothing;
    for (int64_t index = begin < 0 ? -1 : 0; index <= 0; index++) {
      if (!tile(level, index, root)) continue;
      // On to where all of it is a single bin. These are for pictures alone: their profiles would repeat that of the
      // root.
      for (uint32_t coarser = level + 1; coarser <= std::min(level + kTileBits, kMaxLevel); coarser++) {
        if (index < 0)
          join(nothing, root, above);
        else
          join(root, nothing, above);
        std::swap(root, above);
        for (RegionSum& each : root.profile) each.count = 0, each.own_ns = 0;
        store({location_, coarser, index}, root);
      }
    }
  }

 private:
  // Whether the tile is one that is stored.
  bool tile(uint32_t level, int64_t index, Part& out) {
    const int64_t start = origin_ns_ + index * (int64_t(kTileBins) << level);
    const int64_t end = start + (int64_t(kTileBins) << level);
    const bool many = ahead_.many_before(end);
    if (many && level > 0) {
      auto& [first, second] = parts_[level];
      tile(level - 1, index * 2, first);
      tile(level - 1, index * 2 + 1, second);
      join(first, second, out);
    } else {
      leaf(level, start, end, out);
    }
    if (many) store({location_, level, index}, out);
    return many;
  }

  void leaf(uint32_t level, int64_t start, int64_t end, Part& out) {
    out.clear();
    size_t of_bin = 0;  // first cell of the bin that is being filled
    auto add = [&](uint32_t bin, uint32_t region, int64_t ns) {
      if (of_bin < out.cells.size() && out.cells[of_bin].bin != bin) of_bin = out.cells.size();
      size_t at = out.cells.size();
      while (at > of_bin && out.cells[at - 1].region > region) at--;
      if (at > of_bin && out.cells[at - 1].region == region)
        out.cells[at - 1].ns += ns;
      else
        out.cells.insert(out.cells.begin() + ptrdiff_t(at), {bin, region, ns});
    };
    touched_.clear();
    ahead_.take(
        end,
        [&](const Start& each) {
          sum(each.region).count++;
          out.spans++;
        },
        [&](const Stretch& each) {
          const int64_t from = std::max(each.start_ns, start), to = std::min(each.end_ns, end);
          if (from >= to) return;
          const auto first = uint32_t((from - start) >> level), last = uint32_t((to - 1 - start) >> level);
          if (each.region != kGap) {
            sum(each.region).own_ns += to - from;
            int64_t at = from;
            for (uint32_t bin = first; bin <= last; bin++) {
              const int64_t bin_end = std::min(to, start + (int64_t(bin + 1) << level));
              add(bin, each.region, bin_end - at);
              at = bin_end;
            }
          }
          if (exceptional_(each))
            for (uint32_t bin = first; bin <= last; bin++)
              add_mark(out.marks, {bin, each.region, each.end_ns - each.start_ns});
        });
    std::sort(touched_.begin(), touched_.end());
    for (const uint32_t region : touched_) {
      out.profile.push_back(sums_[region]);
      sums_[region] = {};
    }
  }

  RegionSum& sum(uint32_t region) {
    if (sums_.size() <= region) sums_.resize(region + 1);
    RegionSum& found = sums_[region];
    if (found.count == 0 && found.own_ns == 0) touched_.push_back(region), found.region = region;
    return found;
  }

  void store(const TileKey& key, const Part& part) {
    Tile& tile = tile_;
    const int64_t half = key.level ? int64_t(1) << (key.level - 1) : 0;
    auto share = [&](int64_t ns) { return uint8_t((ns * 255 + half) >> key.level); };
    std::fill(tile.region, tile.region + kTileBins, kNothing);
    std::fill(tile.share, tile.share + kTileBins, uint8_t(0));
    for (auto& group : tile.groups) std::fill(group, group + kTileBins, uint8_t(0));
    for (size_t i = 0; i < part.cells.size();) {
      const uint32_t bin = part.cells[i].bin;
      int64_t most = 0, of_group[kMaxGroups] = {};
      for (; i < part.cells.size() && part.cells[i].bin == bin; i++) {
        const Part::Cell& cell = part.cells[i];
        if (cell.region < groups_.size()) of_group[groups_[cell.region]] += cell.ns;
        if (cell.ns > most) most = cell.ns, tile.region[bin] = cell.region;  // of equal ones that with the least number
      }
      tile.share[bin] = share(most);
      for (uint32_t group = 0; group < kMaxGroups; group++) tile.groups[group][bin] = share(of_group[group]);
    }
    tile.marks = part.marks;
    tile.profile = part.profile;
    out_.add(key, part.spans, encode_tile(tile));
  }

  Ahead ahead_;
  const uint32_t location_;
  const Exceptional& exceptional_;
  const Groups& groups_;
  const int64_t origin_ns_;
  TilesWriter& out_;
  std::vector<std::array<Part, 2>> parts_;  // by level: the two halves of a tile
  std::vector<RegionSum> sums_;             // by region, of the leaf that is being made
  std::vector<uint32_t> touched_;
  Tile tile_;
};

}  // namespace

TilesOf tiles_of(const ProcessFile& file, const Groups& groups, int64_t origin_ns) {
  TilesOf of;
  of.blocks_bytes = file.bytes();
  for (const auto& [id, location] : file.locations) of.spans += location.spans;
  of.last_ns = file.last_ns, of.origin_ns = origin_ns;
  of.groups = crc32c(groups.data(), groups.size());
  const auto& points = file.clock().points();
  if (!points.empty())
    of.clock = crc32c(reinterpret_cast<const char*>(points.data()), points.size() * sizeof points[0]);
  return of;
}

void build_tiles(const ProcessFile& file, const Groups& groups, int64_t origin_ns, const std::string& path) {
  TilesWriter out(path);
  for (const auto& [id, location] : file.locations) {
    if (location.blocks.empty()) continue;
    const Exceptional exceptional(file, id);
    out.add({id, kThresholds, 0}, 0, compressed(exceptional.encoded()));
    if (location.spans < kTileSpans) continue;
    Builder(file, location, exceptional, groups, origin_ns, out)
        .build(location.first_ns, std::max(location.last_ns, file.last_ns));
  }
  out.finish(tiles_of(file, groups, origin_ns));
}

}  // namespace strobe
