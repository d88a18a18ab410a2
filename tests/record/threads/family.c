// main creates `parent`, which creates and joins `child`, and then `last`. Prints how long each of them lasted, by its
// own clock: `NAME NS` a line. Who joins a thread knows that it has begun.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "programs.h"

enum { kParent, kChild, kLast, kThreads };
static const char* names[] = {"parent", "child", "last"};
static sem_t begun[kThreads];
static int64_t lasted[kThreads];

static void pass(int64_t ns) {
  struct timespec time = {0, ns};
  nanosleep(&time, NULL);
}

static void* live(void* number);

static void raise_thread(intptr_t number) {
  pthread_t thread;
  pthread_create(&thread, NULL, live, (void*)number);
  sem_wait(&begun[number]);
  pthread_join(thread, NULL);
}

static void* live(void* number) {
  const intptr_t me = (intptr_t)number;
  const int64_t begin = now_ns();
  pthread_setname_np(pthread_self(), names[me]);
  sem_post(&begun[me]);
  pass(20000000);
  if (me == kParent) raise_thread(kChild);
  pass(20000000);
  lasted[me] = now_ns() - begin;
  return NULL;
}

int main(void) {
  for (int i = 0; i < kThreads; i++) sem_init(&begun[i], 0, 0);
  raise_thread(kParent);
  raise_thread(kLast);
  for (int i = 0; i < kThreads; i++) printf("%s %lld\n", names[i], (long long)lasted[i]);
  return 0;
}
