// tile.h - one tile of the pyramid: 256 bins of 2^level ns of one location (or of a row of many), and its coding.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/pyramid/stretches.h"

namespace strobe {

constexpr uint32_t kTileBins = 256;
constexpr uint32_t kTileBits = 8;
constexpr uint32_t kTileSpans = 2048;  // a tile exists only where at least as many spans begin
constexpr uint32_t kMaxLevel = 52;     // 2^52 ns are 52 days a bin
constexpr uint32_t kMaxGroups = 8;     // groups of regions: those of model/kinds.py

// The longest exceptional stretch that overlaps a bin.
struct Mark {
  uint32_t bin;
  uint32_t region;  // kGap: a gap
  int64_t ns;       // the stretch as a whole
};

// What a region does in a tile as a whole. Exact.
struct RegionSum {
  uint32_t region;
  uint64_t count;  // spans that begin in the tile
  int64_t own_ns;  // time in the tile in which one of its spans is the innermost
};

struct Tile {
  uint32_t region[kTileBins];             // the one with most time in the bin; kNothing where nothing ran
  uint8_t share[kTileBins];               // of the bin, in 255ths
  uint8_t groups[kMaxGroups][kTileBins];  // shares of the bin, in 255ths, each rounded by itself
  std::vector<Mark> marks;                // by bin
  std::vector<RegionSum> profile;         // by region
};

// What is read of a tile; what is not asked for keeps what it held before.
enum TileParts : uint32_t {
  kPictureOfTile = 1,  // region, share
  kGroupsOfTile = 2,
  kProfileOfTile = 4,
};  // marks always

// Three zstd frames with checksums, so that a picture reads no more than it shows. The tile of a row of many locations
// has no regions and no profile, and its marks name regions of the whole trace.
std::string encode_tile(const Tile& tile);
// False: damaged.
bool decode_tile(std::string_view frames, uint32_t parts, Tile& out);

// `few`: so few bytes, as those of a profile, that a table of how to write each would be larger than what it saves.
std::string compressed(std::string_view bytes, bool few = false);
bool decompressed(std::string_view frame, std::string& out);

}  // namespace strobe
