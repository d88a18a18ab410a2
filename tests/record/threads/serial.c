// A serial part, then a parallel one. Prints the CPU time in each function by the program's own clocks, and the time of
// the serial part and of both: `NAME NS` a line.
#include <pthread.h>

#include "programs.h"

enum { kThreads = 2 };
static int64_t solved[kThreads];

__attribute__((noinline)) void assemble(int64_t ns) { spin(ns); }
__attribute__((noinline)) void solve(int64_t ns) { spin(ns); }

static void* work(void* number) {
  const int64_t cpu = cpu_ns();
  solve(100000000);
  solved[(intptr_t)number] = cpu_ns() - cpu;
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  const int64_t begin = now_ns(), cpu = cpu_ns();
  assemble(400000000);
  const int64_t assembled = cpu_ns() - cpu, serial = now_ns() - begin;
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  printf("assemble %lld\nsolve %lld\nserial %lld\nwhole %lld\n", (long long)assembled,
         (long long)(solved[0] + solved[1]), (long long)serial, (long long)(now_ns() - begin));
  return 0;
}
