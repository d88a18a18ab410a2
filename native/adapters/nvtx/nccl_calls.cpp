#include "adapters/nvtx/nccl_calls.h"

#include <inttypes.h>
#include <stdio.h>

#include <map>
#include <mutex>

#include "adapters/torch_collectives.h"
#include "core/session/session.h"
#include "include/strobe.h"

namespace strobe::nccl {

namespace {

struct Call {
  std::string_view function;
  Kind kind;
  const char* name;  // as torch.distributed calls it
};
constexpr Call kCalls[] = {
    {"AllReduce", Kind::all_reduce, "all_reduce"},
    {"AllGather", Kind::all_gather, "all_gather"},
    {"ReduceScatter", Kind::reduce_scatter, "reduce_scatter"},
    {"Broadcast", Kind::broadcast, "broadcast"},
    {"Reduce", Kind::reduce, "reduce"},
    {"AlltoAll", Kind::all_to_all, "all_to_all"},
    {"AllToAll", Kind::all_to_all, "all_to_all"},
    {"Gather", Kind::gather, "gather"},
    {"Scatter", Kind::scatter, "scatter"},
    {"Send", Kind::send, "send"},
    {"Recv", Kind::recv, "recv"},
};
constexpr std::string_view kPrefix = "nccl", kMade[] = {"CommInit", "CommSplit", "CommShrink", "CommGrow"};
constexpr std::string_view kGone[] = {"CommDestroy", "CommAbort"};

const char* name_of(Kind kind) {
  for (const Call& call : kCalls)
    if (call.kind == kind) return call.name;
  return "";
}

struct Communicator {
  int64_t ranks = 0, rank = -1;  // 0, -1: not known
  int64_t own = 0;               // its ranks in this process
  int32_t collectives = 0;
};
constexpr size_t kMost = 1u << 16;  // a program that makes one a step must not fill memory
// By hash, the same on all ranks. With adapters_mutex.
std::map<uint64_t, Communicator>& communicators() {
  static auto* all = new std::map<uint64_t, Communicator>;
  return *all;
}

// With adapters_mutex. NULL: there are too many.
Communicator* find(uint64_t hash) {
  auto& all = communicators();
  const auto found = all.find(hash);
  if (found != all.end()) return &found->second;
  return all.size() < kMost ? &all[hash] : nullptr;
}

struct Bytes {
  int64_t sent, received;
};

// A rank's own buffers, as torch.distributed counts them. NCCL gives the bytes of one message: of an all-gather what a
// rank puts in, of a reduce-scatter what it gets, of an all-to-all, gather and scatter the part of one rank.
Bytes bytes_of(Kind kind, const Facts& facts, const Communicator& in) {
  if (!facts.bytes) return {STROBE_NOTHING, STROBE_NOTHING};
  const auto one = int64_t(*facts.bytes), all = in.ranks > 0 ? one * in.ranks : STROBE_NOTHING;
  const bool known = facts.root && in.rank >= 0 && in.own <= 1, root = known && *facts.root == in.rank;
  const auto at_root = [&](int64_t bytes) { return !known ? STROBE_NOTHING : root ? bytes : 0; };
  switch (kind) {
    case Kind::all_gather:
      return {one, all};
    case Kind::reduce_scatter:
      return {all, one};
    case Kind::all_to_all:
      return {all, all};
    case Kind::broadcast:
      return {at_root(one), !known ? STROBE_NOTHING : root ? 0 : one};
    case Kind::reduce:
      return {one, at_root(one)};
    case Kind::gather:
      return {one, at_root(all)};
    case Kind::scatter:
      return {at_root(all), one};
    case Kind::send:
      return {one, 0};
    case Kind::recv:
      return {0, one};
    default:
      return {one, one};
  }
}

}  // namespace

Kind kind_of(std::string_view function) {
  if (!function.starts_with(kPrefix)) return Kind::other;
  function.remove_prefix(kPrefix.size());
  for (const Call& call : kCalls)
    if (call.function == function) return call.kind;
  for (std::string_view made : kMade)
    if (function.starts_with(made)) return Kind::communicator_made;
  for (std::string_view gone : kGone)
    if (function.starts_with(gone)) return Kind::communicator_gone;
  return Kind::other;
}

// As src/include/nvtx_payload_schemas.h of NCCL has them, and before that collectives.cc, which named no communicator.
void read(const nvtx::Schema& schema, const nvtx::Data& data, Facts& facts) {
  const auto look = [&](const char* name, auto& fact) {
    if (const nvtx::Field* field = schema.find(name))
      if (const auto value = nvtx::value_of(*field, data)) fact = *value;
  };
  look("NCCL communicator ID", facts.communicator);
  look("Bytes", facts.bytes);
  look("Message size [bytes]", facts.bytes);
  look("Root", facts.root);
  look("Peer rank", facts.peer);
  look("No. of ranks", facts.ranks);
  look("Rank", facts.rank);
  look("No. of devices", facts.devices);
}

void communicator_changed(Kind kind, const Facts& facts) {
  if (!facts.communicator) return;
  const Inside inside;
  std::lock_guard lock(session().adapters_mutex());
  if (kind == Kind::communicator_gone) {
    const auto found = communicators().find(*facts.communicator);
    if (found != communicators().end() && --found->second.own <= 0) communicators().erase(found);
    return;
  }
  Communicator* made = find(*facts.communicator);
  if (!made) return;
  made->own += facts.devices.value_or(1);
  made->ranks = facts.ranks.value_or(facts.devices.value_or(made->ranks));
  made->rank = facts.rank.value_or(-1);
}

Moved began(Kind kind, const Facts& facts, bool record) {
  char name[24] = "";
  if (facts.communicator) snprintf(name, sizeof name, "0x%016" PRIx64, *facts.communicator);
  Communicator in;
  {
    const Inside inside;
    std::lock_guard lock(session().adapters_mutex());
    Communicator* found = facts.communicator ? find(*facts.communicator) : nullptr;
    if (found && is_collective(kind)) found->collectives++;
    if (found) in = *found;
  }
  // Several ranks of a communicator in one process: NCCL does not give which of them a call is of.
  const bool numbered = is_collective(kind) && in.collectives && in.own <= 1;
  if (!record) return {0, 0, 0};
  const uint32_t communicator = strobe_text(name);
  const Bytes bytes = bytes_of(kind, facts, in);
  const int64_t values[STROBE_ROW_VALUES] = {
      STROBE_THREE(strobe_text(name_of(kind)), 0, communicator),
      STROBE_THREE(0, short_number(facts.root.value_or(facts.peer.value_or(-1))), STROBE_NOTHING_21),
      STROBE_TWO(numbered ? in.collectives : STROBE_NOTHING_32,
                 in.ranks > 0 && in.ranks <= INT32_MAX ? strobe_text(std::to_string(in.ranks).c_str()) : 0),
      bytes.sent,
      bytes.received,
      STROBE_NOTHING,
  };
  strobe_row(STROBE_ROW_GROUP_COLLECTIVE, values);
  const auto counted = [](int64_t bytes) { return bytes > 0 ? uint64_t(bytes) : 0; };
  return {communicator, counted(bytes.sent), counted(bytes.received)};
}

}  // namespace strobe::nccl
