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
  X(create_handle) X(destroy_handle) X(create_handle_and_allocate) X(destroy_handle_and_deallocate)
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
  file_read,
  file_write,
#define MPI_COLLECTIVE(name) name,
  MPI_COLLECTIVES(MPI_COLLECTIVE)
#undef MPI_COLLECTIVE
};

constexpr bool is_message(Traffic traffic) { return traffic >= Traffic::send && traffic <= Traffic::receive_in_parts; }
constexpr bool is_one_sided(Traffic traffic) { return traffic >= Traffic::put && traffic <= Traffic::compare_and_swap; }

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
constexpr Arguments kExchanges{.traffic = Traffic::exchange,
                               .of = 10,
                               .to = 3,
                               .from = 8,
                               .count = 1,
                               .type = 2,
                               .tag = 4,
                               .in_count = 6,
                               .in_type = 7,
                               .in_tag = 9,
                               .status = 11};
constexpr Arguments kExchangesInPlace{.traffic = Traffic::exchange,
                                      .of = 7,
                                      .to = 3,
                                      .from = 5,
                                      .count = 1,
                                      .type = 2,
                                      .tag = 4,
                                      .in_count = 1,
                                      .in_type = 2,
                                      .in_tag = 6,
                                      .status = 8};
constexpr Arguments kReceivesMatched{
    .traffic = Traffic::receive_matched, .owner = Owner::message, .of = 3, .status = 4};
constexpr Arguments kSendsInParts{
    .traffic = Traffic::send_in_parts, .of = 6, .to = 4, .buffer = 1, .count = 2, .type = 3, .tag = 5};
constexpr Arguments kReceivesInParts{
    .traffic = Traffic::receive_in_parts, .of = 6, .from = 4, .in_buffer = 1, .in_count = 2, .in_type = 3, .in_tag = 5};
constexpr Arguments kProbes{.of = 2, .from = 0, .status = 3};

// A blocking collective; those that return a request have more arguments behind the same ones.
constexpr Arguments collective(Traffic traffic, int8_t comm, int8_t root, int8_t buffer, int8_t count, int8_t type,
                               int8_t in_buffer, int8_t in_count, int8_t in_type) {
  return {.traffic = traffic,
          .of = comm,
          .buffer = buffer,
          .count = count,
          .type = type,
          .in_buffer = in_buffer,
          .in_count = in_count,
          .in_type = in_type,
          .root = root};
}
constexpr Arguments kBarrier = collective(Traffic::barrier, 0, -1, -1, -1, -1, -1, -1, -1);
constexpr Arguments kBroadcast = collective(Traffic::broadcast, 4, 3, 0, 1, 2, -1, -1, -1);
constexpr Arguments kGather = collective(Traffic::gather, 7, 6, 0, 1, 2, 3, 4, 5);
constexpr Arguments kGatherv = collective(Traffic::gatherv, 8, 7, 0, 1, 2, 3, 4, 6);
constexpr Arguments kScatter = collective(Traffic::scatter, 7, 6, 0, 1, 2, 3, 4, 5);
constexpr Arguments kScatterv = collective(Traffic::scatterv, 8, 7, 0, 1, 3, 4, 5, 6);
constexpr Arguments kAllgather = collective(Traffic::allgather, 6, -1, 0, 1, 2, 3, 4, 5);
constexpr Arguments kAllgatherv = collective(Traffic::allgatherv, 7, -1, 0, 1, 2, 3, 4, 6);
constexpr Arguments kAlltoall = collective(Traffic::alltoall, 6, -1, 0, 1, 2, 3, 4, 5);
constexpr Arguments kAlltoallv = collective(Traffic::alltoallv, 8, -1, 0, 1, 3, 4, 5, 7);
constexpr Arguments kAlltoallw = collective(Traffic::alltoallw, 8, -1, 0, 1, 3, 4, 5, 7);
constexpr Arguments kReduce = collective(Traffic::reduce, 6, 5, 0, 2, 3, 1, 2, 3);
constexpr Arguments kAllreduce = collective(Traffic::allreduce, 5, -1, 0, 2, 3, 1, 2, 3);
constexpr Arguments kReduceScatter = collective(Traffic::reduce_scatter, 5, -1, 0, 2, 3, 1, 2, 3);
constexpr Arguments kReduceScatterBlock = collective(Traffic::reduce_scatter_block, 5, -1, 0, 2, 3, 1, 2, 3);
constexpr Arguments kScan = collective(Traffic::scan, 5, -1, 0, 2, 3, 1, 2, 3);
constexpr Arguments kExscan = collective(Traffic::exscan, 5, -1, 0, 2, 3, 1, 2, 3);
constexpr Arguments kNeighborAllgather = collective(Traffic::neighbor_allgather, 6, -1, 0, 1, 2, 3, 4, 5);
constexpr Arguments kNeighborAllgatherv = collective(Traffic::neighbor_allgatherv, 7, -1, 0, 1, 2, 3, 4, 6);
constexpr Arguments kNeighborAlltoall = collective(Traffic::neighbor_alltoall, 6, -1, 0, 1, 2, 3, 4, 5);
constexpr Arguments kNeighborAlltoallv = collective(Traffic::neighbor_alltoallv, 8, -1, 0, 1, 3, 4, 5, 7);
constexpr Arguments kNeighborAlltoallw = collective(Traffic::neighbor_alltoallw, 8, -1, 0, 1, 3, 4, 5, 7);

constexpr Arguments kCreates{.traffic = Traffic::create_handle, .of = 0};
// No row: not all ranks of the communicator take part.
constexpr Arguments kCreatesBySome{.of = 0, .tag = 2};
constexpr Arguments kCreatesBetween{.traffic = Traffic::create_handle, .of = 0, .tag = 4};
constexpr Arguments kDestroys{.traffic = Traffic::destroy_handle, .owner = Owner::communicator_pointer, .of = 0};

constexpr Arguments one_sided(Traffic traffic, int8_t window, int8_t to, int8_t count, int8_t type, int8_t in_count,
                              int8_t in_type) {
  return {.traffic = traffic,
          .owner = Owner::window,
          .of = window,
          .to = to,
          .count = count,
          .type = type,
          .in_count = in_count,
          .in_type = in_type};
}
constexpr Arguments kPuts = one_sided(Traffic::put, 7, 3, 1, 2, -1, -1);
constexpr Arguments kGets = one_sided(Traffic::get, 7, 3, 1, 2, -1, -1);
constexpr Arguments kAccumulates = one_sided(Traffic::accumulate, 8, 3, 1, 2, -1, -1);
constexpr Arguments kGetAccumulates = one_sided(Traffic::get_accumulate, 11, 6, 1, 2, 4, 5);
constexpr Arguments kFetchAndOp = one_sided(Traffic::fetch_and_op, 6, 3, -1, 2, -1, 2);
constexpr Arguments kCompareAndSwap = one_sided(Traffic::compare_and_swap, 6, 4, -1, 3, -1, 3);
constexpr Arguments window(int8_t of, int8_t to = -1) { return {.owner = Owner::window, .of = of, .to = to}; }
constexpr Arguments makes_window(int8_t comm) { return {.traffic = Traffic::create_handle_and_allocate, .of = comm}; }
constexpr Arguments kFreesWindow{
    .traffic = Traffic::destroy_handle_and_deallocate, .owner = Owner::window_pointer, .of = 0};

constexpr Arguments kFile{.owner = Owner::file, .of = 0};
constexpr Arguments kClosesFile{.traffic = Traffic::destroy_handle, .owner = Owner::file_pointer, .of = 0};
constexpr Arguments kFileReads{.traffic = Traffic::file_read, .owner = Owner::file, .of = 0, .status = 4};
constexpr Arguments kFileReadsAt{.traffic = Traffic::file_read, .owner = Owner::file, .of = 0, .status = 5};
constexpr Arguments kFileEndsRead{.traffic = Traffic::file_read, .owner = Owner::file, .of = 0, .status = 2};
constexpr Arguments kFileWrites{.traffic = Traffic::file_write, .owner = Owner::file, .of = 0, .status = 4};
constexpr Arguments kFileWritesAt{.traffic = Traffic::file_write, .owner = Owner::file, .of = 0, .status = 5};
constexpr Arguments kFileEndsWrite{.traffic = Traffic::file_write, .owner = Owner::file, .of = 0, .status = 2};

}  // namespace strobe::mpi
