// What finding loops and folding may take: a program that fills every table at once, recorded with all of it in detail,
// and with a collector. The difference of the heaps' peaks is the collector's: graph, windows, analyses, call paths,
// statistics, what waits, and what is encoded at the end.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "tests/check.h"

// Under a sanitizer, malloc is the sanitizer's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main() {}
#else

namespace {

std::atomic<size_t> held, peak;

void* count(void* block) {
  if (!block) return block;
  const size_t now = held.fetch_add(malloc_usable_size(block)) + malloc_usable_size(block);
  for (size_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return block;
}

}  // namespace

// Every allocation of the process, the core's included, comes here.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);

void* malloc(size_t size) { return count(__libc_malloc(size)); }
void* calloc(size_t n, size_t size) { return count(__libc_calloc(n, size)); }
void free(void* block) {
  if (block) held -= malloc_usable_size(block);
  __libc_free(block);
}
void* realloc(void* block, size_t size) {  // moves pages: a copy is not counted twice
  const size_t before = block ? malloc_usable_size(block) : 0;
  void* moved = __libc_realloc(block, size);
  if (!moved) return moved;
  held -= before;
  return count(moved);
}
}

namespace {

constexpr size_t kMB = 1000000;

std::vector<uint32_t> regions_of(const char* what, uint8_t paradigm, size_t n) {
  std::vector<uint32_t> regions;
  for (size_t i = 0; i < n; i++) {
    const std::string name = what + std::to_string(i);
    strobe_region_info info{};
    info.name = name.c_str(), info.paradigm = paradigm;
    regions.push_back(strobe_region(&info));
  }
  return regions;
}

void call(uint32_t region) {
  strobe_enter(region);
  strobe_leave(region);
}

// Iterations of a loop that the recorder finds, each of which calls thousands of functions and operators in another
// order: more of each than any table holds.
void program(size_t functions, size_t operators) {
  std::mt19937 random(1);
  std::vector<uint32_t> called = regions_of("function ", STROBE_USER, functions);
  std::vector<uint32_t> run = regions_of("aten::", STROBE_TORCH, operators);
  const uint32_t update = regions_of("Optimizer.step#Adam.step ", STROBE_TORCH, 1)[0];
  for (int i = 0; i < 40; i++) {  // a loop is accepted
    for (int k = 0; k < 50; k++) call(run[k]), call(called[k]);
    call(update);
    usleep(2000);
  }
  for (int rounds = 0; rounds < 3; rounds++) {
    std::ranges::shuffle(called, random);
    std::ranges::shuffle(run, random);
    for (size_t i = 0; i < std::max(functions, operators); i++) {
      if (i < functions) call(called[i]);
      if (i < operators) call(run[i]);
      if (i % 40000 == 39999) call(update);
    }
  }
}

// The most that the heap has held.
size_t peak_of(uint32_t keep, int threads, size_t functions, size_t operators) {
  auto* told = shared_with_children<size_t>();
  Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    start(folder, {.keep = keep});
    std::vector<std::thread> others;
    for (int t = 1; t < threads; t++) others.emplace_back(program, functions, operators);
    program(functions, operators);
    for (auto& thread : others) thread.join();
    strobe_stop();
    *told = peak;
    _exit(0);
  }
  CHECK(status_of(child) == 0);
  return *told;
}

}  // namespace

int main() {
  constexpr size_t functions = 130000, operators = 130000;
  const size_t detail = peak_of(0, 1, functions, operators);
  for (const uint32_t keep : {10u, UINT32_MAX}) {
    const size_t one = peak_of(keep, 1, functions, operators);
    printf("keep %d: %.1f MB more than %.1f\n", int(keep), double(one - detail) / kMB, double(detail) / kMB);
    CHECK(one > detail && one - detail < 32 * kMB);
  }
  // A further thread has a graph of its own, and rows that wait; all else is the process's.
  const size_t three = peak_of(10, 3, functions, operators) - peak_of(0, 3, functions, operators);
  printf("three threads: %.1f MB more\n", double(three) / kMB);
  CHECK(three < (32 + 2 * 20) * kMB);
}
#endif
