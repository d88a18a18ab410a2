#include "core/system/mapping_guard.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <memory>

namespace strobe {

namespace {

constexpr size_t kSystemPage = 4096;

// A list that only grows, so that a signal handler can walk it; nodes are used again.
struct Guarded {
  explicit Guarded(size_t size) : bytes(size), mended(new std::atomic<uint8_t>[size / kSystemPage]) {}
  std::atomic<uintptr_t> begin{0};
  std::atomic<bool> taken{true};
  const size_t bytes;
  const std::unique_ptr<std::atomic<uint8_t>[]> mended;  // by page
  Guarded* next = nullptr;
};
std::atomic<Guarded*> first{nullptr};
std::atomic<bool> mending{false};
std::atomic<bool> needed{false}, lost{false};
struct sigaction before;
pthread_once_t installed = PTHREAD_ONCE_INIT;

Guarded* guarded_at(uintptr_t address) {
  for (Guarded* node = first.load(std::memory_order_acquire); node; node = node->next) {
    const uintptr_t begin = node->begin.load(std::memory_order_acquire);
    if (begin && address >= begin && address - begin < node->bytes) return node;
  }
  return nullptr;
}

// Only system calls from here on: this runs in a signal handler.
bool mend_page(Guarded& node, size_t number) {
  if (node.mended[number]) return true;  // another thread met the same page, and was faster
  char* page = reinterpret_cast<char*>(node.begin + number * kSystemPage);
  void* fresh = mmap(nullptr, kSystemPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  // The kernel reads the page: what cannot be read is an error here, and no signal.
  iovec to{fresh, kSystemPage}, from{page, kSystemPage};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != ssize_t(kSystemPage)) lost = true;
  needed = true;
  if (mremap(fresh, kSystemPage, kSystemPage, MREMAP_MAYMOVE | MREMAP_FIXED, page) == MAP_FAILED) {
    munmap(fresh, kSystemPage);
    return false;
  }
  node.mended[number] = 1;
  return true;
}

// The first page, which holds how far the others are filled, goes first: the header of the file stays true.
bool mend(uintptr_t address) {
  Guarded* node = guarded_at(address);
  if (!node) return false;
  while (mending.exchange(true, std::memory_order_acquire)) sched_yield();
  const bool done = mend_page(*node, 0) && mend_page(*node, (address - node->begin) / kSystemPage);
  mending.store(false, std::memory_order_release);
  return done;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool of_kernel = info->si_code > 0;
  const bool mended = of_kernel && mend(uintptr_t(info->si_addr));
  errno = saved;
  if (mended) return;
  // Somebody else's: as if we were not here.
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  if (before.sa_handler == SIG_IGN && !of_kernel) return;
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  sigaction(number, &usual, nullptr);
  if (!of_kernel) raise(number);  // else the instruction runs again, and ends the process where it stands
}

void install() {
  sigaction(SIGBUS, nullptr, &before);
  struct sigaction ours = before;
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_NODEFER | SA_RESTART));
  sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

void guard(void* mapping, size_t bytes) {
  pthread_once(&installed, install);
  Guarded* node = first.load();
  for (; node; node = node->next)
    if (node->bytes == bytes && !node->taken.exchange(true)) break;
  if (!node) {
    node = new Guarded(bytes);
    node->next = first.load();
    while (!first.compare_exchange_weak(node->next, node)) {
    }
  }
  for (size_t i = 0; i < bytes / kSystemPage; i++) node->mended[i] = 0;
  node->begin.store(uintptr_t(mapping), std::memory_order_release);
}

void unguard(void* mapping) {
  for (Guarded* node = first.load(); node; node = node->next)
    if (node->begin == uintptr_t(mapping)) node->begin = 0, node->taken = false;
}

void replace_by_zeros(void* mapping, size_t bytes) {
  mmap(mapping, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  unguard(mapping);
}

void guard_nothing() {
  for (Guarded* node = first.load(); node; node = node->next) node->begin = 0, node->taken = false;
  mending = needed = lost = false;
}

bool guard_was_needed() { return needed.load(std::memory_order_relaxed); }
bool guard_lost_content() { return lost.load(std::memory_order_relaxed); }

}  // namespace strobe
