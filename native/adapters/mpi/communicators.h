// communicators.h - names, ranks and members of communicators, and which one a window or a file belongs to.
//
// A name is the same on all its ranks and no other communicator's, without asking anybody: MPI_COMM_WORLD.2 is the
// second one that was made from MPI_COMM_WORLD, which all its ranks do in one order; where only some of them are in it,
// the name goes on with its first member's rank in MPI_COMM_WORLD: MPI_COMM_WORLD.2.r4.
#pragma once
#include <stdint.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "adapters/mpi/mpi_library.h"

namespace strobe::mpi {

// Texts that rows refer to keep their numbers as long as the process lives: 0 until there is one.
using Text = std::atomic<uint32_t>;

struct Communicator {
  std::string name;
  int rank = 0;          // own rank in it
  int size = 0;          // its ranks
  int peers = 0;         // ranks that it can send to: the same, of an inter-communicator those of the other group
  bool between = false;  // it is an inter-communicator
  std::shared_ptr<const std::vector<int>> world;  // by rank of a peer: its rank in MPI_COMM_WORLD, -1 where it has none
  int incoming = 0, outgoing = 0;                 // neighbours, where it has a topology
  std::string sources;                            // the incoming ones as JSON: ranks in MPI_COMM_WORLD
  uint64_t walls = 0;                             // bit i: the i-th of them is MPI_PROC_NULL (the edge of a grid)
  mutable std::atomic<uint32_t> children{0};      // communicators made from it
  mutable std::atomic<int32_t> windows{0};        // and windows
  mutable Text text{0}, sources_text{0};

  int32_t world_rank(int peer) const { return peer >= 0 && size_t(peer) < world->size() ? (*world)[size_t(peer)] : -1; }
};

// A window of one-sided communication: the n-th of its communicator, on all its ranks alike.
struct Window {
  const Communicator* of;
  int32_t number = 0;  // 0: it was made out of our sight
  std::vector<int> access{},
      exposure{};  // between MPI_Win_start and _complete, _post and _wait: the ranks on the other side
};

// None of these returns nullptr for a handle that is valid.
const Communicator* communicator_of(const Library& library, Word comm);
Window& window_of(const Library& library, Word window);
const Communicator* communicator_of_file(const Library& library, Word file);

// `comm` was made from `parent`, together with all its other ranks.
void made_from(const Library& library, const Communicator& parent, uint32_t number, Word comm);
// `comm` was made by some ranks of `parent` alone (MPI_Comm_create_group, MPI_Intercomm_create), who agreed on `tag`.
void made_by_some(const Library& library, const Communicator& parent, int tag, Word comm);
void window_made(const Communicator& of, Word window);
// Ranks of a group in the group of a window.
std::vector<int> ranks_in_window(const Library& library, Word window, Word group);
void file_opened(const Communicator& of, Word file);

// The handle is about to be freed. What was known is handed out, for a row about it.
const Communicator* drop_communicator(const Library& library, Word comm);
const Communicator* drop_window(const Library& library, Word window);
const Communicator* drop_file(Word file);

// Bytes of an element of a data type.
int64_t size_of_type(const Library& library, Word type);
void drop_type(Word type);

}  // namespace strobe::mpi
