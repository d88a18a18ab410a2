// otf2_import_one_sided.cpp - one-sided communication of MPI, and copies from and to devices.
#include "formats/otf2/otf2_import_location.h"

#include <string>

#include "formats/otf2/otf2_records.h"
#include "include/strobe.h"

namespace strobe::otf2 {

// Puts, gets and atomic operations, and their completions.
bool LocationEvents::transfer_event(uint8_t type, Bytes in) {
  const uint32_t window = reference(in, Type::rma_window);
  if (type == kRmaCompleteBlocking || type == kRmaCompleteNonBlocking) {
    const uint64_t matching = in.number();
    if (in.ok()) transfer_done(window, matching, false);
    return in.ok();
  }
  Transfer transfer{ns_, type, in.id(), 0};
  if (type == kRmaAtomic) in.u8();
  transfer.bytes = in.number();
  if (type == kRmaAtomic) transfer.bytes += in.number();
  const uint64_t matching = in.number();
  if (!in.ok()) return false;
  auto& queue = transfers_[{window, matching}];
  queue.push_back(transfer);
  if (queue.size() > kMostWaiting) transfer_done(window, matching, true);
  return true;
}

// Rows as those of recordings, beside the mark: what begins or ends an epoch of one-sided communication of MPI.
void LocationEvents::synchronisation(uint8_t type, Bytes in) {
  const Definitions& all = process_.definitions;
  if (type == kRmaGroupSync) in.id();  // what it synchronises
  const uint32_t window_id = reference(in, Type::rma_window);
  const Named* window = all.windows.find(window_id);
  if (!window || on_stream_) return;
  const auto write = [&](const char* direction, uint32_t rank, int64_t world_rank) {
    TableRow row;
    start_message(row, direction, window->of, rank);
    row.set(schema::messages::communicator, communicator(window->of).name);
    if (world_rank >= 0) row.set(schema::messages::peer_rank, world_rank);
    row.set(schema::messages::tag, window_id);
    message(row);
  };
  if (type != kRmaGroupSync) {
    const uint32_t target = in.id();
    in.number();                                                  // of the lock
    const bool shared = type == kRmaRequestLock && in.u8() == 1;  // OTF2_LOCK_SHARED
    if (in.ok()) write(type == kRmaReleaseLock ? "unlock" : shared ? "shared_lock" : "lock", target, -1);
    return;
  }
  const Group* group = all.groups.find(reference(in, Type::group));
  const Region* region = top() ? all.regions.find(top()->region) : nullptr;
  if (!in.ok() || !group || !region) return;
  for (const char* each : {"post", "start", "complete", "wait"})
    if (all.string(region->name) == std::string("MPI_Win_") + each)
      for (uint64_t member = 0; member < group->members.size(); member++)
        write(each, kUndefined, all.rank_of(all.member(*group, member)));
}

void LocationEvents::transfer_done(uint32_t window_id, uint64_t matching, bool cut) {
  const auto found = transfers_.find({window_id, matching});
  if (found == transfers_.end() || found->second.empty()) return lost("unmatched_completions");
  const Transfer transfer = found->second.front();
  found->second.pop_front();
  // Tools use few matching numbers again and again; those that do not must not fill memory.
  if (found->second.empty() && transfers_.size() > 64) transfers_.erase(found);
  const Named* window = process_.definitions.windows.find(window_id);
  const uint32_t comm = window ? window->of : kUndefined;
  const uint64_t other = peer(comm, transfer.remote).location;
  const Location* other_location = process_.definitions.locations.find(other);
  const bool other_is_stream = other_location && other_location->type == LocationType::stream;
  if (!on_stream_ && !other_is_stream) {  // between processes
    const int64_t now = ns_;
    ns_ = transfer.ns;
    TableRow row;
    start_message(row,
                  transfer.type == kRmaPut   ? "put"
                  : transfer.type == kRmaGet ? "get"
                                             : "atomic",
                  comm, transfer.remote);
    ns_ = now;
    row.set(schema::messages::tag, window_id), row.set(schema::messages::size_bytes, int64_t(transfer.bytes));
    row.set(schema::messages::request, int64_t(matching));
    if (!cut) row.set(schema::messages::pending_ns, ns_ - transfer.ns);
    return message(row);
  }
  // A copy from or to a device: Score-P has no region for it. A get brings the data to where it is recorded.
  const bool get = transfer.type == kRmaGet;
  const bool from_stream = get ? other_is_stream : on_stream_, to_stream = get ? on_stream_ : other_is_stream;
  const auto [shared, is_new] = copies_.try_emplace(uint64_t(comm) * 4 + from_stream * 2 + to_stream);
  if (is_new) {
    const std::string kind = std::string(from_stream ? "D" : "H") + "to" + (to_stream ? "D" : "H");
    const Group* group = communicator(comm).own;
    const uint8_t paradigm = group && group->paradigm == Paradigm::hip      ? STROBE_HIP
                             : group && group->paradigm == Paradigm::opencl ? STROBE_OPENCL
                                                                            : STROBE_CUDA;
    shared->second = {process_.out.region("Memcpy " + kind, paradigm, STROBE_ROLE_COPY), process_.out.text(kind)};
  }
  TableRow copy, argument;
  copy.start(schema::copy_spans::number);
  const Stream stream = on_stream_ ? stream_ : process_.stream(other);
  if (stream.device >= 0) copy.set(schema::copy_spans::device, stream.device);
  if (stream.context >= 0) copy.set(schema::copy_spans::context, stream.context);
  if (stream.stream >= 0) copy.set(schema::copy_spans::stream, stream.stream);
  copy.set(schema::copy_spans::size_bytes, int64_t(transfer.bytes)),
      copy.set(schema::copy_spans::copy_kind, shared->second.kind);
  process_.out.attribute(copy);
  // Host memory is that of the process, which the location belongs to.
  if (other_location && (other_is_stream || other != process_.first_thread())) {
    argument.start(schema::arguments::number);
    argument.set(schema::arguments::key, word(get ? "from" : "to"));
    argument.set(schema::arguments::value, process_.location_json(other));
    process_.out.attribute(argument);
  }
  if (cut) process_.out.next_is_cut();
  process_.out.span(location(), transfer.ns, ns_ - transfer.ns, shared->second.region);
}

}  // namespace strobe::otf2
