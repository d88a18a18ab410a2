// call_arguments.h - the meaning of the arguments of MPI functions, by position; -1 where an argument is missing.
#pragma once
#include <stdint.h>

namespace strobe::mpi {

// clang-format off
// Collectives, in the names that OTF2 has for them; of the neighbourhood ones those of MPI.
#define MPI_COLLECTIVES(X) \
  X(barrier) X(broadcast) X(gather) X(gatherv) X(scatter) X(scatterv) X(allgather) X(allgatherv) \
  X(alltoall) X(alltoallv) X(alltoallw) X(reduce) X(allreduce) X(reduce_scatter) X(reduce_scatter_block) \
  X(scan) X(exscan) X(neighbor_allgather) X(neighbor_allgatherv) \
  X(neighbor_alltoall) X(neighbor_alltoallv) X(neighbor_alltoallw) \
  X(create_handle) X(destroy_handle) X(create_handle_and_allocate) X(destroy_handle_and_deallocate) X(fence)
// clang-format on

enum class Traffic : uint8_t {
  none,
  send,
  receive,
  exchange,         // a send and a receive
  receive_matched,  // of a message that a probe has found
  send_in_parts,    // partitioned communication: the count is that of one part
  receive_in_parts,
  put,
  get,
  accumulate,
  get_accumulate,
  fetch_and_op,
  compare_and_swap,
  probe,
  post,  // from here to unlock: epochs of one-sided communication begin and end
  start,
  complete,
  wait,
  lock,
  shared_lock,
  unlock,
  file_read,
  file_write,
#define MPI_COLLECTIVE(name) name,
  MPI_COLLECTIVES(MPI_COLLECTIVE)
#undef MPI_COLLECTIVE
};

constexpr bool is_message(Traffic traffic) { return traffic >= Traffic::send && traffic <= Traffic::receive_in_parts; }
constexpr bool is_one_sided(Traffic traffic) { return traffic >= Traffic::put && traffic <= Traffic::compare_and_swap; }

constexpr bool is_of_neighbours(Traffic traffic) {
  return traffic >= Traffic::neighbor_allgather && traffic <= Traffic::neighbor_alltoallw;
}
constexpr bool is_of_epoch(Traffic traffic) { return traffic >= Traffic::post && traffic <= Traffic::unlock; }

enum class Owner : uint8_t {
  none,
  communicator,
  communicator_pointer,
  window,
  window_pointer,
  file,
  file_pointer,
  message
};

struct Arguments {
  Traffic traffic = Traffic::none;
  Owner owner = Owner::communicator;
  int8_t of = -1;                                       // the communicator, window or file
  int8_t to = -1, from = -1;                            // peers; those of one-sided communication are `to`
  int8_t buffer = -1, count = -1, type = -1, tag = -1;  // what is sent; or what there is, where it is one thing
  int8_t in_buffer = -1, in_count = -1, in_type = -1, in_tag = -1;  // what is received
  int8_t root = -1, status = -1;
};

constexpr Arguments kNothing{.owner = Owner::none};
constexpr Arguments kSends{.traffic = Traffic::send, .of = 5, .to = 3, .count = 1, .type = 2, .tag = 4};
constexpr Arguments kReceives{
    .traffic = Traffic::receive, .of = 5, .from = 3, .in_count = 1, .in_type = 2, .in_tag = 4, .status = 6};
constexpr Arguments exchange(int8_t comm, int8_t from, int8_t in_count, int8_t in_type, int8_t in_tag, int8_t status) {
  Arguments of = kSends;
  of.traffic = Traffic::exchange, of.of = comm, of.from = from, of.status = status;
  of.in_count = in_count, of.in_type = in_type, of.in_tag = in_tag;
  return of;
}
constexpr Arguments kExchanges = exchange(10, 8, 6, 7, 9, 11);
constexpr Arguments kExchangesInPlace = exchange(7, 5, 1, 2, 6, 8);
constexpr Arguments kReceivesMatched{
    .traffic = Traffic::receive_matched, .owner = Owner::message, .of = 3, .status = 4};
constexpr Arguments kSendsInParts{
    .traffic = Traffic::send_in_parts, .of = 6, .to = 4, .buffer = 1, .count = 2, .type = 3, .tag = 5};
constexpr Arguments kReceivesInParts{
    .traffic = Traffic::receive_in_parts, .of = 6, .from = 4, .in_buffer = 1, .in_count = 2, .in_type = 3, .in_tag = 5};
constexpr Arguments kProbes{.traffic = Traffic::probe, .of = 2, .from = 0, .in_tag = 1, .status = 3};
constexpr Arguments kProbesMatched{.traffic = Traffic::probe, .of = 2, .from = 0, .in_tag = 1, .status = 4};
constexpr Arguments kLooks{.of = 2, .from = 0};

// A blocking collective; those that return a request have more arguments behind the same ones (mpi_calls.h has both).
constexpr Arguments collective(Traffic traffic, int8_t comm, int8_t root, int8_t buffer, int8_t count, int8_t type,
                               int8_t in_buffer, int8_t in_count, int8_t in_type) {
  Arguments of{.traffic = traffic, .of = comm, .root = root};
  of.buffer = buffer, of.count = count, of.type = type;
  of.in_buffer = in_buffer, of.in_count = in_count, of.in_type = in_type;
  return of;
}
constexpr Arguments kBarrier = collective(Traffic::barrier, 0, -1, -1, -1, -1, -1, -1, -1);

constexpr Arguments kCreates{.traffic = Traffic::create_handle, .of = 0};
// No row: not all ranks of the communicator take part.
constexpr Arguments kCreatesBySome{.of = 0, .tag = 2};
constexpr Arguments kCreatesBetween{.traffic = Traffic::create_handle, .of = 0, .tag = 4};
constexpr Arguments kDestroys{.traffic = Traffic::destroy_handle, .owner = Owner::communicator_pointer, .of = 0};

constexpr Arguments one_sided(Traffic traffic, int8_t window, int8_t to, int8_t count, int8_t type, int8_t in_count,
                              int8_t in_type) {
  Arguments of = collective(traffic, window, -1, -1, count, type, -1, in_count, in_type);
  of.owner = Owner::window, of.to = to;
  return of;
}
constexpr Arguments kPuts = one_sided(Traffic::put, 7, 3, 1, 2, -1, -1);
constexpr Arguments kGets = one_sided(Traffic::get, 7, 3, 1, 2, -1, -1);
constexpr Arguments kAccumulates = one_sided(Traffic::accumulate, 8, 3, 1, 2, -1, -1);
constexpr Arguments kGetAccumulates = one_sided(Traffic::get_accumulate, 11, 6, 1, 2, 4, 5);
constexpr Arguments kFetchAndOp = one_sided(Traffic::fetch_and_op, 6, 3, -1, 2, -1, 2);
constexpr Arguments kCompareAndSwap = one_sided(Traffic::compare_and_swap, 6, 4, -1, 3, -1, 3);
constexpr Arguments window(int8_t of, int8_t to = -1) { return {.owner = Owner::window, .of = of, .to = to}; }
constexpr Arguments epoch(Traffic traffic, int8_t of, int8_t to = -1) {
  return {.traffic = traffic, .owner = Owner::window, .of = of, .to = to};
}
constexpr Arguments makes_window(int8_t comm) { return {.traffic = Traffic::create_handle_and_allocate, .of = comm}; }
constexpr Arguments kFreesWindow{
    .traffic = Traffic::destroy_handle_and_deallocate, .owner = Owner::window_pointer, .of = 0};

constexpr Arguments kFile{.owner = Owner::file, .of = 0};
constexpr Arguments kClosesFile{.traffic = Traffic::destroy_handle, .owner = Owner::file_pointer, .of = 0};
constexpr Arguments file(Traffic traffic, int8_t status) {
  return {.traffic = traffic, .owner = Owner::file, .of = 0, .status = status};
}

// Of OpenSHMEM `type` and `in_type` are bytes of an element that goes out and comes in; -1: it is not known how many
// do. `of`: where the three arguments of the active set begin, -1 for all PEs.
constexpr Arguments shmem_moves(Traffic traffic, int8_t arity, bool many, int8_t out, int8_t in) {
  Arguments of{.traffic = traffic, .owner = Owner::none, .to = int8_t(arity - 1)};
  of.count = many ? int8_t(arity - 2) : int8_t(-1), of.type = out, of.in_type = in;
  return of;
}
constexpr Arguments shmem_together(Traffic traffic, int8_t set, int8_t count = -1, int8_t out = 0, int8_t in = 0,
                                   int8_t root = -1) {
  Arguments of{.traffic = traffic, .owner = Owner::none, .of = set};
  of.count = count, of.type = out, of.in_type = in, of.root = root;
  return of;
}
constexpr Arguments shmem_locks(Traffic traffic) { return shmem_together(traffic, -1); }

}  // namespace strobe::mpi
