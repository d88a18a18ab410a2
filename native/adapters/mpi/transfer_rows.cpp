#include "adapters/mpi/transfer_rows.h"

#include <string>

#include "adapters/mpi/call_recording.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

// For sums, which are written as they are; measured ever more rarely.
uint64_t ns_of(uint64_t ticks) {
  static const uint64_t first = strobe_ticks();
  static std::atomic<double> ns_per_tick{1};
  static std::atomic<uint64_t> next{0};
  const uint64_t now = strobe_ticks();
  if (now >= next.load(std::memory_order_relaxed)) {
    ns_per_tick.store(strobe_ns_per_tick(), std::memory_order_relaxed);
    next.store(now + (now - first), std::memory_order_relaxed);
  }
  return uint64_t(double(ticks) * ns_per_tick.load(std::memory_order_relaxed));
}

// What rows call it, by Traffic: messages and one-sided communication, then collectives.
constexpr const char* kMessageNames[] = {
    "",       "send",   "receive", "",     "",      "",         "",     "put",  "get",         "atomic", "atomic",
    "atomic", "atomic", "probe",   "post", "start", "complete", "wait", "lock", "shared_lock", "unlock"};
constexpr const char* kCollectiveNames[] = {
#define MPI_COLLECTIVE(name) #name,
    MPI_COLLECTIVES(MPI_COLLECTIVE)
#undef MPI_COLLECTIVE
};

// Texts and regions keep their numbers as long as the process lives.
uint32_t text_of(Text& known, const char* text) {
  uint32_t number = known.load(std::memory_order_relaxed);
  if (number == 0) known.store(number = strobe_text(text), std::memory_order_relaxed);
  return number;
}

uint32_t name_text(Traffic traffic) {
  static Text known[64];
  const int collective = int(traffic) - int(Traffic::barrier);
  return text_of(known[int(traffic)], collective < 0 ? kMessageNames[int(traffic)] : kCollectiveNames[collective]);
}

uint32_t name_text(const Communicator* communicator) {
  return communicator ? text_of(communicator->text, communicator->name.c_str()) : 0;
}

// The region of a function whoever calls it, for its totals.
uint32_t function(int call) {
  static std::atomic<uint32_t> known[kCalls];
  uint32_t region = known[call].load(std::memory_order_relaxed);
  if (region) return region;
  const Description& about = description(call);
  std::string name = about.name;
  if (about.large && name.compare(name.size() - 2, 2, "_c") == 0) name.resize(name.size() - 2);
  strobe_region_info info{};
  info.name = name.c_str();
  info.paradigm = paradigm_of(call);
  info.role = about.role;
  region = strobe_region(&info);
  known[call].store(region, std::memory_order_relaxed);
  return region;
}

void add(const Facts& facts, int32_t peer, strobe_total_sums more) {
  strobe_total_key key{};
  key.region = function(facts.call);
  key.communicator = name_text(facts.communicator);
  key.peer_rank = STROBE_NOTHING_32;
  if (peer >= 0 && facts.communicator) {
    const int32_t world = facts.communicator->world_rank(peer);
    if (world >= 0) key.peer_rank = world;
  }
  key.size_exponent = -1;
  strobe_total(&key, &more);
}

int32_t main_peer(const Facts& facts) {
  return facts.to >= 0 ? facts.to : facts.traffic == Traffic::probe ? kNone : facts.from;  // its receive counts there
}

// When a call began, which is over now.
struct Times {
  uint64_t began, now;
};

void message(const Facts& facts, Traffic direction, int32_t peer, int32_t tag, int64_t bytes, uint64_t at,
             const Times& call, const Request* request) {
  const int32_t world = facts.communicator->world_rank(peer);
  if (peer < 0) peer = STROBE_NOTHING_32;
  const int64_t values[STROBE_ROW_VALUES] = {
      STROBE_TWO(name_text(direction), name_text(facts.communicator)),
      STROBE_TWO(world >= 0 ? world : STROBE_NOTHING_32, peer),
      STROBE_TWO(tag == kNone ? STROBE_NOTHING_32 : tag, request ? int32_t(request->number) : STROBE_NOTHING_32),
      bytes,
      int64_t(call.now - call.began),
      request ? int64_t(call.now - request->began) : STROBE_NOTHING,
  };
  strobe_row_at(STROBE_ROW_MESSAGE + (at != call.now ? STROBE_ROW_SINCE_BEGIN : 0), at, values);
}

void rows(const Facts& facts, const Times& call, const Request* request) {
  if (!facts.communicator) return;
  const uint64_t began = request ? request->began : call.began;
  if (is_message(facts.traffic)) {
    if (facts.to >= 0) message(facts, Traffic::send, facts.to, facts.to_tag, facts.sent, began, call, request);
    if (facts.from >= 0)
      message(facts, Traffic::receive, facts.from, facts.from_tag, facts.received, call.now, call, request);
    return;
  }
  if (is_one_sided(facts.traffic) && facts.to >= 0)
    message(facts, facts.traffic, facts.to, facts.to_tag, facts.sent + facts.received, began, call, request);
  if (facts.traffic == Traffic::probe && facts.from >= 0)
    message(facts, facts.traffic, facts.from, facts.from_tag, STROBE_NOTHING, call.now, call, nullptr);
  if (facts.traffic < Traffic::barrier) return;  // files, too, have no row
  const uint32_t name = name_text(facts.traffic), communicator = name_text(facts.communicator);
  const bool of_neighbours = is_of_neighbours(facts.traffic) && !facts.communicator->sources.empty();
  const int64_t values[STROBE_ROW_VALUES] = {
      of_neighbours ? STROBE_THREE(name, communicator,
                                   text_of(facts.communicator->sources_text, facts.communicator->sources.c_str()))
                    : STROBE_TWO(name, communicator),
      STROBE_TWO(facts.root, facts.communicator->size),
      facts.sent,
      facts.received,
      STROBE_TWO(facts.communicator->rank, request ? int32_t(request->number) : STROBE_NOTHING_32),
      request ? int64_t(call.now - request->began) : STROBE_NOTHING,
  };
  strobe_row_at(of_neighbours ? STROBE_ROW_NEIGHBOR_COLLECTIVE : STROBE_ROW_COLLECTIVE, call.now, values);
}

// Bytes, and calls with the time they took, by peer.
void sums(const Facts& facts, uint64_t calls, uint64_t ns) {
  const bool both = facts.to >= 0 && facts.from >= 0;  // sends to one and receives from another
  const uint64_t received = facts.received == kUnknown ? 0 : uint64_t(facts.received);
  add(facts, main_peer(facts), {calls, uint64_t(facts.sent), both ? 0 : received, ns});
  if (both && facts.received) add(facts, facts.from, {0, 0, uint64_t(facts.received), 0});
}

}  // namespace

void write_call(const Facts& facts, uint64_t began, uint64_t ticks) {
  rows(facts, {began, began + ticks}, nullptr);
  sums(facts, 1, ns_of(ticks));
}

void write_epoch(const Facts& facts, const std::vector<int>& peers, int32_t window, uint64_t began, uint64_t ticks) {
  const Times call{began, began + ticks};
  const Traffic is = facts.traffic;
  const bool ends =
      is == Traffic::start || is == Traffic::wait || is == Traffic::unlock;  // as a receive ends a message
  for (const int peer : peers) message(facts, is, peer, window, STROBE_NOTHING, ends ? call.now : began, call, nullptr);
}

void write_begin(const Facts& facts, uint64_t ticks, bool persistent) {
  const bool later = !persistent && facts.to < 0 && facts.from == kAnyone;
  add(facts, main_peer(facts), {later ? 0u : 1u, 0, 0, ns_of(ticks)});
}

void write_end(const Request& request, uint64_t began) {
  rows(request.facts, {began, strobe_ticks()}, &request);
  sums(request.facts, request.from_anyone, 0);
}

void write_lost(const Request& request) {
  if (request.from_anyone) add(request.facts, kNone, {1, 0, 0, 0});
}

}  // namespace strobe::mpi
