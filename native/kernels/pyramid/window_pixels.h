// window_pixels.h - pixels and sums of a window, from tiles where there are some and from blocks where there are none.
//
// Windows are in ns since the trace's zero. A window whose pixels are bins of the pyramid (2^k ns wide, and beginning
// at a multiple of that) is as exact as its tiles: the dominant region by exact time, shares to half of a 255th. In any
// other window a pixel is made of bins of an eighth to a quarter of it, those at its two edges by halves: shares are
// right to an eighth of a pixel. Where blocks are read, everything is exact.
#pragma once
#include <stdint.h>
#include <vector>

#include "kernels/pyramid/exceptional.h"
#include "kernels/pyramid/near_stretches.h"
#include "kernels/pyramid/pyramid.h"

namespace strobe {

// A location, with what is needed to draw it.
struct Track {
  const ProcessFile* file;
  const TilesFile* tiles;
  const Exceptional* exceptional;
  const Groups* groups;
  const std::vector<uint32_t>* regions;  // those of the trace, by region of the process
  uint32_t location;
  int64_t origin_ns;              // the trace's zero on the clock of the process
  int64_t begin_ns, end_ns;       // nothing outside is looked at; since the trace's zero
  NearStretches* near = nullptr;  // of pictures that others follow
};

struct Window {
  int64_t start_ns, end_ns;
  uint32_t width;  // pixels
};

// By pixel: the innermost region with most time, its share, and the region of the longest exceptional stretch (kGap for
// a gap). Regions are those of the trace; kNothing where there is none.
void draw_cells(const Track& track, const Window& window, uint32_t* region, uint8_t* share, uint32_t* mark);

// What groups fill of each pixel (255: all of it, by pixel and group), and the longest mark of it. Several tracks may
// be added to one.
struct GroupRow {
  explicit GroupRow(uint32_t width) : shares(size_t(width) * kMaxGroups), mark(width, kNothing), mark_ns(width, 0) {}
  std::vector<double> shares;
  std::vector<uint32_t> mark;
  std::vector<int64_t> mark_ns;
};
void add_groups(const Track& track, const Window& window, GroupRow& out);
// The same from a tile that stands for so many locations: see overview.h.
void add_tile(const Tile& tile, uint32_t level, int64_t tile_start, uint32_t locations, const Window& window,
              GroupRow& out);

// By region of the trace: spans that begin in [start_ns, end_ns), and the time in it in which one is the innermost.
void add_profile(const Track& track, int64_t start_ns, int64_t end_ns, int64_t* count, int64_t* own_ns, size_t regions);

// The level whose bins a window is drawn from, less than 0 where it needs blocks; and whether its pixels are the bins.
int level_of(const Window& window, bool& aligned);

// The same per depth of the nesting, from the blocks: as many rows as there are depths in the window (at most
// `max_depth`). Here `share` is what all spans of the depth together fill of the pixel: rare short calls do not look
// like a wall. No more than `width` blocks are read: where there are more in the window, what one block in the middle
// of each pixel holds of it stands for all of the pixel.
struct Cells {
  std::vector<uint32_t> region;  // of the process; kNothing: nothing ran
  std::vector<uint8_t> share;    // of the pixel, in 255ths
};
std::vector<Cells> stack_cells(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns,
                               uint32_t width, uint32_t max_depth);

}  // namespace strobe
