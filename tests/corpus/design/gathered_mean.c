/* Pi by chance: every rank sends its mean to the first one in every round; the sum is told to all every sixth.
 *
 * ranks: 4
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 60

static int rank, size, steps;
static long long begins[MOST];

static void mark(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  begins[steps++] = t.tv_sec * 1000000000LL + t.tv_nsec;
}

#define CHUNK 3000

static double sample(unsigned* seed) {
  double hits = 0;
  for (int i = 0; i < CHUNK; i++) {
    double x = rand_r(seed) / (RAND_MAX + 1.0), y = rand_r(seed) / (RAND_MAX + 1.0);
    hits += x * x + y * y <= 1;
  }
  return hits / CHUNK;
}

static void run(void) {
  unsigned seed = rank + 1;
  double sum = 0;
  for (int round = 0; round < MOST; round++) {
    mark();
    double value = 4 * sample(&seed);
    if (rank) {
      MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    } else {
      sum += value;
      for (int other = 1; other < size; other++) {
        MPI_Recv(&value, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += value;
      }
    }
    if (round % 6 == 5) {
      MPI_Bcast(&sum, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("%d: %g\n", round + 1, sum / (round + 1) / size);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  run();
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < steps; i++) fprintf(out, "step %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
