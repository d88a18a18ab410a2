/* Heat in a plate, implicit in time: a conjugate gradient solver on a grid cut in two dimensions. Each iteration exchanges four halos
   (columns as a derived data type) and reduces two dot products; every fifth step rank 0 gathers and writes how warm each part is. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 48, STEPS = 10 };
static MPI_Comm grid;
static MPI_Datatype column;
static int north, south, west, east, rows, columns, width;

static double *plate(void) { return calloc((size_t)(rows + 2) * (size_t)width, sizeof(double)); }

static void exchange(double *a) {
  MPI_Request r[8];
  MPI_Irecv(a + 1, columns, MPI_DOUBLE, north, 1, grid, &r[0]);
  MPI_Irecv(a + (rows + 1) * width + 1, columns, MPI_DOUBLE, south, 2, grid, &r[1]);
  MPI_Irecv(a + width, 1, column, west, 3, grid, &r[2]);
  MPI_Irecv(a + width + columns + 1, 1, column, east, 4, grid, &r[3]);
  MPI_Isend(a + rows * width + 1, columns, MPI_DOUBLE, south, 1, grid, &r[4]);
  MPI_Isend(a + width + 1, columns, MPI_DOUBLE, north, 2, grid, &r[5]);
  MPI_Isend(a + width + columns, 1, column, east, 3, grid, &r[6]);
  MPI_Isend(a + width + 1, 1, column, west, 4, grid, &r[7]);
  MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
}

static double dot(const double *a, const double *b) {
  double sum = 0, all;
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j <= columns; j++) sum += a[i * width + j] * b[i * width + j];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
  return all;
}

static void apply(double *a, double *out) { /* (1 + 4k) a - k (neighbours), k = 0.8 */
  exchange(a);
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j <= columns; j++) {
      int at = i * width + j;
      out[at] = 4.2 * a[at] - 0.8 * (a[at - 1] + a[at + 1] + a[at - width] + a[at + width]);
    }
}

static int solve(double *x, double *r, double *p, double *q) { /* x: right-hand side, then the solution */
  int n = (rows + 2) * width, iterations = 0;
  apply(x, q);
  for (int i = 0; i < n; i++) r[i] = p[i] = x[i] - q[i];
  for (double rr = dot(r, r), next; rr > 1e-12 && iterations < 200; rr = next, iterations++) {
    apply(p, q);
    double alpha = rr / dot(p, q);
    for (int i = 0; i < n; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i];
    next = dot(r, r);
    for (int i = 0; i < n; i++) p[i] = r[i] + next / rr * p[i];
  }
  return iterations;
}

int main(int argc, char **argv) {
  int size, rank, dims[2] = {0, 0}, periodic[2] = {0, 0}, at[2], iterations = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 1, &grid);
  MPI_Comm_rank(grid, &rank), MPI_Cart_coords(grid, rank, 2, at);
  MPI_Cart_shift(grid, 0, 1, &north, &south), MPI_Cart_shift(grid, 1, 1, &west, &east);
  rows = N / dims[0], columns = N / dims[1], width = columns + 2;
  MPI_Type_vector(rows, 1, width, MPI_DOUBLE, &column), MPI_Type_commit(&column);
  double *x = plate(), *r = plate(), *p = plate(), *q = plate(), *parts = calloc((size_t)size, sizeof(double));
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j <= columns; j++) x[i * width + j] = sin(3.0 * (at[0] * rows + i)) + cos(2.0 * (at[1] * columns + j));
  for (int step = 0; step < STEPS; step++) {
    iterations += solve(x, r, p, q);
    if (step % 5 == 4) {
      double warm = 0;
      for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) warm += x[i * width + j];
      MPI_Gather(&warm, 1, MPI_DOUBLE, parts, 1, MPI_DOUBLE, 0, grid);
      for (int i = 1; rank == 0 && i < size; i++) parts[0] += parts[i];
      if (rank == 0) printf("step %d: %.6f after %d iterations\n", step, parts[0], iterations);
    }
  }
  MPI_Type_free(&column);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
