// A loop, tasks that all run at a barrier, and a lock. It prints: tasks, what they took in ns by omp_get_wtime,
// loops (one for each thread), and how often the lock was held.
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 4, TASKS = 40 };

static void work(double ms) {
  struct timespec left = {0, (long)(ms * 1e6)};
  nanosleep(&left, 0);
}

int main(void) {
  double took[TASKS], total = 0;
  int held = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_num_threads(THREADS);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (int i = 0; i < THREADS; i++) work(1);
#pragma omp single nowait
    for (int i = 0; i < TASKS; i++)
#pragma omp task firstprivate(i) shared(took)
    {
      double begin = omp_get_wtime();
      work(2);
      took[i] = omp_get_wtime() - begin;
    }
#pragma omp barrier
    omp_set_lock(&lock);
    held++;
    omp_unset_lock(&lock);
  }
  for (int i = 0; i < TASKS; i++) total += took[i];
  printf("%d %.0f %d %d\n", TASKS, total * 1e9, THREADS, held);
  return 3;
}
