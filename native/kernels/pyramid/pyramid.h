// pyramid.h - tiles: what the innermost region of a location is over time, at power-of-two resolutions, so that a
// picture costs what the screen costs.
//
// A tile (level, index) covers 256 bins of 2^level ns each, from index * 256 * 2^level ns after the trace's zero on. It
// exists only where at least kTileSpans spans begin; below that, blocks are read. So the space is bounded by
// spans / kTileSpans tiles a level, and no query reads more than about kTileSpans spans for each absent tile. The
// coarsest tile of a location holds everything from the trace's zero to its end.
#pragma once
#include <string>
#include <vector>

#include "kernels/pyramid/tiles_file.h"
#include "kernels/reading/process_file.h"

namespace strobe {

// By region of the process: its group, less than kMaxGroups.
using Groups = std::vector<uint8_t>;

TilesOf tiles_of(const ProcessFile& file, const Groups& groups, int64_t origin_ns);

// Writes the tiles of a whole process to `path`, in one pass over its spans (a part of them is read before, for what is
// exceptional) and in memory that does not grow with them. Throws std::system_error.
void build_tiles(const ProcessFile& file, const Groups& groups, int64_t origin_ns, const std::string& path);

}  // namespace strobe
