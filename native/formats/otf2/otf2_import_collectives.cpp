// otf2_import_collectives.cpp - collectives of MPI and of windows.
#include "formats/otf2/otf2_import_location.h"

#include <iterator>
#include <string>

#include "formats/otf2/otf2_records.h"
#include "include/strobe.h"

namespace strobe::otf2 {

void LocationEvents::collective(uint8_t op, uint32_t comm, uint32_t root, uint64_t sent, uint64_t received,
                                const uint64_t* request) {
  int64_t begin_ns = ns_;
  if (!request && !collective_begins_.empty()) begin_ns = collective_begins_.back(), collective_begins_.pop_back();
  const std::string name = op < std::size(kCollectiveNames) ? kCollectiveNames[op] : "collective " + std::to_string(op);
  const Communicator& known = communicator(comm);
  TableRow row(schema::collective_spans::number);
  row.set(schema::collective_spans::collective, process_.out.text(name)),
      row.set(schema::collective_spans::communicator, known.name);
  if (known.own) {
    const bool self = known.own->type == GroupType::self;
    row.set(schema::collective_spans::group_size, self ? 1 : int64_t(known.own->members.size()));
  }
  if (known.own_rank >= 0) row.set(schema::collective_spans::rank, known.own_rank);
  constexpr uint32_t kNoRoot = kUndefined, kSelfIsRoot = kUndefined - 1, kRootInThisGroup = kUndefined - 2;
  if (root == kSelfIsRoot && known.own_rank >= 0)
    row.set(schema::collective_spans::root, known.own_rank);
  else if (root != kNoRoot && root != kSelfIsRoot && root != kRootInThisGroup)
    row.set(schema::collective_spans::root, root);
  if (sent != kUndefined64) row.set(schema::collective_spans::sent_bytes, int64_t(sent));
  if (received != kUndefined64) row.set(schema::collective_spans::received_bytes, int64_t(received));
  if (request) {
    row.set(schema::collective_spans::request, int64_t(*request));
    const auto asked = requests_.find(*request);
    if (asked != requests_.end()) {
      row.set(schema::collective_spans::pending_ns, ns_ - asked->second);
      requests_.erase(asked);
    }
  }
  // It belongs to the call around it. A tool that records no calls has no other span of it than from begin to end.
  if (top() && top()->region != kProgram && top()->start_ns <= begin_ns) {
    row.append_to(top()->rows);
  } else {
    process_.out.attribute(row);
    process_.out.span(location(), begin_ns, ns_ - begin_ns,
                      process_.out.region(name, STROBE_MPI, STROBE_ROLE_COLLECTIVE));
  }
}

// Begins, ends, and completions of what does not block.
void LocationEvents::collective_event(uint8_t type, Bytes& in) {
  if (type == kMpiCollectiveBegin || type == kRmaCollectiveBegin) {
    if (collective_begins_.size() < kDeepest) collective_begins_.push_back(ns_);
    return;
  }
  const uint8_t op = in.u8();
  uint32_t comm;
  if (type == kRmaCollectiveEnd) {
    in.id();  // what it synchronises
    const Named* window = process_.definitions.windows.find(map(Type::rma_window, in.id()));
    comm = window ? window->of : kUndefined;
  } else {
    comm = reference(in, Type::comm);
  }
  const uint32_t root = in.id();
  const uint64_t sent = in.number(), received = in.number();
  const bool asked = type == kNonBlockingCollectiveComplete;
  const uint64_t request = asked ? in.number() : 0;
  if (in.ok()) collective(op, comm, root, sent, received, asked ? &request : nullptr);
}

}  // namespace strobe::otf2
