// Threads that wait for each other, and measure each wait by their own clock. `every`: in each step two workers wait
// for a semaphore (one of them with a deadline) and for a signal, compute under one lock one after the other, and meet
// the main thread at a barrier, to which it comes last. `many`: two threads hand a turn to each other by a condition,
// `posts`: by semaphores. Prints `STATE STEP COUNT NS` of each step, -1 outside of steps.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "programs.h"
#include "strobe.h"

enum { kWorkers = 2, kSteps = 12, kTurns = 20000 };
enum { kLock, kCondition, kSemaphore, kBarrier, kJoin, kStates };
static const char* names[] = {"lock_contention", "condition_wait", "semaphore_wait", "thread_barrier", "thread_join"};
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t ready, turns[2];
static int opened, turn;
static struct {
  int64_t count, ns;
} waited[kStates][kWorkers + 1][kSteps + 1];

static void pass(int64_t ns) {
  struct timespec time = {0, ns};
  nanosleep(&time, NULL);
}

static void add(int state, int thread, int step, int64_t begin) {
  waited[state][thread][step].count++;
  waited[state][thread][step].ns += now_ns() - begin;
}

// Locks, and measures that only if another thread has the mutex: on a busy machine any of these locks may be contended.
static void lock(pthread_mutex_t* mutex, int thread, int step) {
  if (!pthread_mutex_trylock(mutex)) return;
  const int64_t begin = now_ns();
  pthread_mutex_lock(mutex);
  add(kLock, thread, step, begin);
}

// The same of a semaphore. Neither changes errno.
static void take(sem_t* semaphore, int thread, int step) {
  struct timespec late;
  clock_gettime(CLOCK_REALTIME, &late);
  late.tv_sec += 100;
  if (!sem_trywait(semaphore)) return;
  errno = 7;
  const int64_t begin = now_ns();
  const int failed = thread == 1 ? sem_timedwait(semaphore, &late) : sem_wait(semaphore);
  add(kSemaphore, thread, step, begin);
  if (failed || errno != 7) fprintf(stderr, "%d %d\n", failed, errno);
}

static void* work(void* number) {
  const int me = (int)(intptr_t)number;
  for (int step = 0; step < kSteps; step++) {
    pass(3000000);  // the main thread's step has begun
    take(&ready, me, step);
    lock(&gate_lock, me, step);
    while (opened <= step) {
      const int64_t begin = now_ns();
      pthread_cond_wait(&gate, &gate_lock);
      add(kCondition, me, step, begin);
    }
    pthread_mutex_unlock(&gate_lock);
    pass(me * 2000000);  // the first one has the lock when the second one asks
    lock(&table_lock, me, step);
    pass(6000000);
    pthread_mutex_unlock(&table_lock);
    const int64_t came = now_ns();
    pthread_barrier_wait(&barrier);
    add(kBarrier, me, step, came);
  }
  return NULL;
}

static void* take_turns(void* number) {
  const int me = (int)(intptr_t)number;
  pthread_mutex_lock(&gate_lock);
  for (int i = 0; i < kTurns; i++) {
    while (turn != me) {
      const int64_t begin = now_ns();
      pthread_cond_wait(&gate, &gate_lock);
      add(kCondition, me, kSteps, begin);
    }
    turn = !me;
    pthread_cond_signal(&gate);
  }
  pthread_mutex_unlock(&gate_lock);
  return NULL;
}

static void* post_turns(void* number) {
  const int me = (int)(intptr_t)number;
  for (int i = 0; i < kTurns; i++) {
    take(&turns[me], me, kSteps);
    sem_post(&turns[!me]);
  }
  return NULL;
}

int main(int count, char** words) {
  const int many = count > 1 && !strcmp(words[1], "many"), posts = count > 1 && !strcmp(words[1], "posts");
  pthread_t threads[kWorkers];
  strobe_region_info info = {.name = "iteration", .paradigm = STROBE_USER, .role = STROBE_ROLE_FUNCTION};
  const uint32_t iteration = strobe_region(&info);
  pthread_barrier_init(&barrier, NULL, kWorkers + 1);
  sem_init(&ready, 0, 0);
  for (int i = 0; i < 2; i++) sem_init(&turns[i], 0, !i);
  for (intptr_t i = 0; i < kWorkers; i++)
    pthread_create(&threads[i], NULL, many ? take_turns : posts ? post_turns : work, (void*)i);
  for (int step = 0; step < kSteps && !many && !posts; step++) {
    strobe_enter(iteration);
    pass(8000000);
    for (int i = 0; i < kWorkers; i++) sem_post(&ready);
    pass(5000000);
    lock(&gate_lock, kWorkers, step);
    opened++;
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&gate_lock);
    pass(18000000);
    const int64_t begin = now_ns();
    pthread_barrier_wait(&barrier);
    add(kBarrier, kWorkers, step, begin);
    strobe_leave(iteration);
  }
  for (int i = 0; i < kWorkers; i++) {
    const int64_t begin = now_ns();
    pthread_join(threads[i], NULL);
    add(kJoin, kWorkers, kSteps, begin);
  }
  for (int state = 0; state < kStates; state++)
    for (int step = 0; step <= kSteps; step++) {
      int64_t sums[2] = {0};
      for (int i = 0; i <= kWorkers; i++) sums[0] += waited[state][i][step].count, sums[1] += waited[state][i][step].ns;
      printf("%s %d %lld %lld\n", names[state], step < kSteps ? step : -1, (long long)sums[0], (long long)sums[1]);
    }
  return 0;
}
