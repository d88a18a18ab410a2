#include "core/system/own_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>

#include "core/rings/ring.h"

namespace strobe {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// Sanitizers have a malloc and a `new` that go together.
void use_own_memory() {}
void lock_own_memory() {}
void unlock_own_memory() {}

#else

namespace {

// Address space; what was never used costs nothing. Where a limit (ulimit -v) does not allow it: less.
constexpr size_t kReserve = size_t(4) << 30, kLeastReserve = size_t(64) << 20;
constexpr size_t kStep = 1 << 20;         // so much becomes usable at a time
constexpr size_t kGivenBack = 256 << 10;  // free blocks of this size and more keep their address, not their memory
constexpr size_t kPageBytes = 4096;

// Before each block. Four sizes in each power of two: at most a fifth of a block is unused.
struct alignas(16) Block {
  uint32_t size_class;
  Block* next;  // where it is free
};
constexpr uint32_t kClasses = 64 * 4;

std::atomic<char*> begin{nullptr}, end{nullptr};
char *unused, *usable;  // up to `unused` are blocks, up to `usable` the kernel lets us write
Block* free_blocks[kClasses];
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// What a signal's handler makes meanwhile is left out: it would wait for this thread.
class Locked {
 public:
  Locked() { pthread_mutex_lock(&mutex); }
  ~Locked() { pthread_mutex_unlock(&mutex); }
  Locked(const Locked&) = delete;

 private:
  const Inside inside_;
};

// Rounds `bytes` up to what blocks of its class have.
uint32_t class_of(size_t& bytes) {
  const int shift = std::max(int(std::bit_width(bytes - 1)) - 3, 4);
  const size_t units = ((bytes - 1) >> shift) + 1;  // 5 to 8; fewer of the smallest
  bytes = units << shift;
  return uint32_t(shift * 4 + int(units) - 5);
}

bool make_usable(const char* until) {
  if (until <= usable) return true;
  const size_t bytes = std::min((size_t(until - usable) + kStep - 1) / kStep * kStep, size_t(end.load() - usable));
  if (mprotect(usable, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  usable += bytes;
  return true;
}

void* allocate(size_t bytes) {
  if (!begin.load(std::memory_order_acquire) || bytes > kReserve) return nullptr;
  bytes += sizeof(Block);
  const uint32_t size_class = class_of(bytes);
  const Locked locked;
  Block* block = free_blocks[size_class];
  if (block) {
    free_blocks[size_class] = block->next;
  } else {
    if (bytes > size_t(end.load() - unused) || !make_usable(unused + bytes)) return nullptr;
    block = reinterpret_cast<Block*>(unused);
    unused += bytes;
    block->size_class = size_class;
  }
  return block + 1;
}

bool give_back(void* memory) {
  const auto* at = static_cast<const char*>(memory);
  if (at < begin.load(std::memory_order_acquire) || at >= end.load(std::memory_order_relaxed)) return false;
  Block* block = static_cast<Block*>(memory) - 1;
  const uint32_t size_class = block->size_class;
  const size_t bytes = size_t(size_class % 4 + 5) << (size_class / 4);  // of the smallest classes: more than they have
  if (bytes >= kGivenBack) {
    const uintptr_t first = (uintptr_t(block + 1) + kPageBytes - 1) & ~(kPageBytes - 1);
    const uintptr_t last = (uintptr_t(block) + bytes) & ~(kPageBytes - 1);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  const Locked locked;
  block->next = free_blocks[size_class];
  free_blocks[size_class] = block;
  return true;
}

}  // namespace

void use_own_memory() {
  const Locked locked;
  if (begin.load()) return;
  for (size_t bytes = kReserve; bytes >= kLeastReserve; bytes /= 2) {
    void* map = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) continue;
    unused = usable = static_cast<char*>(map);
    end.store(usable + bytes);
    begin.store(usable, std::memory_order_release);
    return;
  }
}

void lock_own_memory() { pthread_mutex_lock(&mutex); }
void unlock_own_memory() { pthread_mutex_unlock(&mutex); }

// `operator new` and `operator delete` of this library alone: the declarations of <new> would show them to the program.
__attribute__((visibility("hidden"))) void* own_new(size_t bytes) __asm__("_Znwm");
__attribute__((visibility("hidden"))) void own_delete(void* memory) __asm__("_ZdlPv");

void* own_new(size_t bytes) {
  if (void* memory = allocate(bytes)) return memory;
  if (void* memory = malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void own_delete(void* memory) {
  if (memory && !give_back(memory)) free(memory);
}

#endif

}  // namespace strobe
