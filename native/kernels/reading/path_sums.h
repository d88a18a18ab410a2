// path_sums.h - sums by call path, straight from the blocks of a location: constant memory, a block at a time.
// In C++ because numpy takes 150 ns of CPU time a span for what takes 6 here (./dev bench scale --only sums), 13 where
// only some stretches of time are asked for.
#pragma once
#include <stdint.h>
#include <vector>

#include "kernels/reading/process_file.h"

namespace strobe {

// By call path of the process; ns. A span's own time is without those directly inside of it.
struct PathSums {
  std::vector<int64_t> calls, total_ns, own_ns, min_ns, max_ns;
};

struct TimeRange {
  int64_t begin_ns, end_ns;
};

// Sums of the spans of some locations that begin in one of `chosen`, which are in order and do not overlap; without it,
// of all. Spans inside of a chosen one do not count to its own time, chosen or not. Paths that did not run have 0
// everywhere.
PathSums sum_paths(const ProcessFile& file, const std::vector<uint32_t>& locations,
                   const std::vector<TimeRange>* chosen);

}  // namespace strobe
