// mpi_library.h - the MPI library of this process, found when the first MPI function is called: MPICH and its
// relatives, Open MPI, or one with the standard's ABI. Nothing is linked, no mpi.h is included: every argument of every
// function is an integer or a pointer, which one register or one stack slot holds (x86-64, AArch64).
#pragma once
#include <stdint.h>
#include <atomic>

#include "adapters/mpi/mpi_calls.h"
#include "adapters/mpi/shmem_calls.h"
#include "include/strobe.h"

namespace strobe::mpi {

using Word = intptr_t;  // an argument, whatever its type

enum Call : int {
#define MPI_CALL(name, ...) k##name,
  MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
      kMpiCalls,
  kBeforeShmem = kMpiCalls - 1,
#define SHMEM_CALL(result, name, ...) k##name,
  SHMEM_CALLS(SHMEM_CALL)
#undef SHMEM_CALL
      kCalls
};

inline uint8_t paradigm_of(int call) { return call < kMpiCalls ? STROBE_MPI : STROBE_SHMEM; }

struct Constants {
  int any_source = INT32_MIN, proc_null = INT32_MIN, root = INT32_MIN;  // root: MPI_ROOT
  Word comm_null = 0, comm_self = 0, type_null = 0, byte = 0;
  Word in_place = 1, status_ignore = 0;
  int lock_shared = 2;
  int cartesian = 0, graph = 0, distributed_graph = 0;      // results of MPI_Topo_test
  int status_bytes = 0, status_source = 0, status_tag = 0;  // size of a status, and offsets in it
  bool handles_are_ints = false;                            // the upper half of a word holds anything
};

// X(member, name after "PMPI_", parameters): what is asked of the library beside the calls.
#define MPI_QUESTIONS(X)                                                                                              \
  X(comm_rank, Comm_rank, (Word comm, int* rank))                                                                     \
  X(comm_size, Comm_size, (Word comm, int* size))                                                                     \
  X(comm_test_inter, Comm_test_inter, (Word comm, int* flag))                                                         \
  X(comm_group, Comm_group, (Word comm, void* group))                                                                 \
  X(comm_remote_group, Comm_remote_group, (Word comm, void* group))                                                   \
  X(group_size, Group_size, (Word group, int* size))                                                                  \
  X(group_rank, Group_rank, (Word group, int* rank))                                                                  \
  X(group_translate_ranks, Group_translate_ranks, (Word group, int n, const int* ranks, Word other, int* translated)) \
  X(group_free, Group_free, (void* group))                                                                            \
  X(win_get_group, Win_get_group, (Word window, void* group))                                                         \
  X(initialized, Initialized, (int* flag))                                                                            \
  X(type_size_x, Type_size_x, (Word type, int64_t* bytes))                                                            \
  X(get_elements_x, Get_elements_x, (const void* status, Word type, int64_t* count))                                  \
  X(test_cancelled, Test_cancelled, (const void* status, int* flag))                                                  \
  X(topo_test, Topo_test, (Word comm, int* kind))                                                                     \
  X(cartdim_get, Cartdim_get, (Word comm, int* dimensions))                                                           \
  X(comm_get_parent, Comm_get_parent, (void* parent))                                                                 \
  X(cart_shift, Cart_shift, (Word comm, int dimension, int by, int* from, int* to))                                   \
  X(graph_neighbors_count, Graph_neighbors_count, (Word comm, int rank, int* count))                                  \
  X(graph_neighbors, Graph_neighbors, (Word comm, int rank, int most, int* ranks))                                    \
  X(dist_graph_neighbors_count, Dist_graph_neighbors_count, (Word comm, int* in, int* out, int* weighted))            \
  X(dist_graph_neighbors, Dist_graph_neighbors,                                                                       \
    (Word comm, int most_in, int* from, int* weights_in, int most_out, int* to, int* weights_out))

struct Library {
  void* real[kMpiCalls] = {};  // PMPI_*; nullptr where the library has no such function
  Constants constants;
#define MPI_QUESTION(member, name, parameters) int(*member) parameters = nullptr;
  MPI_QUESTIONS(MPI_QUESTION)
#undef MPI_QUESTION
  Word comm_world = 0;

  // Handles are compared and looked up as whole words.
  Word handle(Word word) const { return constants.handles_are_ints ? Word(uint32_t(word)) : word; }
  Word handle_at(const void* place, size_t index = 0) const {
    return constants.handles_are_ints ? Word(static_cast<const uint32_t*>(place)[index])
                                      : static_cast<const Word*>(place)[index];
  }
};

// A function that we do not interpose, in the objects of this process. `caller`: an address in the one that needs it.
void* find_function(const char* name, const void* caller);

extern std::atomic<const Library*> found_library;
const Library* find_library(const void* caller);

// `caller`: an address in the object that calls MPI. nullptr: no MPI library was found.
inline const Library* library(const void* caller) {
  const Library* found = found_library.load(std::memory_order_acquire);
  return __builtin_expect(found != nullptr, 1) ? found : find_library(caller);
}

}  // namespace strobe::mpi
