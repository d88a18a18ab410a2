#include "adapters/mpi/call_paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unwind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "adapters/mpi/function_names.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

constexpr int kFrames = 32;  // callers further out are known by the stack pointer
constexpr uint32_t kBuckets = 1u << 15, kLimit = kBuckets / 2;

struct Slot {
  int64_t offset;  // from the frame address
  uint64_t address;
};

struct Chain {
  uint64_t caller, frame;
  std::vector<Slot> slots;
  const CallPath* path;
  bool is(uint64_t by, uint64_t at) const {
    if (by != caller || at != frame) return false;
    for (const Slot& slot : slots)
      if (*reinterpret_cast<const uint64_t*>(at + uint64_t(slot.offset)) != slot.address) return false;
    return true;
  }
};

std::atomic<const Chain*> buckets[kBuckets];
std::mutex mutex;
uint32_t chains = 0;
const CallPath nothing;

struct Unwinding {
  uint64_t caller, frame;
  bool found = false;  // the frame that called the MPI function
  bool placed = true;  // so far every return address was found on the stack
  std::vector<uint64_t> addresses;
  std::vector<Slot> slots;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& u = *static_cast<Unwinding*>(argument);
  uint64_t address = _Unwind_GetIP(context);
  if (!address) return _URC_END_OF_STACK;
  if (!u.found) {
    if (address != u.caller) return _URC_NO_REASON;  // our own frames
    u.found = true;
    u.addresses.push_back(address);
    return _URC_NO_REASON;
  }
  u.addresses.push_back(address);
#if defined(__x86_64__)
  uint64_t place = _Unwind_GetCFA(context) - 8;
  u.placed = u.placed && place > u.frame && *reinterpret_cast<const uint64_t*>(place) == address;
  if (u.placed) u.slots.push_back({int64_t(place - u.frame), address});
#endif
  return u.addresses.size() < kFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

const void* object_of(const char* symbol) {
  void* address = dlsym(RTLD_DEFAULT, symbol);
  Dl_info info;
  return address && dladdr(address, &info) ? info.dli_fbase : nullptr;
}

// Equal texts are one path, whatever the stack pointer was.
const CallPath* path_of(const std::vector<uint64_t>& addresses, size_t& used) {
  static const void* interpreter = object_of("PyEval_EvalCode");
  static const void* c_library = object_of("exit");
  static auto* paths = new std::unordered_map<std::string, std::unique_ptr<CallPath>>;
  static auto* noted = new std::unordered_set<std::string>;
  std::string text, module;
  for (used = 0; used < addresses.size(); used++) {
    // One before the return address: a call may be the last instruction of its function.
    Place place = find_place(reinterpret_cast<const void*>(addresses[used] - 1));
    bool fortran = place.object.rfind("libmpi", 0) == 0;  // its bindings, between the program and us
    if (!place.base || place.base == c_library || fortran) continue;
    if (place.base == interpreter) break;
    bool binding = place.object.rfind("MPI.", 0) == 0 && place.object.find(".so") != std::string::npos;
    if (module.empty()) module = binding ? "mpi4py" : place.object;
    if (binding) continue;
    const std::string site = call_site(place);
    if (noted->insert(site).second) strobe_note_call_site(site.c_str(), place.path.c_str(), place.address);
    if (!text.empty()) text += " < ";
    text += site;
    if (place.function == "main") {
      used++;
      break;
    }
  }
  std::unique_ptr<CallPath>& path = (*paths)[text + '\n' + module];
  if (!path) path = std::make_unique<CallPath>(CallPath{uint32_t(paths->size()), text, module});
  return path.get();
}

}  // namespace

const CallPath& call_path(const void* caller, const void* frame) {
  uint64_t by = reinterpret_cast<uint64_t>(caller), at = reinterpret_cast<uint64_t>(frame);
  uint64_t hash = (by ^ at * 0x9E3779B97F4A7C15ull) * 0x9E3779B97F4A7C15ull;
  uint32_t bucket = uint32_t(hash >> 40);
  for (;; bucket++) {
    const Chain* chain = buckets[bucket % kBuckets].load(std::memory_order_acquire);
    if (!chain) break;
    if (chain->is(by, at)) return *chain->path;
  }
  int saved = errno;
  std::lock_guard lock(mutex);
  const CallPath* path = &nothing;
  if (chains < kLimit) {
    Unwinding u{by, at, false, true, {}, {}};
    _Unwind_Backtrace(visit, &u);
    if (!u.found) u.addresses = {by};
    size_t used = 0;
    path = path_of(u.addresses, used);
    // What lies beyond (main's callers, the interpreter) is not part of the path: it need not be compared. The caller's
    // own address is not a slot.
    size_t needed = used > 0 ? used - 1 : 0;
    if (u.slots.size() > needed) u.slots.resize(needed);
    auto* made = new Chain{by, at, std::move(u.slots), path};
    while (buckets[bucket % kBuckets].load()) bucket++;
    buckets[bucket % kBuckets].store(made, std::memory_order_release);
    chains++;
  } else {
    strobe_count("mpi_call_paths_folded", 1);
  }
  errno = saved;
  return *path;
}

}  // namespace strobe::mpi
