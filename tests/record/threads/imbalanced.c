// Threads with uneven work and a barrier in each round: the last one has three times as much. Prints what each thread
// computed and what it waited in the barrier, by its own clocks: `NAME NS` a line.
#include <pthread.h>

#include "programs.h"

enum { kThreads = 3, kRounds = 20 };
static pthread_barrier_t barrier;
static int64_t computed[kThreads], waited[kThreads];

__attribute__((noinline)) void relax_cells(int64_t ns) { spin(ns); }

static void* work(void* number) {
  const intptr_t me = (intptr_t)number;
  for (int i = 0; i < kRounds; i++) {
    const int64_t cpu = cpu_ns();
    relax_cells(me == kThreads - 1 ? 9000000 : 3000000);
    computed[me] += cpu_ns() - cpu;
    const int64_t begin = now_ns();
    pthread_barrier_wait(&barrier);
    waited[me] += now_ns() - begin;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; i++)
    printf("computed%d %lld\nwaited%d %lld\n", i, (long long)computed[i], i, (long long)waited[i]);
  return 0;
}
