/* A genetic algorithm on islands: the best value is reduced in every generation, the best genes travel every fifth.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 200

static int rank, size, steps;
static long long begins[MOST];

static void mark(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  begins[steps++] = t.tv_sec * 1000000000LL + t.tv_nsec;
}

#define GENES 32
#define OWN 20

static double genes[OWN][GENES];

static double fitness(const double* g) {
  double sum = 0;
  for (int i = 0; i < GENES; i++) sum += g[i] * g[i] - 10 * cos(6.28 * g[i]);
  return sum;
}

static void run(void) {
  unsigned seed = rank + 1;
  double arrived[GENES], best, all;
  for (int i = 0; i < OWN * GENES; i++) genes[i / GENES][i % GENES] = rand_r(&seed) / (double)RAND_MAX - 0.5;
  for (int generation = 0; generation < MOST; generation++) {
    mark();
    int first = 0, last = 0;
    for (int k = 0; k < 20; k++) {
      for (int i = 0; i < OWN; i++) {
        if (fitness(genes[i]) < fitness(genes[first])) first = i;
        if (fitness(genes[i]) > fitness(genes[last])) last = i;
      }
      for (int g = 0; g < GENES; g++) genes[last][g] = genes[first][g] + 0.01 * (rand_r(&seed) % 100 - 50);
    }
    best = fitness(genes[first]);
    MPI_Allreduce(&best, &all, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    if (generation % 5 == 4) {
      MPI_Sendrecv(genes[first], GENES, MPI_DOUBLE, (rank + 1) % size, 0, arrived, GENES, MPI_DOUBLE,
                   (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int g = 0; g < GENES; g++) genes[last][g] = arrived[g];
    }
  }
  if (rank == 0) printf("best %g\n", all);
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
