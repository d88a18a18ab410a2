// otf2_import_messages.cpp - messages between ranks, and the communicators that they are sent in.
#include "formats/otf2/otf2_import_location.h"

#include "formats/otf2/otf2_records.h"

namespace strobe::otf2 {

uint32_t LocationEvents::word(const char* literal) {
  const auto [at, is_new] = texts_.try_emplace(literal, 0);
  if (is_new) at->second = process_.out.text(literal);
  return at->second;
}

LocationEvents::Communicator& LocationEvents::communicator(uint32_t id) {
  if (id == last_communicator_ && last_found_) return *last_found_;
  const auto [at, is_new] = communicators_.try_emplace(id);
  Communicator& found = at->second;
  last_communicator_ = id, last_found_ = &found;
  if (!is_new) return found;
  const Definitions& all = process_.definitions;
  const Comm* comm = all.comms.find(id);
  found.name = process_.out.text(all.communicator_label(id));
  if (!comm) return found;
  const uint32_t own_group = all.process_group(location_definition_ ? location_definition_->group : kUndefined);
  const auto rank_in = [&](const Group* group) -> int64_t {
    if (!group) return -1;
    int64_t of_process = -1;
    for (size_t rank = 0; rank < group->members.size(); rank++) {
      const uint64_t member = all.member(*group, rank);
      if (member == id_) return int64_t(rank);
      // MPI counts processes; what it calls a rank is one of its locations.
      const Location* location = all.locations.find(member);
      if (of_process < 0 && location && all.process_group(location->group) == own_group) of_process = int64_t(rank);
    }
    return of_process;
  };
  const Group *first = all.groups.find(comm->group), *second = nullptr;
  if (comm->remote_group != kUndefined) second = all.groups.find(comm->remote_group);
  found.own = found.peers = first;
  found.own_rank = rank_in(first);
  if (first && first->type == GroupType::self) found.own_rank = 0, found.self = true;
  if (second) {
    const int64_t in_second = rank_in(second);
    if (found.own_rank < 0 && in_second >= 0)
      found.own = second, found.own_rank = in_second;
    else
      found.peers = second;
  }
  return found;
}

const LocationEvents::Communicator::Peer& LocationEvents::peer(uint32_t comm, uint32_t rank) {
  static const Communicator::Peer kNobody;
  Communicator& known = communicator(comm);
  if (!known.peers || (!known.self && rank >= known.peers->members.size())) return kNobody;
  if (known.self) rank = 0;
  if (known.met.size() <= rank) known.met.resize(rank + 1);
  Communicator::Peer& found = known.met[rank];
  if (!found.known) {
    found.known = true;
    found.location = known.self ? id_ : process_.definitions.member(*known.peers, rank);
    found.world_rank = process_.definitions.rank_of(found.location);
  }
  return found;
}

void LocationEvents::start_message(TableRow& row, const char* direction, uint32_t comm, uint32_t rank) {
  location();
  row.start(schema::messages::number);
  row.set(schema::messages::time_ns, ns_), row.set(schema::messages::direction, word(direction));
  if (rank == kUndefined) return;
  const Communicator::Peer& other = peer(comm, rank);
  if (other.world_rank >= 0) row.set(schema::messages::peer_rank, other.world_rank);
  if (other.location != kUndefined64) row.set(schema::messages::peer, process_.location_text(other.location));
  row.set(schema::messages::communicator_rank, rank), row.set(schema::messages::communicator, communicator(comm).name);
}

void LocationEvents::send_or_receive(uint8_t type, Bytes& in) {
  const uint32_t rank = in.id(), comm = reference(in, Type::comm), tag = in.id();
  const uint64_t bytes = in.number();
  const bool non_blocking = type == kMpiIsend || type == kMpiIrecv;
  const uint64_t request = non_blocking ? in.number() : 0;
  if (!in.ok()) return;
  TableRow row;
  start_message(row, type == kMpiSend || type == kMpiIsend ? "send" : "receive", comm, rank);
  row.set(schema::messages::tag, tag), row.set(schema::messages::size_bytes, int64_t(bytes));
  if (non_blocking) row.set(schema::messages::request, int64_t(request));
  if (type == kMpiIrecv) {
    const auto asked = requests_.find(request);
    if (asked != requests_.end()) {
      row.set(schema::messages::pending_ns, ns_ - asked->second);
      requests_.erase(asked);
    }
  }
  if (type == kMpiIsend && sends_.size() < kMostWaiting) {
    const auto [at, is_new] = sends_.try_emplace(request, Waiting{ns_, row});
    if (!is_new) message(at->second.row), at->second = {ns_, row};  // the number is used again: it was never completed
    return;
  }
  message(row);
}

// Completions, requests, probes and what was probed.
bool LocationEvents::message_event(uint8_t type, Bytes in) {
  switch (type) {
    case kMpiIsendComplete: {
      const auto found = sends_.find(in.number());
      if (found == sends_.end()) {
        if (!process_.own.archive) lost("unmatched_completions");  // in ours, attributes of the send have it
        return in.ok();
      }
      found->second.row.set(schema::messages::pending_ns, ns_ - found->second.ns);
      message(found->second.row);
      sends_.erase(found);
      return true;
    }
    case kMpiIrecvRequest:
    case kNonBlockingCollectiveRequest: {
      const uint64_t request = in.number();
      if (in.ok() && requests_.size() < kMostWaiting) requests_[request] = ns_;
      return in.ok();
    }
    case kMpiProbe: {
      const uint32_t rank = in.id(), comm = reference(in, Type::comm);
      TableRow row;
      start_message(row, "receive", comm, rank);
      row.set(schema::messages::tag, in.id());
      const uint64_t message_id = in.number();
      if (in.ok() && probed_.size() < kMostWaiting) probed_[message_id] = row;
      return in.ok();
    }
    case kMpiImrecvRequest: {
      const uint64_t message_id = in.number(), request = in.number();
      if (in.ok() && probed_requests_.size() < kMostWaiting) probed_requests_[request] = {message_id, ns_};
      return in.ok();
    }
    case kMpiMrecv:
    case kMpiImrecv: {
      const uint64_t given = in.number(), bytes = in.number();
      if (!in.ok()) return false;
      uint64_t message_id = given;
      const auto request = probed_requests_.find(given);
      if (type == kMpiImrecv && request != probed_requests_.end()) message_id = request->second.first;
      TableRow row;
      const auto probed = probed_.find(message_id);
      if (probed != probed_.end()) {
        row = probed->second;
        probed_.erase(probed);
      } else {
        process_.out.count("unmatched_completions");
        start_message(row, "receive", kUndefined, kUndefined);
      }
      row.set(schema::messages::time_ns, ns_), row.set(schema::messages::size_bytes, int64_t(bytes));
      if (type == kMpiImrecv) {
        row.set(schema::messages::request, int64_t(given));
        if (request != probed_requests_.end()) row.set(schema::messages::pending_ns, ns_ - request->second.second);
      }
      message(row);
      if (type == kMpiImrecv && request != probed_requests_.end()) probed_requests_.erase(request);
      return true;
    }
    case kMpiRequestCancelled: {
      Bytes again = in;
      const auto found = sends_.find(again.number());
      if (found != sends_.end()) {
        message(found->second.row);
        sends_.erase(found);
      }
      return other_event(type, in);
    }
    default:
      return false;
  }
}

}  // namespace strobe::otf2
