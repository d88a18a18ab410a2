// Four threads that do most of their work under one lock. Prints the CPU time in each function and what the threads
// waited for the lock, by their own clocks: `NAME NS` a line.
#include <pthread.h>

#include "programs.h"

enum { kThreads = 4, kRounds = 30 };
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t waited[kThreads], inside[kThreads], outside[kThreads];

__attribute__((noinline)) void update_table(int64_t ns) { spin(ns); }
__attribute__((noinline)) void prepare(int64_t ns) { spin(ns); }

static void* work(void* number) {
  const intptr_t me = (intptr_t)number;
  for (int i = 0; i < kRounds; i++) {
    int64_t cpu = cpu_ns();
    prepare(1000000);
    outside[me] += cpu_ns() - cpu;
    const int64_t begin = now_ns();
    pthread_mutex_lock(&table_lock);
    waited[me] += now_ns() - begin;
    cpu = cpu_ns();
    update_table(3000000);
    inside[me] += cpu_ns() - cpu;
    pthread_mutex_unlock(&table_lock);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int64_t sums[3] = {0};
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; i++) {
    pthread_join(threads[i], NULL);
    sums[0] += outside[i], sums[1] += inside[i], sums[2] += waited[i];
  }
  printf("prepare %lld\nupdate_table %lld\nwaited %lld\n", (long long)sums[0], (long long)sums[1], (long long)sums[2]);
  return 0;
}
