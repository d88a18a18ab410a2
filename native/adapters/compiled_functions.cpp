// compiled_functions.cpp - C and C++ functions built with `strobe cc` (-finstrument-functions).
//
// An address is looked up in a table without locks; what it is called is found out after the run, from the module's
// file and the address in it. A thread keeps the functions that are open, with their frames: where a longjmp leaves
// functions without their hook, the next hook finds their frames at or below its own, and ends them. What a signal's
// handler runs while it has interrupted a hook is left out, and counted: the hook's work would be half done.
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "core/session/from_environment.h"
#include "core/session/session.h"
#include "core/spans/throttle.h"
#include "core/system/own_memory.h"
#include "core/system/threads.h"
#include "include/strobe.h"
#include "include/strobe_functions.h"

namespace strobe {

namespace {

constexpr uint32_t kBuckets = 1u << 17, kLimit = kBuckets / 2, kDeepest = 1u << 16;

struct Known {
  std::atomic<uintptr_t> address{0};
  std::atomic<uint32_t> region{0};  // 0: its module was unloaded
};

struct Open {
  uintptr_t function, call_site, frame;
  uint32_t region;
};

struct Thread {  // begins as zeroes
  uint32_t depth, too_deep;
  std::atomic<uint32_t> left_out;
  std::atomic<uintptr_t> working;             // a hook is at work: the frame that it is for
  uint32_t generation;                        // of the session that `stopped` is of
  uint64_t stopped[Throttle::kRegions / 64];  // a bit each: throttled functions that this thread records no more
  Open open[kDeepest];
};

Known table[kBuckets];
uint32_t known = 0;  // guarded by session().adapters_mutex(), as changes of the table: a fork takes that one, too
pthread_key_t key;
__thread Thread* mine __attribute__((tls_model("initial-exec")));

struct Module {
  uintptr_t address, base = 0, end = 0;
  std::string path;
};

int find_module(dl_phdr_info* object, size_t, void* argument) {
  auto& module = *static_cast<Module*>(argument);
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const auto& segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || module.address < begin || module.address >= begin + segment.p_memsz) continue;
    module.base = object->dlpi_addr;
    module.path = object->dlpi_name ? object->dlpi_name : "";
    for (int k = 0; k < object->dlpi_phnum; k++)
      if (object->dlpi_phdr[k].p_type == PT_LOAD)
        module.end = object->dlpi_addr + object->dlpi_phdr[k].p_vaddr + object->dlpi_phdr[k].p_memsz;
    return 1;
  }
  return 0;
}

std::string absolute(std::string path) {
  char buffer[PATH_MAX];
  if (path.empty()) {  // the program itself
    ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
    return n > 0 ? std::string(buffer, size_t(n)) : "";
  }
  if (path[0] != '/')
    if (realpath(path.c_str(), buffer)) path = buffer;
  return path;
}

uint32_t make_region(uintptr_t address) {
  Module module{address, 0, 0, {}};
  dl_iterate_phdr(find_module, &module);
  module.path = absolute(module.path);
  char name[32];
  snprintf(name, sizeof name, "0x%llx", (unsigned long long)(address - module.base));
  strobe_region_info info{};
  info.name = name;
  info.file = module.path.c_str();
  info.module = module.path.c_str();
  info.paradigm = STROBE_COMPILER;
  info.role = STROBE_ROLE_FUNCTION;
  return strobe_region(&info);
}

uint32_t hash_of(uintptr_t address) { return uint32_t((uint64_t(address) * 0x9E3779B97F4A7C15ull) >> 47); }

__attribute__((noinline)) uint32_t learn(uintptr_t address) {
  const Inside inside;
  const WithoutSignals whole;
  uint32_t region = make_region(address);
  std::lock_guard lock(session().adapters_mutex());
  uint32_t at = hash_of(address);
  while (table[at % kBuckets].address.load() && table[at % kBuckets].address.load() != address) at++;
  Known& entry = table[at % kBuckets];
  if (!entry.address.load()) {
    if (known >= kLimit) {
      strobe_count("functions_folded", 1);
      return region;
    }
    known++;
  }
  entry.region.store(region);
  entry.address.store(address, std::memory_order_release);
  return region;
}

inline uint32_t region_of(uintptr_t address) {
  for (uint32_t at = hash_of(address);; at++) {
    const Known& entry = table[at % kBuckets];
    const uintptr_t found = entry.address.load(std::memory_order_acquire);
    if (__builtin_expect(found == address, 1)) {
      if (uint32_t region = entry.region.load(std::memory_order_relaxed)) return region;
      return learn(address);
    }
    if (!found) return learn(address);
  }
}

__attribute__((noinline)) Thread* new_thread() {
  int error = errno;
  void* map = mmap(nullptr, sizeof(Thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  errno = error;
  if (map == MAP_FAILED) return nullptr;
  mine = static_cast<Thread*>(map);
  pthread_setspecific(key, map);
  return mine;
}

class Working {
 public:
  Working(Thread& t, uintptr_t frame) : t_(t) {
    t_.working.store(frame, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Working() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_.working.store(0, std::memory_order_relaxed);
  }
  Working(const Working&) = delete;

 private:
  Thread& t_;
};

// A handler of a signal runs there: frames do not show what is inside of what.
__attribute__((noinline)) bool on_alternate_stack() {
  stack_t stack;
  return sigaltstack(nullptr, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

// It was left without its hook.
inline void close_top(Thread& t) {
  t.depth--;
  strobe_leave(t.open[t.depth].region);
}

// What runs inside of the recorder records nothing: an allocator of the program that the recorder calls, a signal's
// handler that comes meanwhile. Counted later, as nothing here may take a lock now.
__attribute__((noinline)) bool really_inside(Thread* t, uintptr_t frame) {
  // A handler has left the hook that it interrupted by siglongjmp: nothing that the hook was doing goes on.
  if (const uintptr_t left = t ? t->working.load() : 0; left && frame >= left && !on_alternate_stack()) {
    t->working = 0;
    producer.busy = producer.writing = false;
    return false;
  }
  return true;
}
inline bool inside_the_recorder(Thread* t, uintptr_t frame) {
  const bool at_work = t && t->working.load(std::memory_order_relaxed);
  return __builtin_expect(producer.busy | producer.hidden | producer.writing | at_work, 0) && really_inside(t, frame);
}

__attribute__((noinline)) void rarely(Thread& t) {
  const WithoutSignals whole;
  strobe_count("functions_inside_the_recorder", t.left_out.exchange(0));
}

const uint8_t* throttled;  // strobe_throttle_flags()

inline bool is_throttled(uint32_t region) {
  return __builtin_expect(region < Throttle::kRegions && __atomic_load_n(&throttled[region], __ATOMIC_RELAXED), 0);
}

// Whether this thread records the function no more: from a moment on at which no call of it is open here, so that each
// leave has its enter.
__attribute__((noinline)) bool stops(Thread& t, uint32_t region) {
  if (const uint32_t generation = session().generation(); t.generation != generation) {
    memset(t.stopped, 0, sizeof t.stopped);
    t.generation = generation;
  }
  uint64_t& stopped = t.stopped[region / 64];
  const uint64_t bit = uint64_t(1) << region % 64;
  if (stopped & bit) return true;
  for (uint32_t i = t.depth; i-- > 0;)
    if (t.open[i].region == region) return false;
  stopped |= bit;
  const WithoutSignals whole;
  strobe_note_throttled(region);
  return true;
}

void enter(void* function, void* call_site, uintptr_t frame) {
  Thread* t = mine;
  if (inside_the_recorder(t, frame)) {
    if (t) t->left_out++;
    return;
  }
  if (__builtin_expect(!t, 0) && !(t = new_thread())) return;
  const Working working(*t, frame);
  const auto address = reinterpret_cast<uintptr_t>(function), site = reinterpret_cast<uintptr_t>(call_site);
  while (t->depth) {
    const Open& top = t->open[t->depth - 1];
    // A function that was inlined has the frame and the caller of the one around it.
    const bool inlined = top.frame == frame && top.call_site == site && top.function != address;
    if (__builtin_expect(top.frame > frame || inlined, 1) || on_alternate_stack()) break;
    close_top(*t);
  }
  const uint32_t region = region_of(address);
  if (is_throttled(region) && stops(*t, region)) return;
  if (__builtin_expect(t->depth == kDeepest, 0)) {
    if (!t->too_deep++) strobe_count("functions_too_deep", 1);
    return;
  }
  t->open[t->depth++] = {address, site, frame, region};
  strobe_enter(region);
}

void leave(void* function, uintptr_t frame) {
  Thread* t = mine;
  if (!t || inside_the_recorder(t, frame)) return;
  const Working working(*t, frame);
  const auto address = reinterpret_cast<uintptr_t>(function);
  if (__builtin_expect(t->left_out.load(std::memory_order_relaxed), 0)) rarely(*t);
  if (__builtin_expect(t->too_deep, 0)) {
    if (frame <= t->open[kDeepest - 1].frame && t->too_deep--) return;
    t->too_deep = 0;
  }
  while (t->depth) {
    const Open& top = t->open[t->depth - 1];
    // The hook may be the last jump of its function, and then runs in the frame of the caller.
    const uintptr_t around = t->depth > 1 ? t->open[t->depth - 2].frame : UINTPTR_MAX;
    if (__builtin_expect(top.function == address && frame <= around, 1)) return close_top(*t);
    if (top.frame >= frame || on_alternate_stack()) return;  // its begin was not recorded
    close_top(*t);
  }
}

void unloaded(void* inside) {
  Module module{reinterpret_cast<uintptr_t>(inside), 0, 0, {}};
  if (!dl_iterate_phdr(find_module, &module)) return;
  const Inside recorder;
  std::lock_guard lock(session().adapters_mutex());
  for (Known& entry : table) {
    const uintptr_t address = entry.address.load();
    if (address >= module.base && address < module.end) entry.region.store(0);
  }
}

const strobe_functions functions = {1, enter, leave, unloaded};

}  // namespace

}  // namespace strobe

extern "C" const strobe_functions* strobe_functions_begin(void) {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_key_create(&strobe::key, [](void* map) {
      strobe::mine = nullptr;
      munmap(map, sizeof(strobe::Thread));
    });
    strobe::throttled = strobe_throttle_flags();
    strobe::use_own_memory();
  });
  return strobe::start_from_environment("functions") ? &strobe::functions : nullptr;
}
