// Steps of computation that ends with an all-reduce: `uneven STEPS MOST LEAST` computes for MOST us on the last rank, and
// for LEAST us on the others. Each rank writes what it computed, and how long all steps took, by the machine's clock.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 100;
  int rank, size;
  double part = 1, whole;
  char name[40];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long us = argc > 3 ? atol(argv[rank == size - 1 ? 2 : 3]) : 1000;
  snprintf(name, sizeof name, "computed-%d.txt", rank);
  FILE* out = fopen(name, "w");
  for (int step = 0; step < steps; step++) {
    const long long begin = now();
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);  // stands for computation: ranks that share a core do not disturb each other
    const long long computed = now();
    MPI_Allreduce(&part, &whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    fprintf(out, "%lld %lld\n", computed - begin, now() - computed);
  }
  fclose(out);
  MPI_Finalize();
  return 0;
}
