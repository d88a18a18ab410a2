#include "kernels/pyramid/window_pixels.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace strobe {

namespace {

uint32_t of_trace(const Track& track, uint32_t region) {
  if (region == kGap) return kGap;
  return region < track.regions->size() ? (*track.regions)[region] : kNothing;
}

// Pixels of a window as coordinates.
class Scale {
 public:
  explicit Scale(const Window& window)
      : start_ns_(window.start_ns),
        per_ns_(window.width / double(window.end_ns - window.start_ns)),
        width_(window.width) {}
  // Where [from, to) begins and ends in pixels; false where it lies outside.
  bool range(int64_t from, int64_t to, double& a, double& b) const {
    a = std::max(0.0, double(from - start_ns_) * per_ns_);
    b = std::min(double(width_), double(to - start_ns_) * per_ns_);
    return a < b;
  }
  // The time that lies in a pixel for certain, and nowhere else.
  void inside(uint32_t pixel, int64_t& from, int64_t& to) const {
    from = start_ns_ + int64_t(std::ceil(pixel / per_ns_));
    to = start_ns_ + int64_t(std::floor((pixel + 1) / per_ns_));
  }
  double part_of_pixel(int64_t ns) const { return double(ns) * per_ns_; }
  // Calls on_pixel(number, part of it) for every pixel that [from, to) overlaps.
  template <class OnPixel>
  void pixels(int64_t from, int64_t to, OnPixel&& on_pixel) const {
    double a, b;
    if (!range(from, to, a, b)) return;
    for (auto pixel = uint32_t(a); pixel < b; pixel++) {
      const double part = std::min(b, pixel + 1.0) - std::max(a, double(pixel));
      if (part > 0) on_pixel(pixel, part);
    }
  }

 private:
  int64_t start_ns_;
  double per_ns_;  // exact where a pixel is 2^n ns, as the page asks for
  uint32_t width_;
};

// Goes through a window in order of time: on_tile(tile, its start) where there is one, on_blocks(from, to) for the time
// between. Adjacent absent tiles become one read of the blocks.
template <class OnTile, class OnBlocks>
void go_through(const Track& track, const Window& window, int level, uint32_t parts, OnTile&& on_tile,
                OnBlocks&& on_blocks) {
  const auto found = track.file->locations.find(track.location);
  if (found == track.file->locations.end() || found->second.blocks.empty()) return;
  const Location& location = found->second;
  // Nothing runs outside of these: however far a window reaches, no tiles are looked for there.
  const int64_t first = location.first_ns - track.origin_ns;
  const int64_t last = std::max(location.last_ns, track.file->last_ns) - track.origin_ns;
  const int64_t start = std::max({window.start_ns, track.begin_ns, first});
  const int64_t end = std::min({window.end_ns, track.end_ns, last == INT64_MAX ? last : last + 1});
  if (start >= end) return;
  const int top = track.tiles->top_level(track.location);
  level = std::min(level, top);
  if (level < 0) {
    on_blocks(start, end);
    return;
  }
  const uint32_t bits = uint32_t(level) + kTileBits;
  int64_t blocks_from = start;
  Tile tile;
  for (int64_t index = start >> bits; index <= (end - 1) >> bits; index++) {
    if (!track.tiles->find({track.location, uint32_t(level), index}, parts, tile)) continue;
    const int64_t from = index * (int64_t(1) << bits);
    if (blocks_from < from) on_blocks(blocks_from, from);
    on_tile(tile, uint32_t(level), from, start, end);
    blocks_from = from + (int64_t(1) << bits);
  }
  if (blocks_from < end) on_blocks(blocks_from, end);
}

// Calls on_stretch(stretch, from, to) for what lies in [from, to) of the blocks, in ns since the trace's zero.
template <class OnStart, class OnStretch>
void read_blocks(const Track& track, int64_t from, int64_t to, OnStart&& on_start, OnStretch&& on_stretch) {
  BlockScratch scratch;
  const int64_t origin = track.origin_ns;
  visit_window(*track.file, track.location, from + origin, to + origin, scratch, on_start, [&](const Stretch& stretch) {
    on_stretch(stretch, std::max(stretch.start_ns - origin, from), std::min(stretch.end_ns - origin, to));
  });
}

// The same where beginnings are not asked for.
template <class OnStretch>
void read_stretches(const Track& track, int64_t from, int64_t to, OnStretch&& on_stretch) {
  if (!track.near) {
    read_blocks(track, from, to, [](int64_t, uint32_t) {}, on_stretch);
    return;
  }
  const int64_t origin = track.origin_ns;
  track.near->visit(*track.file, track.location, from + origin, to + origin, [&](const Stretch& stretch) {
    on_stretch(stretch, std::max(stretch.start_ns - origin, from), std::min(stretch.end_ns - origin, to));
  });
}

class Marks {
 public:
  Marks(const Scale& scale, uint32_t* mark, int64_t* ns) : scale_(scale), mark_(mark), ns_(ns) {}
  void add(int64_t from, int64_t to, uint32_t region, int64_t ns) {
    scale_.pixels(from, to, [&](uint32_t pixel, double) {
      if (ns > ns_[pixel]) ns_[pixel] = ns, mark_[pixel] = region;
    });
  }
  // Those of a tile between `start` and `end`; without a track they name regions of the trace.
  void add_tile(const Track* track, const Tile& tile, uint32_t level, int64_t tile_start, int64_t start, int64_t end) {
    for (const Mark& each : tile.marks) {
      const int64_t from = tile_start + (int64_t(each.bin) << level), to = from + (int64_t(1) << level);
      add(std::max(from, start), std::min(to, end), track ? of_trace(*track, each.region) : each.region, each.ns);
    }
  }
  void add_stretch(const Track& track, const Stretch& stretch, int64_t from, int64_t to) {
    if ((*track.exceptional)(stretch))
      add(from, to, of_trace(track, stretch.region), stretch.end_ns - stretch.start_ns);
  }

 private:
  const Scale& scale_;
  uint32_t* mark_;
  int64_t* ns_;
};

// The dominant region of each pixel, filled by pieces in order of time.
class Dominant {
 public:
  Dominant(const Track& track, const Scale& scale, uint32_t* region, uint8_t* share)
      : track_(track), scale_(scale), region_(region), share_(share) {}
  void piece(int64_t from, int64_t to, uint32_t region, double filled) {
    scale_.pixels(from, to, [&](uint32_t pixel, double part) { add(pixel, region, part * filled); });
  }
  // A piece that fills all of its time: the pixels that lie in it are known at once.
  void stretch(int64_t from, int64_t to, uint32_t region) {
    if (from >= pixel_from_ns_ && to <= pixel_to_ns_) {  // most are shorter than a pixel
      now_.add(region, scale_.part_of_pixel(to - from));
      return;
    }
    double a, b;
    if (!scale_.range(from, to, a, b)) return;
    const auto first = uint32_t(a), last = uint32_t(b);
    if (first == last) {
      add(first, region, b - a);
      return;
    }
    add(first, region, first + 1.0 - a);
    const uint32_t known = of_trace(track_, region);
    std::fill(region_ + first + 1, region_ + last, known);
    std::fill(share_ + first + 1, share_ + last, uint8_t(255));
    if (b > last) add(last, region, b - last);
  }
  void set(uint32_t pixel, uint32_t region, uint8_t share) {
    if (region != kNothing) region_[pixel] = of_trace(track_, region), share_[pixel] = share;
  }
  void finish() {
    if (now_.empty()) return;
    const auto [region, part] = now_.largest();
    set(pixel_, region, uint8_t(std::min(255.0, part * 255 + 0.5)));
    now_.clear();
  }

 private:
  void add(uint32_t pixel, uint32_t region, double part) {
    if (pixel != pixel_) {
      finish();
      pixel_ = pixel;
      scale_.inside(pixel, pixel_from_ns_, pixel_to_ns_);
    }
    now_.add(region, part);
  }
  const Track& track_;
  const Scale& scale_;
  uint32_t* region_;
  uint8_t* share_;
  uint32_t pixel_ = kNothing;
  int64_t pixel_from_ns_ = 0, pixel_to_ns_ = 0;
  AmountsByRegion<double> now_;
};

}  // namespace

int level_of(const Window& window, bool& aligned) {
  const uint64_t length = uint64_t(window.end_ns - window.start_ns), pixel_ns = length / window.width;
  aligned =
      length % window.width == 0 && std::has_single_bit(pixel_ns) && (uint64_t(window.start_ns) & (pixel_ns - 1)) == 0;
  return std::min(int(std::bit_width(pixel_ns)) - 1 - (aligned ? 0 : 2), int(kMaxLevel));
}

void draw_cells(const Track& track, const Window& window, uint32_t* region, uint8_t* share, uint32_t* mark) {
  std::fill(region, region + window.width, kNothing);
  std::fill(share, share + window.width, uint8_t(0));
  std::fill(mark, mark + window.width, kNothing);
  bool aligned;
  const int wanted = level_of(window, aligned);
  const Scale scale(window);
  std::vector<int64_t> mark_ns(window.width);
  Marks marks(scale, mark, mark_ns.data());
  Dominant dominant(track, scale, region, share);
  go_through(
      track, window, wanted, kPictureOfTile,
      [&](const Tile& tile, uint32_t level, int64_t tile_start, int64_t start, int64_t end) {
        marks.add_tile(&track, tile, level, tile_start, start, end);
        const int64_t bin_ns = int64_t(1) << level;
        const bool whole = aligned && int(level) == wanted;
        const int64_t tile_end = tile_start + (bin_ns << kTileBits);
        if (whole && tile_start >= std::max(window.start_ns, track.begin_ns) &&
            tile_end <= std::min(window.end_ns, track.end_ns)) {
          const auto pixel = uint32_t((tile_start - window.start_ns) >> level);
          for (uint32_t bin = 0; bin < kTileBins; bin++) dominant.set(pixel + bin, tile.region[bin], tile.share[bin]);
          return;
        }
        for (uint32_t bin = 0; bin < kTileBins; bin++) {
          const int64_t from = tile_start + bin * bin_ns, to = from + bin_ns;
          if (tile.region[bin] == kNothing || to <= start || from >= end) continue;
          // A bin that is cut by the beginning or the end of the location is filled as a whole.
          if (whole && from >= window.start_ns && to <= window.end_ns && from >= track.begin_ns && to <= track.end_ns)
            dominant.set(uint32_t((from - window.start_ns) >> level), tile.region[bin], tile.share[bin]);
          else
            dominant.piece(std::max(from, track.begin_ns), std::min(to, track.end_ns), tile.region[bin],
                           tile.share[bin] / 255.0);
        }
      },
      [&](int64_t from, int64_t to) {
        read_stretches(track, from, to, [&](const Stretch& stretch, int64_t begin, int64_t end) {
          if (stretch.region != kGap) dominant.stretch(begin, end, stretch.region);
          marks.add_stretch(track, stretch, begin, end);
        });
      });
  dominant.finish();
}

// The groups of a tile that stands for so many locations, between `start` and `end`.
static void add_bins(const Tile& tile, uint32_t level, int64_t tile_start, uint32_t locations, int64_t start,
                     int64_t end, const Scale& scale, GroupRow& out) {
  for (uint32_t bin = 0; bin < kTileBins; bin++) {
    const int64_t from = tile_start + (int64_t(bin) << level), to = from + (int64_t(1) << level);
    scale.pixels(std::max(from, start), std::min(to, end), [&](uint32_t pixel, double part) {
      for (uint32_t group = 0; group < kMaxGroups; group++)
        out.shares[size_t(pixel) * kMaxGroups + group] += part * locations * tile.groups[group][bin];
    });
  }
}

void add_groups(const Track& track, const Window& window, GroupRow& out) {
  bool aligned;
  const int wanted = level_of(window, aligned);
  const Scale scale(window);
  Marks marks(scale, out.mark.data(), out.mark_ns.data());
  go_through(
      track, window, wanted, kGroupsOfTile,
      [&](const Tile& tile, uint32_t level, int64_t tile_start, int64_t start, int64_t end) {
        marks.add_tile(&track, tile, level, tile_start, start, end);
        add_bins(tile, level, tile_start, 1, track.begin_ns, track.end_ns, scale, out);
      },
      [&](int64_t from, int64_t to) {
        read_stretches(track, from, to, [&](const Stretch& stretch, int64_t begin, int64_t end) {
          marks.add_stretch(track, stretch, begin, end);
          if (stretch.region >= track.groups->size()) return;
          const uint32_t group = (*track.groups)[stretch.region];
          scale.pixels(begin, end, [&](uint32_t pixel, double part) {
            out.shares[size_t(pixel) * kMaxGroups + group] += part * 255;
          });
        });
      });
}

void add_tile(const Tile& tile, uint32_t level, int64_t tile_start, uint32_t locations, const Window& window,
              GroupRow& out) {
  const Scale scale(window);
  Marks(scale, out.mark.data(), out.mark_ns.data())
      .add_tile(nullptr, tile, level, tile_start, window.start_ns, window.end_ns);
  add_bins(tile, level, tile_start, locations, window.start_ns, window.end_ns, scale, out);
}

namespace {

// The tiles that lie in a window, as coarse as they can be, and the blocks at its edges.
class Profile {
 public:
  Profile(const Track& track, int64_t start_ns, int64_t end_ns, int64_t* count, int64_t* own_ns, size_t regions)
      : track_(track),
        start_(std::max(start_ns, track.begin_ns)),
        end_(std::min(end_ns, track.end_ns)),
        count_(count),
        own_ns_(own_ns),
        regions_(regions) {}

  void add() {
    if (start_ >= end_) return;
    const int top = track_.tiles->top_level(track_.location);
    if (top < 0) {
      blocks(start_, end_);
      read();
      return;
    }
    const uint32_t bits = uint32_t(top) + kTileBits;
    const int64_t reach = int64_t(1) << bits;  // what begins outside of the coarsest tiles is in no tile
    if (start_ < -reach) blocks(start_, std::min(end_, -reach));
    add(uint32_t(top), -1);
    add(uint32_t(top), 0);
    if (end_ > reach) blocks(std::max(start_, reach), end_);
    read();
  }

 private:
  void add(uint32_t level, int64_t index) {
    const int64_t from = index * (int64_t(kTileBins) << level), to = from + (int64_t(kTileBins) << level);
    if (to <= start_ || from >= end_) return;
    const TileKey key{track_.location, level, index};
    const bool there = !track_.tiles->frame(key).empty();
    const bool whole = there && from >= start_ && to <= end_ && track_.tiles->find(key, kProfileOfTile, tile_) &&
                       has_counts(tile_.profile);
    if (whole) {
      for (const RegionSum& each : tile_.profile) sum(each.region, int64_t(each.count), each.own_ns);
    } else if (there && level > 0) {
      add(level - 1, index * 2);
      add(level - 1, index * 2 + 1);
    } else {
      blocks(std::max(from, start_), std::min(to, end_));
    }
  }

  // The tiles that are coarser than that of the whole location have no profile.
  static bool has_counts(const std::vector<RegionSum>& profile) {
    return std::any_of(profile.begin(), profile.end(), [](const RegionSum& each) { return each.count > 0; });
  }

  // Neighbours are read at once.
  void blocks(int64_t from, int64_t to) {
    if (from != blocks_to_) read(), blocks_from_ = from;
    blocks_to_ = to;
  }

  void read() {
    if (blocks_from_ >= blocks_to_) return;
    read_blocks(
        track_, blocks_from_, blocks_to_, [&](int64_t, uint32_t region) { sum(region, 1, 0); },
        [&](const Stretch& stretch, int64_t from, int64_t to) {
          if (stretch.region != kGap) sum(stretch.region, 0, to - from);
        });
    blocks_from_ = blocks_to_;
  }

  void sum(uint32_t region, int64_t count, int64_t own_ns) {
    const uint32_t known = of_trace(track_, region);
    if (known < regions_) count_[known] += count, own_ns_[known] += own_ns;
  }

  const Track& track_;
  const int64_t start_, end_;
  int64_t* count_;
  int64_t* own_ns_;
  const size_t regions_;
  int64_t blocks_from_ = 0, blocks_to_ = INT64_MIN;
  Tile tile_;
};

}  // namespace

void add_profile(const Track& track, int64_t start_ns, int64_t end_ns, int64_t* count, int64_t* own_ns,
                 size_t regions) {
  Profile(track, start_ns, end_ns, count, own_ns, regions).add();
}

}  // namespace strobe
