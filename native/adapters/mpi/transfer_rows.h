// transfer_rows.h - facts become rows (messages, collective_spans) and totals.
#pragma once
#include <stdint.h>

#include <vector>

#include "adapters/mpi/requests.h"

namespace strobe::mpi {

// A blocking call is over, `ticks` after it `began`: its row, written while its span is open, and its totals.
void write_call(const Facts& facts, uint64_t began, uint64_t ticks);
// A call that begins or ends an epoch of one-sided communication (post ... unlock) is over: a row for each rank on the
// other side. kNone: for all of them.
void write_epoch(const Facts& facts, const std::vector<int>& peers, int32_t window, uint64_t began, uint64_t ticks);
// A call that has only begun something (or was refused): counted. Of a receive from anybody the peer is not known yet:
// it counts with whom it comes from, but for a persistent one, which may come from several.
void write_begin(const Facts& facts, uint64_t ticks, bool persistent);
// What it began is over, in a call that `began` then: the row and the bytes.
void write_end(const Request& request, uint64_t began);
// The same where nobody will see the end, or no more is known (MPI_Request_free, MPI_Cancel, MPI_Finalize, an error).
void write_lost(const Request& request);

}  // namespace strobe::mpi
