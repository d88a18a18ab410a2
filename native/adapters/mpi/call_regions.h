// call_regions.h - the region of one MPI call: function, relative peers, call path.
#pragma once
#include <stdint.h>

#include "adapters/mpi/call_paths.h"

namespace strobe::mpi {

// A peer relative to the own rank in the communicator, so that all ranks of a stencil call the same alike.
enum Peer : int32_t { kNobody = INT32_MIN, kAnybody, kNullProcess };

struct Peers {
  int32_t to = kNobody, from = kNobody;
};

// The region's name is that of the function (without the suffix _c of large counts), its `file` reads
// "to +1 from -1; exchange+0x1f < main+0x80", either part empty where there is none; its module is the calling object.
uint32_t region_of(int call, const char* name, uint8_t role, Peers peers, const CallPath& path);

}  // namespace strobe::mpi
