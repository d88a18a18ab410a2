// Four threads that take a lock for 20 to 200 us again and again: `shared`, one for all; `own`, one each. Prints what
// they waited for it and how long they lasted, by their own clocks: `NAME NS` a line.
#include <pthread.h>
#include <string.h>

#include "programs.h"

enum { kThreads = 4, kRounds = 1200 };
pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own_locks[kThreads];
static int shared;
static int64_t waited[kThreads], lasted[kThreads];

// As `spin`, in pieces that are much shorter.
static __attribute__((noinline)) void bump(int64_t ns) {
  const int64_t until = cpu_ns() + ns;
  while (cpu_ns() < until)
    for (int i = 0; i < 500; i++) sink = sink * 0.5 + i;
}

static void* count_words(void* number) {
  const intptr_t me = (intptr_t)number;
  pthread_mutex_t* lock = shared ? &counts_lock : &own_locks[me];
  const int64_t began = now_ns();
  for (int i = 0; i < kRounds; i++) {
    bump(40000);
    const int64_t begin = now_ns();
    pthread_mutex_lock(lock);
    waited[me] += now_ns() - begin;
    bump(20000 + i % 10 * 20000);
    pthread_mutex_unlock(lock);
  }
  lasted[me] = now_ns() - began;
  return NULL;
}

int main(int count, char** words) {
  pthread_t threads[kThreads];
  int64_t sums[2] = {0};
  shared = count > 1 && !strcmp(words[1], "shared");
  for (int i = 0; i < kThreads; i++) pthread_mutex_init(&own_locks[i], NULL);
  for (intptr_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, count_words, (void*)i);
  for (int i = 0; i < kThreads; i++) {
    pthread_join(threads[i], NULL);
    sums[0] += waited[i], sums[1] += lasted[i];
  }
  printf("waited %lld\nlasted %lld\n", (long long)sums[0], (long long)sums[1]);
  return 0;
}
