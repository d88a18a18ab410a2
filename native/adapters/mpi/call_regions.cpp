#include "adapters/mpi/call_regions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <mutex>
#include <string>

#include "adapters/mpi/mpi_library.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

constexpr uint32_t kBuckets = 1u << 17, kLimit = kBuckets / 2;

struct Known {
  uint32_t call, path;
  Peers peers;
  uint32_t region;
};

std::atomic<const Known*> buckets[kBuckets];
std::mutex mutex;
uint32_t known = 0;

void append_peer(std::string& out, const char* preposition, int32_t peer) {
  if (peer == kNobody) return;
  char number[16];
  snprintf(number, sizeof number, "%+d", peer);
  if (!out.empty()) out += ' ';
  out += preposition;
  out += peer == kAnybody ? "any" : peer == kNullProcess ? "null" : peer == 0 ? "self" : number;
}

uint32_t make_region(int call, const char* name, uint8_t role, Peers peers, const CallPath& path) {
  std::string function = name, place;
  if (function.size() > 2 && function.compare(function.size() - 2, 2, "_c") == 0) function.resize(function.size() - 2);
  append_peer(place, "to ", peers.to);
  append_peer(place, "from ", peers.from);
  if (!place.empty() && !path.text.empty()) place += "; ";
  place += path.text;
  strobe_region_info info{};
  info.name = function.c_str();
  info.file = place.empty() ? nullptr : place.c_str();
  info.module = path.module.empty() ? nullptr : path.module.c_str();
  info.paradigm = paradigm_of(call);
  info.role = role;
  return strobe_region(&info);
}

}  // namespace

uint32_t region_of(int call, const char* name, uint8_t role, Peers peers, const CallPath& path) {
  uint64_t hash = (uint64_t(uint32_t(peers.to)) << 32 | uint32_t(peers.from)) * 0x9E3779B97F4A7C15ull;
  hash = (hash ^ (hash >> 29) ^ (uint64_t(path.id) << 8 | uint64_t(call))) * 0x9E3779B97F4A7C15ull;
  uint32_t bucket = uint32_t(hash >> 40);
  for (;; bucket++) {
    const Known* k = buckets[bucket % kBuckets].load(std::memory_order_acquire);
    if (!k) break;
    if (k->call == uint32_t(call) && k->path == path.id && k->peers.to == peers.to && k->peers.from == peers.from)
      return k->region;
  }
  int saved = errno;
  std::lock_guard lock(mutex);
  uint32_t region = 0;
  if (known < kLimit) {
    region = make_region(call, name, role, peers, path);
    while (buckets[bucket % kBuckets].load()) bucket++;
    auto* made = new Known{uint32_t(call), path.id, peers, region};
    buckets[bucket % kBuckets].store(made, std::memory_order_release);
    known++;
  } else {  // too many: without call path and peers
    region = make_region(call, name, role, {}, CallPath{});
  }
  errno = saved;
  return region;
}

}  // namespace strobe::mpi
