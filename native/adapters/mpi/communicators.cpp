#include "adapters/mpi/communicators.h"

#include <stdio.h>

#include <map>
#include <mutex>
#include <numeric>

#include "adapters/mpi/handles.h"

namespace strobe::mpi {

namespace {

using Ranks = std::shared_ptr<const std::vector<int>>;

// Never destroyed: MPI_Finalize of mpi4py comes after the destructors of libraries.
auto& communicators = *new Handles<const Communicator*, 0>;
auto& windows = *new Handles<Window*, 1>;
auto& files = *new Handles<const Communicator*, 2>;
auto& types = *new Handles<int64_t, 3>;

// More than these are one for each set of members: a program that makes one a step must not fill memory.
constexpr uint32_t kMost = 1u << 16;
std::atomic<uint32_t> made{0};
std::mutex mutex;
auto& groups = *new std::map<std::vector<int>, Ranks>;  // equal members are stored once
auto& others =
    *new std::map<std::pair<Ranks, int>, const Communicator*>;  // those behind kMost, by members and own rank
auto& counted = *new std::map<std::string, uint32_t>;           // names that only some ranks of the parent gave

Ranks share(std::vector<int> world) {
  std::lock_guard lock(mutex);
  Ranks& shared = groups[world];
  if (!shared) shared = std::make_shared<const std::vector<int>>(std::move(world));
  return shared;
}

// Ranks of the members of a group in another one.
std::vector<int> ranks_in(const Library& library, Word group, Word other) {
  int size = 0;
  if (library.group_size(group, &size) != 0 || size < 0) size = 0;
  std::vector<int> ranks(size_t(size), 0), translated(size_t(size), -1);
  std::iota(ranks.begin(), ranks.end(), 0);
  if (size) library.group_translate_ranks(group, size, ranks.data(), other, translated.data());
  return translated;
}

// Ranks in MPI_COMM_WORLD of the members of a group, which is freed.
std::vector<int> world_ranks(const Library& library, void* group_place) {
  Word group = library.handle_at(group_place);
  int size = 0, initialized = 0;
  if (library.group_size(group, &size) != 0 || size < 0) size = 0;
  std::vector<int> world(size_t(size), -1);
  library.initialized(&initialized);  // a program of sessions has no MPI_COMM_WORLD
  Word all = 0;
  if (size && initialized && library.comm_group(library.comm_world, &all) == 0) {
    world = ranks_in(library, group, library.handle_at(&all));
    for (int& rank : world)
      if (rank < 0) rank = -1;
    library.group_free(&all);
  }
  library.group_free(group_place);
  return world;
}

int first_of(const std::vector<int>& world) { return world.empty() ? -1 : world[0]; }

std::string with_first(std::string name, const std::vector<int>& world) {
  return std::move((name += ".r") += std::to_string(first_of(world)));
}

void find_neighbours(const Library& library, Word comm, Communicator& found) {
  const Constants& is = library.constants;
  std::vector<int> sources;
  int kind = 0, dimensions = 0, weighted = 0;
  if (library.topo_test(comm, &kind) != 0) return;
  if (kind == is.cartesian && library.cartdim_get(comm, &dimensions) == 0) {
    found.incoming = found.outgoing = 2 * dimensions;
    for (int i = 0; i < dimensions && i < 32; i++) {
      int before = 0, after = 0;
      if (library.cart_shift(comm, i, 1, &before, &after) != 0) continue;
      sources.push_back(before), sources.push_back(after);
      if (before == is.proc_null) found.walls |= uint64_t(1) << 2 * i;
      if (after == is.proc_null) found.walls |= uint64_t(2) << 2 * i;
    }
  }
  if (kind == is.graph) {
    library.graph_neighbors_count(comm, found.rank, &found.incoming);
    found.outgoing = found.incoming;
    sources.assign(size_t(found.incoming), is.proc_null);
    library.graph_neighbors(comm, found.rank, found.incoming, sources.data());
  }
  if (kind == is.distributed_graph) {
    library.dist_graph_neighbors_count(comm, &found.incoming, &found.outgoing, &weighted);
    sources.assign(size_t(found.incoming), is.proc_null);
    std::vector<int> targets(size_t(found.outgoing), 0), weights_in(sources), weights_out(targets);
    library.dist_graph_neighbors(comm, found.incoming, sources.data(), weights_in.data(), found.outgoing,
                                 targets.data(), weights_out.data());
  }
  for (const int source : sources)
    if (const int32_t world = found.world_rank(source); world >= 0)
      (found.sources += found.sources.empty() ? '[' : ',') += std::to_string(world);
  if (!found.sources.empty()) found.sources += ']';
}

struct Members {
  std::vector<int> own, peers;  // ranks in MPI_COMM_WORLD
  bool between;
};

Members members_of(const Library& library, Word comm) {
  int between = 0;
  library.comm_test_inter(comm, &between);
  Word group = 0, remote = 0;
  Members found{{}, {}, between != 0};
  if (library.comm_group(comm, &group) == 0) found.own = world_ranks(library, &group);
  found.peers = found.own;
  if (between && library.comm_remote_group(comm, &remote) == 0) found.peers = world_ranks(library, &remote);
  return found;
}

const Communicator* make(const Library& library, Word comm, std::string name, Members members) {
  Ranks world = share(std::move(members.peers));
  int rank = 0;
  library.comm_rank(comm, &rank);
  if (made.fetch_add(1) >= kMost) {
    std::lock_guard lock(mutex);
    auto at = others.find({world, rank});
    if (at != others.end()) return at->second;
  }
  auto* found = new Communicator;
  found->name = made.load() > kMost ? with_first("(other communicators)", *world) : std::move(name);
  found->rank = rank;
  found->size = int(members.own.size());
  found->peers = int(world->size());
  found->between = members.between;
  found->world = world;
  if (!members.between) find_neighbours(library, comm, *found);
  if (made.load() > kMost) {
    std::lock_guard lock(mutex);
    others[{world, rank}] = found;
  }
  return found;
}

// Seen for the first time: predefined, or made out of our sight (spawned, connected, from a session).
const Communicator* discover(const Library& library, Word comm) {
  Members members = members_of(library, comm);
  std::string name;
  if (comm == library.comm_world) {
    Word parent = 0;  // who was spawned has a world of its own, with the same ranks as that of the parents
    const bool spawned =
        library.comm_get_parent(&parent) == 0 && library.handle_at(&parent) != library.constants.comm_null;
    name = spawned ? "MPI_COMM_WORLD of spawned" : "MPI_COMM_WORLD";
  } else if (comm == library.constants.comm_self) {
    name = with_first("MPI_COMM_SELF", members.own);
  } else if (members.between) {
    name = with_first("between groups", members.own);
  } else {
    name = with_first("unnamed", members.own);
  }
  return make(library, comm, name, std::move(members));
}

const Communicator* of_group(const Library& library, Word window) {
  Word group = 0;
  int rank = 0;
  auto* found = new Communicator;
  found->world = share({});
  if (library.win_get_group(window, &group) != 0) return found;
  library.group_rank(library.handle_at(&group), &rank);
  std::vector<int> world = world_ranks(library, &group);
  found->name = with_first("window", world);
  found->rank = rank;
  found->size = found->peers = int(world.size());
  found->world = share(std::move(world));
  return found;
}

}  // namespace

std::vector<int> ranks_in_window(const Library& library, Word window, Word group) {
  Word all = 0;
  if (library.win_get_group(window, &all) != 0) return {};
  std::vector<int> found = ranks_in(library, group, library.handle_at(&all));
  library.group_free(&all);
  return found;
}

const Communicator* communicator_of(const Library& library, Word comm) {
  return communicators.find(comm, [&] { return discover(library, comm); });
}

Window& window_of(const Library& library, Word window) {
  return *windows.find(window, [&] { return new Window{of_group(library, window)}; });
}

const Communicator* communicator_of_file(const Library& library, Word file) {
  // Every file is opened through us, but what one was that was opened before the library was found nobody knows.
  return files.find(file, [&] { return communicator_of(library, library.comm_world); });
}

void made_from(const Library& library, const Communicator& parent, uint32_t number, Word comm) {
  if (comm == library.constants.comm_null) return;
  Members members = members_of(library, comm);
  std::string name = parent.name;
  (name += '.') += std::to_string(number);
  if (int(members.own.size()) != parent.size) name = with_first(name, members.own);
  communicators.put(comm, make(library, comm, name, std::move(members)));
}

void made_by_some(const Library& library, const Communicator& parent, int tag, Word comm) {
  if (comm == library.constants.comm_null) return;
  Members members = members_of(library, comm);
  std::vector<int> low = members.own, high = members.peers;
  if (members.between && first_of(high) < first_of(low)) std::swap(low, high);
  std::string name = members.between ? "between" : parent.name;
  (name += ".tag") += std::to_string(tag);
  name = with_first(name, low);
  if (members.between) name = with_first(name, high);
  uint64_t hash = 14695981039346656037ull;  // FNV-1a of the members: other groups with the same first one count apart
  for (const auto* part : {&low, &high})
    for (int rank : *part) hash = (hash ^ uint32_t(rank)) * 1099511628211ull;
  char digits[20];
  snprintf(digits, sizeof digits, ".%06llx", (unsigned long long)(hash >> 40));
  name += digits;
  uint32_t number;
  {
    std::lock_guard lock(mutex);
    number = ++counted[name];
  }
  if (number > 1) (name += '.') += std::to_string(number);
  communicators.put(comm, make(library, comm, name, std::move(members)));
}

void window_made(const Communicator& of, Word window) { windows.put(window, new Window{&of, ++of.windows}); }

void file_opened(const Communicator& of, Word file) { files.put(file, &of); }

const Communicator* drop_communicator(const Library& library, Word comm) {
  if (comm == library.constants.comm_null) return nullptr;
  const Communicator* known = communicator_of(library, comm);
  communicators.drop(comm);
  return known;
}

const Communicator* drop_window(const Library& library, Word window) {
  const Communicator* known = window_of(library, window).of;
  delete windows.drop(window);
  return known;
}

const Communicator* drop_file(Word file) { return files.drop(file); }

int64_t size_of_type(const Library& library, Word type) {
  type = library.handle(type);
  if (type == library.constants.type_null) return 0;
  return types.find(type, [&]() -> int64_t {
    int64_t bytes = 0;
    return library.type_size_x(type, &bytes) == 0 && bytes > 0 ? bytes : 0;
  });
}

void drop_type(Word type) { types.drop(type); }

}  // namespace strobe::mpi
