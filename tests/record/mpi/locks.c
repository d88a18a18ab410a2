/* Two threads of each rank do their work under one lock, talk to the same threads of the other rank, and do both at
 * once. Prints what they waited for the lock, and the main thread for them, in ns by their own clocks. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t board = PTHREAD_MUTEX_INITIALIZER;
static long long waited[2];
static int other;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *play(void *number) {
  int me = *(int *)number, got;
  struct timespec time = {0, 4000000};
  for (int i = 0; i < 20; i++) {
    const long long begin = now();
    pthread_mutex_lock(&board);
    waited[me] += now() - begin;
    nanosleep(&time, NULL);
    pthread_mutex_unlock(&board);
    for (int k = 0; k < 100; k++)
      MPI_Sendrecv(&i, 1, MPI_INT, other, me, &got, 1, MPI_INT, other, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int rank, level, numbers[2] = {0, 1};
  pthread_t threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level != MPI_THREAD_MULTIPLE) return 5;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = rank ^ 1;
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, play, &numbers[i]);
  const long long begin = now();
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d %lld %lld\n", rank, waited[0] + waited[1], now() - begin);
  MPI_Finalize();
  return 0;
}
