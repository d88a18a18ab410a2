// Regions that compute, on a machine that other programs keep busy: `even` (a loop whose parts go to who is ready),
// `tasks` (even ones) or `uneven` (the first thread has three times the work of the other).
#include <omp.h>
#include <string.h>

enum { PARTS = 32, STEPS = 30 };
static volatile double sink;

static void compute(int units) {
  double x = sink;
  for (int i = 0; i < units * 10000; i++) x = x * 0.999 + i;
  sink = x;
}

static void even(void) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < PARTS; i++) compute(10);
}

static void tasks(void) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < PARTS; i++)
#pragma omp task
    compute(10);
}

static void uneven(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < PARTS; i++) compute(i < PARTS / 2 ? 15 : 5);
}

int main(int count, char** words) {
  omp_set_num_threads(2);
  for (int step = 0; count > 1 && step < STEPS; step++)
    !strcmp(words[1], "even") ? even() : !strcmp(words[1], "tasks") ? tasks() : uneven();
  return 3;
}
