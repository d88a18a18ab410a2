// A program of OpenMP with a planted cause: `imbalance`, `critical`, `serial` or `tiny` (regions without work), so many
// steps, and by how much to divide all work. It measures by omp_get_wtime, and prints for each step and thread: the
// thread, ns at the barrier until the last has come, ns of its request for the critical section while others are in
// there. Work is time that passes: on a machine with few cores threads do not slow each other down.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4 };
static double divisor = 1;
static double arrived[THREADS], asked[THREADS], entered[THREADS], left[THREADS];

static void work(double ms) {
  struct timespec left = {0, (long)(ms / divisor * 1e6)};
  nanosleep(&left, 0);
}

static double overlap(int i, int k) {
  double begin = asked[i] > entered[k] ? asked[i] : entered[k], end = entered[i] < left[k] ? entered[i] : left[k];
  return i != k && end > begin ? end - begin : 0;
}

static void print_step(void) {
  double last = 0;
  for (int i = 0; i < THREADS; i++) last = arrived[i] > last ? arrived[i] : last;
  for (int i = 0; i < THREADS; i++) {
    double locked = 0;
    for (int k = 0; k < THREADS; k++) locked += overlap(i, k);
    printf("%d %.0f %.0f\n", i, (last - arrived[i]) * 1e9, locked * 1e9);
  }
}

static void imbalance(void) {
#pragma omp parallel
  {
    work(omp_get_thread_num() == 2 ? 20 : 5);
    arrived[omp_get_thread_num()] = omp_get_wtime();
  }
}

static void critical(void) {
#pragma omp parallel
  {
    int me = omp_get_thread_num();
    asked[me] = omp_get_wtime();
#pragma omp critical(account)
    {
      entered[me] = omp_get_wtime();
      work(5);
      left[me] = omp_get_wtime();
    }
    arrived[me] = omp_get_wtime();
  }
}

static void serial(void) {
  work(20);
#pragma omp parallel
  {
    work(2);
    arrived[omp_get_thread_num()] = omp_get_wtime();
  }
}

static void tiny(void) {
#pragma omp parallel num_threads(2)
  arrived[omp_get_thread_num()]++;
}

int main(int argc, char** argv) {
  omp_set_num_threads(THREADS);
  if (argc > 3) divisor = atof(argv[3]);
  const int steps = argc > 2 ? atoi(argv[2]) : 10;
  if (!strcmp(argv[1], "tiny")) {
    for (int i = 0; i < steps; i++) tiny();
    return 3;
  }
  for (int i = 0; i < steps; i++, print_step())
    if (!strcmp(argv[1], "imbalance"))
      imbalance();
    else if (!strcmp(argv[1], "critical"))
      critical();
    else
      serial();
  return 3;
}
