// Four threads with parts of the work that main joins: the last one has six times as much. Prints the CPU time of the
// longest part and the mean of all, by their own clocks: `NAME NS` a line. `manager`: another thread joins them, and
// main joins that one. `meet`: they do their parts in ten rounds, and wait for each other after each one.
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs.h"

enum { kThreads = 4 };
static __attribute__((noinline)) void sort_rows(int64_t ns) { spin(ns); }
static int64_t computed[kThreads];
static int rounds = 1;
static atomic_uint came, round_number;

// A barrier that no library knows of.
static void meet(void) {
  const unsigned now = round_number;
  if (++came % kThreads == 0) {
    round_number++;
    syscall(SYS_futex, &round_number, FUTEX_WAKE, INT_MAX, NULL);
  }
  while (round_number == now) syscall(SYS_futex, &round_number, FUTEX_WAIT, now, NULL);
}

static void* part(void* number) {
  const intptr_t me = (intptr_t)number;
  char name[] = "part0";
  name[4] += me;
  pthread_setname_np(pthread_self(), name);
  const int64_t cpu = cpu_ns();
  for (int i = 0; i < rounds; i++) {
    sort_rows((me == kThreads - 1 ? 600000000 : 100000000) / rounds);
    if (rounds > 1) meet();
  }
  computed[me] = cpu_ns() - cpu;
  return NULL;
}

static void* join_all(void* nothing) {
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, part, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  return nothing;
}

int main(int count, char** words) {
  pthread_t manager;
  int64_t sum = 0;
  if (count > 1 && words[1][1] == 'e') rounds = 10;
  if (count > 1 && rounds == 1)
    pthread_create(&manager, NULL, join_all, words), pthread_join(manager, NULL);
  else
    join_all(NULL);
  for (int i = 0; i < kThreads; i++) sum += computed[i];
  printf("most %lld\nmean %lld\n", (long long)computed[kThreads - 1], (long long)sum / kThreads);
  return 0;
}
