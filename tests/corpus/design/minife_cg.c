/* Conjugate gradients on a finite-element-like matrix, rows distributed over the ranks (after miniFE): halo exchange,
 * two dot products an iteration, a line of progress every 20.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PLANE = 24 * 24, PLANES = 8, ROWS = PLANE * PLANES, MOST = 99 };

static int rank, size;
static long long begins[MOST];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void exchange(double* x) {
  MPI_Request requests[4];
  int n = 0;
  if (rank > 0) MPI_Irecv(x - PLANE, PLANE, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, &requests[n++]);
  if (rank < size - 1) MPI_Irecv(x + ROWS, PLANE, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD, &requests[n++]);
  if (rank > 0) MPI_Isend(x, PLANE, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, &requests[n++]);
  if (rank < size - 1) MPI_Isend(x + ROWS - PLANE, PLANE, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD, &requests[n++]);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static double dot(const double* a, const double* b) {
  double mine = 0, sum;
  for (int i = 0; i < ROWS; i++) mine += a[i] * b[i];
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static void multiply(double* x, double* y) {
  exchange(x);
  for (int i = 0; i < ROWS; i++) {
    int column = i % 24;
    double around = x[i - PLANE] + x[i + PLANE];
    if (column > 0) around += x[i - 1];
    if (column < 23) around += x[i + 1];
    y[i] = 6.1 * x[i] - around;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *x = calloc(ROWS, sizeof(double)), *r = calloc(ROWS, sizeof(double)), *q = calloc(ROWS, sizeof(double));
  double* p = (double*)calloc(ROWS + 2 * PLANE, sizeof(double)) + PLANE;
  for (int i = 0; i < ROWS; i++) p[i] = r[i] = 1.0 + 0.001 * ((i * 37 + rank) % 101);
  double rho = dot(r, r), first = rho;
  int steps = 0;
  while (steps < MOST && rho > 1e-60 * first) {
    begins[steps++] = now_ns();
    multiply(p, q);
    double alpha = rho / dot(p, q);
    for (int i = 0; i < ROWS; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    double before = rho;
    rho = dot(r, r);
    for (int i = 0; i < ROWS; i++) p[i] = r[i] + rho / before * p[i];
    if (rank == 0 && steps % 20 == 0) printf("iteration %d: residual %g\n", steps, sqrt(rho));
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < steps; i++) fprintf(out, "iteration %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
