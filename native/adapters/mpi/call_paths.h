// call_paths.h - which chain of calls leads to an MPI function, at the price of a few loads.
//
// The first time that a return address comes with a stack pointer, the stack is unwound, and it is noted where on it
// each return address lies. From then on the same chain is recognised by looking at these places: it is the same if and
// only if the same addresses lie there. (The same address at the same depth alone would take two callers with frames of
// one size for one.) Where return addresses do not lie below the frame (AArch64) address and depth decide alone.
#pragma once
#include <stdint.h>
#include <string>

namespace strobe::mpi {

struct CallPath {
  uint32_t id = 0;     // equal for equal texts
  std::string text;    // "exchange+0x1f < step+0x22 < main+0x80": callers, innermost first, each with its offset
  std::string module;  // object of the innermost caller
};

// `caller` is the return address of the MPI function, `frame` its frame address. Frames of mpi4py are left out, and the
// chain ends at the Python interpreter: Python's own functions are in the trace already. Nothing is allocated but for a
// chain not seen before. After 16384 chains all new ones are one, without a text.
const CallPath& call_path(const void* caller, const void* frame);

}  // namespace strobe::mpi
