// nccl_calls.h - what NCCL reports of its calls in the NVTX domain "NCCL": which one, how much, in which communicator.
#pragma once
#include <stdint.h>

#include <optional>
#include <span>
#include <string_view>

#include "adapters/nvtx/nvtx_payload.h"

namespace strobe::nccl {

enum class Kind : uint8_t {
  other,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  communicator_made,
  communicator_gone
};

// Of the function that a range is called by: `ncclAllReduce`.
Kind kind_of(std::string_view function);
inline bool moves_data(Kind kind) { return kind > Kind::other && kind < Kind::communicator_made; }
inline bool is_collective(Kind kind) { return moves_data(kind) && kind < Kind::send; }

// The fields of a payload of NCCL, by the names in its schemas; nothing where one is missing.
struct Facts {
  std::optional<uint64_t> communicator, bytes;
  std::optional<int64_t> root, peer, ranks, rank, devices;
};
void read(const nvtx::Schema& schema, const nvtx::Data& data, Facts& facts);

// What a call moved, for the sums when it is over.
struct Moved {
  uint32_t communicator;  // text
  uint64_t sent_bytes, received_bytes;
};

// A range of a call has begun: its row belongs to the span that is innermost now. `record` false: it is only counted in
// its communicator, as another adapter records what it moves.
Moved began(Kind kind, const Facts& facts, bool record);
// A call that makes or ends a communicator, known at its beginning or at its end.
void communicator_changed(Kind kind, const Facts& facts);

}  // namespace strobe::nccl
