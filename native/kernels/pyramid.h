// pyramid.h - tiles: what the innermost region of a location is over time, at power-of-two resolutions, so that a
// picture costs what the screen costs.
//
// A tile (level, index) covers 256 bins of 2^level ns each, from index * 256 * 2^level ns of CLOCK_MONOTONIC on. Per
// bin: the region with the largest exact share of the bin, and that share in 255ths. A tile exists only where it covers
// at least kTileSpans spans; below that, blocks are read. So the space is bounded by spans / kTileSpans tiles a level,
// and no query reads more than about kTileSpans spans for each absent tile.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/process_file.h"

namespace strobe {

constexpr uint32_t kTileBins = 256;
constexpr uint32_t kTileSpans = 2048;
constexpr uint32_t kNothing = 0xFFFFFFFF;

struct Cells {                   // one row of a picture
  std::vector<uint32_t> region;  // kNothing: nothing ran
  std::vector<uint8_t> share;    // of the pixel, in 255ths
};

// Writes the tiles of a whole process to `path` (through a temporary file: readers see all of it or none). Throws
// std::system_error.
void build_tiles(const ProcessFile& file, const std::string& path);

class Tiles {
 public:
  // An empty object when there is no such file, or when it is no sound tiles file or was built from another block file.
  Tiles(const std::string& path, const ProcessFile& file);
  struct Tile {
    uint32_t region[kTileBins];
    uint8_t share[kTileBins];
  };
  bool find(uint32_t location, uint32_t level, int64_t index, Tile& out) const;
  bool empty() const { return directory_.empty(); }

 private:
  struct Key {
    uint32_t location, level;
    int64_t index;
    auto operator<=>(const Key&) const = default;
  };
  std::string bytes_;
  std::map<Key, std::pair<uint32_t, uint32_t>> directory_;  // offset, size
};

// Innermost region by time share per pixel. `tiles` may be empty: then everything comes from the blocks.
Cells cells(const ProcessFile& file, const Tiles& tiles, uint32_t location, int64_t start_ns, int64_t end_ns,
            uint32_t width);

// The same per depth of the nesting, from the blocks: as many rows as there are depths in the window (at most
// `max_depth`). Here `share` is what all spans of the depth together fill of the pixel: rare short calls are no wall.
std::vector<Cells> stack_cells(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns,
                               uint32_t width, uint32_t max_depth);

}  // namespace strobe
