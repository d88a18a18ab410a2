#include "adapters/mpi/transfers.h"

namespace strobe::mpi {

namespace {

// The arguments of one call, read as what they are.
struct Reading {
  const Library& library;
  const Arguments& where;
  bool large;
  const Communicator& communicator;
  const Word* words;
  bool neighbours = false;  // whether the counts are those of neighbours

  int64_t number(int8_t at) const { return large ? int64_t(words[at]) : int64_t(int32_t(words[at])); }
  int64_t number_of(int8_t at, int i) const {  // of an array of counts
    return large ? reinterpret_cast<const int64_t*>(words[at])[i] : reinterpret_cast<const int32_t*>(words[at])[i];
  }
  int64_t type(int8_t at) const { return size_of_type(library, words[at]); }
  int64_t type_of(int8_t at, int i) const {
    return size_of_type(library, library.handle_at(reinterpret_cast<const void*>(words[at]), size_t(i)));
  }
  bool in_place(int8_t buffer) const { return words[buffer] == library.constants.in_place; }

  int64_t parts(int8_t how_many, int8_t count, int8_t of) const {  // of partitioned communication
    return int64_t(int32_t(words[how_many])) * int64_t(words[count]) * type(of);
  }
  int64_t out() const { return number(where.count) * type(where.type); }
  int64_t in() const { return number(where.in_count) * type(where.in_type); }
  // Sums over `n` ranks, but for one.
  int64_t outs(int n, int without = -1) const { return sum(where.count, n, without) * type(where.type); }
  int64_t ins(int n, int without = -1) const { return sum(where.in_count, n, without) * type(where.in_type); }
  int64_t sum(int8_t counts, int n, int without) const {
    int64_t total = 0;
    for (int i = 0; i < n; i++)
      if (i != without && !wall(i)) total += number_of(counts, i);
    return total;
  }
  int64_t bytes_each(int8_t counts, int8_t types, int n, int without = -1) const {
    int64_t total = 0;
    for (int i = 0; i < n; i++)
      if (i != without && !wall(i) && number_of(counts, i)) total += number_of(counts, i) * type_of(types, i);
    return total;
  }
  // Of neighbours: nobody is there.
  bool wall(int i) const { return neighbours && i < 64 && communicator.walls >> i & 1; }
  int present(int n) const { return n - __builtin_popcountll(communicator.walls); }
};

void with_root(const Reading& call, Facts& facts) {
  const Communicator& comm = call.communicator;
  const Constants& is = call.library.constants;
  int root = int(call.words[call.where.root]);
  bool at_root = comm.between ? root == is.root : root == comm.rank;
  if (root == is.proc_null) return;  // of an inter-communicator: takes no part
  if (root >= 0) facts.root = root;
  if (comm.between && at_root) facts.root = comm.rank;
  const int n = comm.peers, own = comm.between ? -1 : comm.rank;
  const bool other = !at_root || !comm.between;  // whether it also does what the others do
  switch (facts.traffic) {
    case Traffic::broadcast:
      if (at_root) facts.sent = n * call.out();
      if (other) facts.received = call.out();
      break;
    case Traffic::reduce:
    case Traffic::gather:
    case Traffic::gatherv: {
      const bool in_place = at_root && call.in_place(call.where.buffer);
      if (other && !in_place) facts.sent = call.out();
      if (at_root)
        facts.received =
            facts.traffic == Traffic::gatherv ? call.ins(n, in_place ? own : -1) : (n - in_place) * call.in();
      break;
    }
    default: {  // scatter, scatterv
      const bool in_place = at_root && call.in_place(call.where.in_buffer);
      if (at_root && facts.traffic == Traffic::scatter) facts.sent = (n - in_place) * call.out();
      if (at_root && facts.traffic == Traffic::scatterv) facts.sent = call.outs(n, in_place ? own : -1);
      if (other && !in_place) facts.received = call.in();
    }
  }
}

void of_all(const Reading& call, Facts& facts) {
  const Communicator& comm = call.communicator;
  const bool in_place = call.in_place(call.where.buffer);
  const int n = comm.peers, others = n - in_place, without = in_place ? comm.rank : -1;
  switch (facts.traffic) {
    case Traffic::allgather:
    case Traffic::alltoall:
      facts.received = others * call.in();
      facts.sent = in_place ? facts.received : n * call.out();
      break;
    case Traffic::allgatherv:
      facts.received = call.ins(n, without);
      facts.sent = in_place ? others * call.number_of(call.where.in_count, comm.rank) * call.type(call.where.in_type)
                            : n * call.out();
      break;
    case Traffic::alltoallv:
      facts.received = call.ins(n, without);
      facts.sent = in_place ? facts.received : call.outs(n);
      break;
    case Traffic::alltoallw:
      facts.received = call.bytes_each(call.where.in_count, call.where.in_type, n, without);
      facts.sent = in_place ? facts.received : call.bytes_each(call.where.count, call.where.type, n);
      break;
    case Traffic::reduce_scatter: {  // its counts are of the own group
      const int own = comm.size;
      facts.sent = call.sum(call.where.count, own, without) * call.type(call.where.type);
      facts.received = others * call.number_of(call.where.count, comm.rank) * call.type(call.where.type);
      break;
    }
    case Traffic::scan:
      facts.sent = (n - comm.rank - in_place) * call.out();
      facts.received = (comm.rank + 1 - in_place) * call.out();
      break;
    case Traffic::exscan:
      facts.sent = (n - comm.rank - 1) * call.out();
      facts.received = comm.rank * call.out();
      break;
    default:  // allreduce, reduce_scatter_block
      facts.sent = facts.received = others * call.out();
  }
}

void of_neighbours(Reading call, Facts& facts) {
  call.neighbours = true;
  const int in = call.communicator.incoming, out = call.communicator.outgoing;
  switch (facts.traffic) {
    case Traffic::neighbor_allgather:
    case Traffic::neighbor_alltoall:
      facts.sent = call.present(out) * call.out(), facts.received = call.present(in) * call.in();
      break;
    case Traffic::neighbor_allgatherv:
      facts.sent = call.present(out) * call.out(), facts.received = call.ins(in);
      break;
    case Traffic::neighbor_alltoallv:
      facts.sent = call.outs(out), facts.received = call.ins(in);
      break;
    default:  // neighbor_alltoallw
      facts.sent = call.bytes_each(call.where.count, call.where.type, out);
      facts.received = call.bytes_each(call.where.in_count, call.where.in_type, in);
  }
}

}  // namespace

Status read_status(const Library& library, const void* status, bool may_be_cancelled) {
  const Constants& is = library.constants;
  auto bytes = static_cast<const char*>(status);
  Status found{};
  found.source = *reinterpret_cast<const int32_t*>(bytes + is.status_source);
  found.tag = *reinterpret_cast<const int32_t*>(bytes + is.status_tag);
  int64_t count = 0;
  int cancelled = 0;
  if (library.get_elements_x(status, is.byte, &count) == 0 && count > 0) found.bytes = count;
  if (may_be_cancelled) library.test_cancelled(status, &cancelled);
  found.cancelled = cancelled != 0;
  return found;
}

Facts facts_of(const Library& library, int number, const Arguments& where, bool large, const Communicator* communicator,
               const Word* words) {
  Facts facts;
  facts.traffic = where.traffic;
  facts.call = uint16_t(number);
  facts.communicator = communicator;
  if (where.traffic == Traffic::none || !communicator) return facts;
  const Reading call{library, where, large, *communicator, words};
  const Constants& is = library.constants;
  const auto peer = [&](int8_t at) {
    const int rank = int(words[at]);
    return rank == is.any_source ? kAnyone : rank < 0 ? kNone : rank;  // MPI_PROC_NULL: nobody
  };
  if (where.traffic == Traffic::receive_matched) {
    facts.from = kAnyone;
    facts.received = kUnknown;
  } else if (is_message(where.traffic)) {
    if (where.to >= 0 && (facts.to = peer(where.to)) != kNone) {
      facts.to_tag = int(words[where.tag]);
      facts.sent =
          where.traffic == Traffic::send_in_parts ? call.parts(where.buffer, where.count, where.type) : call.out();
    }
    if (where.from >= 0 && (facts.from = peer(where.from)) != kNone) {
      facts.from_tag = int(words[where.in_tag]);
      facts.received = where.traffic == Traffic::receive_in_parts
                           ? call.parts(where.in_buffer, where.in_count, where.in_type)
                           : kUnknown;
    }
  } else if (is_one_sided(where.traffic)) {
    if ((facts.to = peer(where.to)) == kNone) return facts;
    if (where.traffic == Traffic::get) {
      facts.received = call.out();
    } else {
      facts.sent = where.count >= 0 ? call.out() : call.type(where.type);
      if (where.in_type >= 0) facts.received = where.in_count >= 0 ? call.in() : call.type(where.in_type);
    }
  } else if (where.traffic == Traffic::probe) {
    if ((facts.from = peer(where.from)) != kNone) facts.from_tag = int(words[where.in_tag]);
  } else if (where.traffic == Traffic::file_read) {
    facts.received = kUnknown;
  } else if (where.traffic == Traffic::file_write) {
    facts.sent = kUnknown;
  } else if (where.root >= 0) {
    with_root(call, facts);
  } else if (is_of_neighbours(where.traffic)) {
    of_neighbours(call, facts);
  } else if (where.buffer >= 0) {  // not a barrier, nor what makes or frees a handle
    of_all(call, facts);
  }
  return facts;
}

void complete(Facts& facts, const Status& status) {
  if (facts.from != kNone) {
    facts.from = status.cancelled || status.source < 0 ? kNone : status.source;
    facts.from_tag = status.tag;
  }
  if (facts.received == kUnknown)
    facts.received = facts.from != kNone || facts.traffic == Traffic::file_read ? status.bytes : 0;
  if (facts.sent == kUnknown) facts.sent = status.bytes;
  if (status.cancelled) facts.to = kNone, facts.sent = 0;
}

}  // namespace strobe::mpi
