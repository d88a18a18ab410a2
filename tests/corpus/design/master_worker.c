/* A master hands out rows of the Mandelbrot set, workers compute them: the master's step is a result that comes in, a
 * worker's a task.
 *
 * ranks: 4
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TASKS 180
#define WIDTH 256
enum { WORK = 1, STOP = 2 };

static int steps;
static long long begins[TASKS + 1];

static void mark(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  begins[steps++] = t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void row(int y, int* out) {
  for (int x = 0; x < WIDTH; x++) {
    double a = x * 3.0 / WIDTH - 2.1, b = y * 2.4 / TASKS - 1.2, re = 0, im = 0;
    int n = 0;
    for (; n < 200 && re * re + im * im < 4; n++) {
      double next = re * re - im * im + a;
      im = 2 * re * im + b;
      re = next;
    }
    out[x] = n;
  }
}

static void master(int size) {
  int result[WIDTH], next = 0, busy = 0;
  long long total = 0;
  for (int worker = 1; worker < size && next < TASKS; worker++, next++, busy++)
    MPI_Send(&next, 1, MPI_INT, worker, WORK, MPI_COMM_WORLD);
  while (busy > 0) {
    MPI_Status status;
    mark();
    MPI_Recv(result, WIDTH, MPI_INT, MPI_ANY_SOURCE, WORK, MPI_COMM_WORLD, &status);
    for (int x = 0; x < WIDTH; x++) total += result[x];
    if (next < TASKS) {
      MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, WORK, MPI_COMM_WORLD);
      next++;
    } else {
      MPI_Send(&next, 0, MPI_INT, status.MPI_SOURCE, STOP, MPI_COMM_WORLD);
      busy--;
    }
  }
  printf("%lld iterations\n", total);
}

static void worker(void) {
  int y, result[WIDTH];
  for (;;) {
    MPI_Status status;
    mark();
    MPI_Recv(&y, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == STOP) return;
    row(y, result);
    MPI_Send(result, WIDTH, MPI_INT, 0, WORK, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0)
    master(size);
  else
    worker();
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < steps; i++) fprintf(out, "task %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
