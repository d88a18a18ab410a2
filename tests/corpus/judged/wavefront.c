/* Discrete ordinates (after SNAP and Sweep3D): each iteration sweeps a grid of 2 x 2 ranks from its four corners, plane
 * by plane, then tests for convergence. The step is an iteration.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N 24      /* cells of a rank in x and y */
#define PLANES 12 /* in z */
#define ITERATIONS 40

static double flux[PLANES][N][N], source[PLANES][N][N];
static double from_x[N], from_y[N];
static long long begins[ITERATIONS];
static MPI_Comm grid;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void plane(int z, int sx, int sy) {
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++) {
      int i = sx > 0 ? a : N - 1 - a, j = sy > 0 ? b : N - 1 - b;
      double value = (source[z][i][j] + from_x[j] + from_y[i]) / 3.2;
      flux[z][i][j] += 0.25 * value;
      from_x[j] = from_y[i] = value;
    }
}

static void sweep(int sx, int sy) {
  int before_x, after_x, before_y, after_y;
  MPI_Cart_shift(grid, 0, sx, &before_x, &after_x);
  MPI_Cart_shift(grid, 1, sy, &before_y, &after_y);
  for (int z = 0; z < PLANES; z++) {
    memset(from_x, 0, sizeof from_x);
    memset(from_y, 0, sizeof from_y);
    MPI_Recv(from_x, N, MPI_DOUBLE, before_x, z, grid, MPI_STATUS_IGNORE);
    MPI_Recv(from_y, N, MPI_DOUBLE, before_y, z, grid, MPI_STATUS_IGNORE);
    plane(z, sx, sy);
    MPI_Send(from_x, N, MPI_DOUBLE, after_x, z, grid);
    MPI_Send(from_y, N, MPI_DOUBLE, after_y, z, grid);
  }
}

static double scatter(void) {
  double mine = 0, most;
  for (int z = 0; z < PLANES; z++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        double next = 1 + 0.5 * flux[z][i][j];
        mine = fmax(mine, fabs(next - source[z][i][j]));
        source[z][i][j] = next;
        flux[z][i][j] = 0;
      }
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, grid);
  return most;
}

int main(int argc, char** argv) {
  int rank, sizes[2] = {2, 2}, periodic[2] = {0, 0};
  MPI_Init(&argc, &argv);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periodic, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    begins[iteration] = now_ns();
    sweep(1, 1);
    sweep(-1, 1);
    sweep(1, -1);
    sweep(-1, -1);
    double change = scatter();
    if (rank == 0 && iteration % 10 == 9) printf("iteration %d: change %g\n", iteration + 1, change);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < ITERATIONS; i++) fprintf(out, "iteration %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
