#include "adapters/mpi/requests.h"

#include <sched.h>

namespace strobe::mpi {

std::atomic<int64_t> requests_begun{0};
std::atomic<int64_t> requests_asking{0};

namespace {

struct Entry {
  Word handle;
  Entry* next;       // another handle of the bucket
  Entry* same;       // the next one of this handle
  Entry* last_same;  // of a handle's first entry: the last one
  bool counted;      // in requests_asking
  Request request;
};

// Entries are never given back but to their bucket: handles come again.
struct Bucket {
  std::atomic<bool> locked{false};
  Entry* first = nullptr;
  Entry* unused = nullptr;
};
constexpr uint32_t kBuckets = 1u << 13;
Bucket buckets[kBuckets];
std::atomic<uint32_t> numbers{0};

class Locked {
 public:
  explicit Locked(Word handle) : bucket_(buckets[(uint64_t(handle) * 0x9E3779B97F4A7C15ull) >> 51]) {
    for (int spins = 0; bucket_.locked.exchange(true, std::memory_order_acquire);)
      if (++spins % 64 == 0) sched_yield();
  }
  ~Locked() { bucket_.locked.store(false, std::memory_order_release); }
  Locked(const Locked&) = delete;

  Entry** find(Word handle) {
    Entry** at = &bucket_.first;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    return at;
  }
  Entry& add(Word handle, const Request& request) {
    Entry* made = bucket_.unused;
    if (made)
      bucket_.unused = made->next;
    else
      made = new Entry;
    *made = {handle, nullptr, nullptr, made, false, request};
    Entry** at = find(handle);
    if (*at) {
      (*at)->last_same->same = made;
      (*at)->last_same = made;
    } else {
      made->next = bucket_.first;
      bucket_.first = made;
    }
    return *made;
  }
  void remove(Entry** at) {
    Entry* gone = *at;
    if (Entry* heir = gone->same) {
      heir->next = gone->next;
      heir->last_same = gone->last_same;
      *at = heir;
    } else {
      *at = gone->next;
    }
    gone->next = bucket_.unused;
    bucket_.unused = gone;
  }

 private:
  Bucket& bucket_;
};
static_assert(kBuckets == 1u << (64 - 51));

void begin(Entry& entry) {
  entry.request.active = true;
  entry.request.reported = false;
  entry.request.number = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  requests_begun.fetch_add(1, std::memory_order_relaxed);
  entry.counted = needs_status(entry.request.facts);
  if (entry.counted) requests_asking.fetch_add(1, std::memory_order_relaxed);
}

void end(Entry& entry) {
  requests_begun.fetch_sub(1, std::memory_order_relaxed);
  if (entry.counted) requests_asking.fetch_sub(1, std::memory_order_relaxed);
  entry.counted = false;
  entry.request.active = false;
}

}  // namespace

void request_begins(Word handle, Request request) {
  request.from_anyone = request.facts.to < 0 && request.facts.from == kAnyone;
  Locked locked(handle);
  begin(locked.add(handle, request));
}

void request_prepared(Word handle, const Request& request) {
  Locked locked(handle);
  Request& prepared = locked.add(handle, request).request;
  prepared.persistent = true;
  prepared.from_anyone = false;  // a start is counted as MPI_Start
}

void request_starts(Word handle, uint64_t ticks) {
  Locked locked(handle);
  Entry* entry = *locked.find(handle);
  if (!entry || !entry->request.persistent || entry->request.active) return;
  entry->request.began = ticks;
  begin(*entry);
}

bool request_completes(Word handle, Request& out) {
  Locked locked(handle);
  Entry** at = locked.find(handle);
  if (!*at || !(*at)->request.active) return false;
  end(**at);
  out = (*at)->request;
  if (!out.persistent) locked.remove(at);
  return true;
}

bool request_reported(Word handle, Request& out) {
  Locked locked(handle);
  Entry* entry = *locked.find(handle);
  if (!entry || !entry->request.active || entry->request.reported) return false;
  out = entry->request;
  entry->request.reported = true;
  return true;
}

bool request_freed(Word handle, Request& out) {
  Locked locked(handle);
  Entry** at = locked.find(handle);
  if (!*at) return false;
  bool active = (*at)->request.active;
  if (active) end(**at);
  out = (*at)->request;
  locked.remove(at);
  return active;
}

void requests_left(void (*report)(const Request& request)) {
  if (requests_begun.load() <= 0) return;
  for (const Bucket& bucket : buckets)
    for (const Entry* entry = bucket.first; entry; entry = entry->next)
      for (const Entry* each = entry; each; each = each->same)
        if (each->request.active) report(each->request);
}

void request_cancelled(Word handle) {
  Locked locked(handle);
  Entry* entry = *locked.find(handle);
  if (!entry || !entry->request.active || entry->counted) return;
  entry->counted = true;
  requests_asking.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace strobe::mpi
