// overview.h - rows that stand for many locations: the tiles of `overview.tiles`, so that a picture of ten thousand
// ranks costs what one of a hundred costs.
//
// A row of level k stands for 8^k locations of one place, in order of rank. Its tiles have shares of groups, the mean
// of the locations', and marks, the longest of theirs; they exist where the tiles of its locations cover at least
// kRowSpans spans a location, so that making one means reading tiles, and no blocks to speak of. Where there is none, a
// row is the sum of its eight rows of level k - 1, and those of level 0 are the locations.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/pyramid/window_pixels.h"

namespace strobe {

constexpr uint32_t kRowBits = 3;  // eight rows become one
constexpr uint64_t kRowSpans = 2 * kTileSpans;

// The locations of one place. Rows of all places are numbered in one file: those of this one from `first_row` on.
struct Place {
  uint32_t first_row, members;
  std::function<Track(uint32_t member)> track;
};

// Throws std::system_error.
void build_overview(const std::vector<Place>& places, const TilesOf& of, const std::string& path);

// Adds what the members of a row fill; a row behind the last is empty. Returns how many members it has.
uint32_t add_row(const Place& place, const TilesFile& overview, uint32_t row_level, uint64_t row, const Window& window,
                 GroupRow& out);

}  // namespace strobe
