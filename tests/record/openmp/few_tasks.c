// In each step one thread makes two tasks of 3 ms and one of 15 ms, which makes one of 5 ms and waits for it: the
// others have none meanwhile. Prints how long threads at the barrier, or waiting for tasks, had none while others ran
// theirs, in ns, by omp_get_wtime. Work is time that passes: on a machine with few cores threads do not slow each
// other down.
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 4, TASKS = 5, STEPS = 10 };
static struct {
  int thread;
  double begin, end;
} ran[TASKS];
static double arrived[THREADS];

static void work(int number, int ms) {
  struct timespec time = {0, ms * 1000000L};
  ran[number].thread = omp_get_thread_num();
  ran[number].begin = omp_get_wtime();
  nanosleep(&time, 0);
  ran[number].end = omp_get_wtime();
}

static void step(void) {
#pragma omp parallel
  {
#pragma omp single
    {
#pragma omp task
      {
        work(0, 15);
#pragma omp task
        work(1, 5);
#pragma omp taskwait
        work(2, 1);
      }
      for (int i = 3; i < TASKS; i++)
#pragma omp task firstprivate(i)
        work(i, 3);
      arrived[omp_get_thread_num()] = omp_get_wtime();
#pragma omp taskwait
    }
  }
}

// How long any task ran at a time that is not before `from`, in none of them on `thread`.
static double others(double from, int thread) {
  double sum = 0, at = from;
  for (;;) {  // from one begin or end to the next
    double next = 1e300;
    int any = 0, own = 0;
    for (int i = 0; i < TASKS; i++) {
      const double edges[] = {ran[i].begin, ran[i].end};
      for (int k = 0; k < 2; k++)
        if (edges[k] > at && edges[k] < next) next = edges[k];
      const int runs = ran[i].begin <= at && at < ran[i].end;
      any |= runs, own |= runs && ran[i].thread == thread;
    }
    if (next == 1e300) return sum;
    if (any && !own) sum += next - at;
    at = next;
  }
}

int main(void) {
  double sum = 0;
  omp_set_num_threads(THREADS);
  for (int i = 0; i < STEPS; i++) {
    const double begin = omp_get_wtime();
    for (int thread = 0; thread < THREADS; thread++) arrived[thread] = begin;
    step();
    for (int thread = 0; thread < THREADS; thread++) sum += others(arrived[thread], thread);
  }
  printf("%.0f\n", sum * 1e9);
  return 3;
}
