// Four threads with parts of the work that main joins: the last one has six times as much. Prints the CPU time of the
// longest part and the mean of all, by their own clocks: `NAME NS` a line.
#define _GNU_SOURCE
#include <pthread.h>

#include "programs.h"

enum { kThreads = 4 };
static __attribute__((noinline)) void sort_rows(int64_t ns) { spin(ns); }
static int64_t computed[kThreads];

static void* part(void* number) {
  const intptr_t me = (intptr_t)number;
  char name[] = "part0";
  name[4] += me;
  pthread_setname_np(pthread_self(), name);
  const int64_t cpu = cpu_ns();
  sort_rows(me == kThreads - 1 ? 600000000 : 100000000);
  computed[me] = cpu_ns() - cpu;
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int64_t sum = 0;
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, part, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL), sum += computed[i];
  printf("most %lld\nmean %lld\n", (long long)computed[kThreads - 1], (long long)sum / kThreads);
  return 0;
}
