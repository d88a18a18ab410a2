/* Geometric multigrid in one dimension: V-cycles over six grids, two smoothing sweeps on each way, the residual's norm
 * after every cycle. The step is a cycle.
 *
 * ranks: 8
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LEVELS 6
#define FINEST 1024 /* points of one rank */
#define CYCLES 24

static int rank, size;
static double *u[LEVELS], *f[LEVELS], *r[LEVELS];
static long long begins[CYCLES];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int points(int level) { return FINEST >> level; }

/* The last point of the last rank is the boundary, on every grid. */
static int inner(int level) { return points(level) - (rank == size - 1); }

static void halo(double* a, int n) {
  int below = rank ? rank - 1 : MPI_PROC_NULL, above = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Request requests[4];
  MPI_Irecv(&a[0], 1, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&a[n + 1], 1, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&a[1], 1, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&a[n], 1, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void smooth(int level, int sweeps) {
  int n = inner(level);
  for (int sweep = 0; sweep < sweeps; sweep++) {
    halo(u[level], points(level));
    for (int i = 1; i <= n; i++) r[level][i] = 0.5 * (u[level][i - 1] + u[level][i + 1] + f[level][i]);
    for (int i = 1; i <= n; i++) u[level][i] += 2.0 / 3 * (r[level][i] - u[level][i]);
  }
}

static void residual(int level) {
  int n = inner(level);
  halo(u[level], points(level));
  for (int i = 1; i <= n; i++) r[level][i] = f[level][i] - 2 * u[level][i] + u[level][i - 1] + u[level][i + 1];
}

static void restrict_to(int coarse) {
  halo(r[coarse - 1], points(coarse - 1));
  for (int i = 1; i <= inner(coarse); i++) {
    const double* fine = &r[coarse - 1][2 * i];
    f[coarse][i] = fine[-1] + 2 * fine[0] + fine[1];
    u[coarse][i] = 0;
  }
}

static void prolong_from(int coarse) {
  halo(u[coarse], points(coarse));
  for (int i = 1; i <= points(coarse); i++) {
    u[coarse - 1][2 * i] += u[coarse][i];
    u[coarse - 1][2 * i - 1] += 0.5 * (u[coarse][i] + u[coarse][i - 1]);
  }
}

static double cycle(void) {
  for (int level = 0; level < LEVELS - 1; level++) {
    smooth(level, 2);
    residual(level);
    restrict_to(level + 1);
  }
  smooth(LEVELS - 1, 8);
  for (int level = LEVELS - 1; level > 0; level--) {
    prolong_from(level);
    smooth(level - 1, 2);
  }
  residual(0);
  double mine = 0, all;
  for (int i = 1; i <= FINEST; i++) mine += r[0][i] * r[0][i];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int level = 0; level < LEVELS; level++) {
    u[level] = calloc(points(level) + 2, sizeof(double));
    f[level] = calloc(points(level) + 2, sizeof(double));
    r[level] = calloc(points(level) + 2, sizeof(double));
  }
  for (int i = 1; i <= FINEST; i++) f[0][i] = 1e-3 * sin(0.01 * (rank * FINEST + i));
  for (int number = 0; number < CYCLES; number++) {
    begins[number] = now_ns();
    double norm = cycle();
    if (rank == 0 && number % 10 == 0) printf("cycle %d: residual %g\n", number, norm);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < CYCLES; i++) fprintf(out, "cycle %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
