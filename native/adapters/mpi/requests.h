// requests.h - what non-blocking calls have begun: found again by the request when it completes.
//
// A handle alone does not name a request: MPICH gives all sends that are over at once the same one, and so does Open
// MPI. Requests of one handle complete in the order in which they began; those that share one are all sends, or have
// nothing to report.
#pragma once
#include <stdint.h>

#include <atomic>

#include "adapters/mpi/transfers.h"

namespace strobe::mpi {

struct Request {
  Facts facts;
  uint64_t began = 0;                                         // ticks
  uint32_t number = 0;                                        // of the request, as rows have it
  Word made = 0;                                              // MPI_Comm_idup: where the new communicator will be
  uint32_t child = 0;                                         // and which one of its parent's it is
  bool persistent = false, active = false, reported = false;  // its row is written already
  bool from_anyone = false;                                   // its call is counted when the sender is known
};

extern std::atomic<int64_t> requests_begun;   // active ones: while there are any, waits have to be looked at
extern std::atomic<int64_t> requests_asking;  // those that want a status

void request_begins(Word handle, Request request);  // numbered here
void request_prepared(Word handle, const Request& request);
// MPI_Start: a persistent request begins.
void request_starts(Word handle, uint64_t ticks);
// It is over. False where nothing is known about the handle (MPI_REQUEST_NULL, an inactive request).
bool request_completes(Word handle, Request& out);
// The same without an end (MPI_Request_get_status): a copy. What has been reported is not reported again.
bool request_reported(Word handle, Request& out);
// MPI_Request_free: nobody will hear of its end.
bool request_freed(Word handle, Request& out);
// MPI_Finalize: those that are still active.
void requests_left(void (*report)(const Request& request));
// MPI_Cancel: its status has whether it was cancelled.
void request_cancelled(Word handle);

}  // namespace strobe::mpi
