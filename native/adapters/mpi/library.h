// library.h - the MPI library of this process, found when the first MPI function is called: MPICH and its relatives,
// Open MPI, or one with the standard's ABI. Nothing is linked, no mpi.h is included: every argument of every function
// is an integer or a pointer, which one register or one stack slot holds (x86-64, AArch64).
#pragma once
#include <stdint.h>
#include <atomic>

#include "adapters/mpi/calls.h"

namespace strobe::mpi {

using Word = intptr_t;  // an argument, whatever its type

enum Call : int {
#define MPI_CALL(name, ...) k##name,
  MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
      kCalls
};

struct Constants {
  int any_source = INT32_MIN, proc_null = INT32_MIN;
  Word comm_null = 0;
  bool comm_is_int = false;  // handles are ints: the upper half of a word holds anything
};

struct Library {
  void* real[kCalls] = {};  // PMPI_*; nullptr where the library has no such function
  Constants constants;
  int (*comm_rank)(Word comm, int* rank) = nullptr;
  int (*comm_size)(Word comm, int* size) = nullptr;
  Word comm_world = 0;
};

extern std::atomic<const Library*> found_library;
const Library* find_library(const void* caller);

// `caller`: an address in the object that calls MPI. nullptr: there is no MPI library to be found.
inline const Library* library(const void* caller) {
  const Library* found = found_library.load(std::memory_order_acquire);
  return __builtin_expect(found != nullptr, 1) ? found : find_library(caller);
}

}  // namespace strobe::mpi
