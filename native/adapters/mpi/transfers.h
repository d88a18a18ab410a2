// transfers.h - the data that an MPI call moves: peers, bytes, tags, roots.
//
// Bytes of a collective are counted as Score-P does: what a rank sends to all and receives from all, itself included
// unless the buffer is the same (MPI_IN_PLACE). So a broadcast's root sends its buffer to every rank, and an all-reduce
// sends and receives the buffer once for every rank.
#pragma once
#include <stdint.h>

#include "adapters/mpi/call_arguments.h"
#include "adapters/mpi/communicators.h"
#include "adapters/mpi/mpi_library.h"

namespace strobe::mpi {

constexpr int64_t kUnknown = INT64_MIN;
constexpr int32_t kNone = INT32_MIN;

struct Facts {
  Traffic traffic = Traffic::none;
  uint16_t call = 0;
  const Communicator* communicator = nullptr;
  int32_t to = kNone, to_tag = kNone;      // a send, or one-sided communication (its tag: the window's number)
  int32_t from = kNone, from_tag = kNone;  // a receive; kAnyone: as in its status
  int32_t root = kNone;
  int64_t sent = 0, received = 0;  // bytes; kUnknown: as in the status
};
constexpr int32_t kAnyone = INT32_MIN + 1;

struct Status {  // the fields of an MPI_Status
  int32_t source, tag;
  int64_t bytes;
  bool cancelled;
};
// Only requests for messages can be cancelled: in other statuses nobody writes whether they were.
Status read_status(const Library& library, const void* status, bool may_be_cancelled);

// Of a call that has succeeded. `large`: counts are 64 bits wide.
Facts facts_of(const Library& library, int call, const Arguments& where, bool large, const Communicator* communicator,
               const Word* words);

// Whether anything has to be asked of a status.
inline bool needs_status(const Facts& facts) {
  return facts.from != kNone || facts.sent == kUnknown || facts.received == kUnknown;
}
void complete(Facts& facts, const Status& status);

}  // namespace strobe::mpi
