/* Heat in a plate: Jacobi iterations on rows that are divided among the ranks, with a halo exchange and the residual.

       mpicc -g -O2 -o jacobi jacobi.c -lm
       mpirun -n 4 ./jacobi [iterations] [rows] [columns]

   The rows are divided badly: what is left over after whole blocks of 128 rows all goes to the last rank. */

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 128, REPORT_EVERY = 50 };

static int rank, size, rows, columns;

/* Sends the outer rows to the neighbours, and receives theirs. */
static void exchange_halo(double (*plate)[columns]) {
  int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(plate[1], columns, MPI_DOUBLE, above, 0, plate[rows + 1], columns, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(plate[rows], columns, MPI_DOUBLE, below, 1, plate[0], columns, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Computes the next state of the rows of this rank; returns the sum of the squares of the changes. */
static double sweep(double (*plate)[columns], double (*next)[columns]) {
  double changed = 0;
  for (int i = 1; i <= rows; ++i) {
    for (int j = 1; j < columns - 1; ++j) {
      next[i][j] = 0.25 * (plate[i - 1][j] + plate[i + 1][j] + plate[i][j - 1] + plate[i][j + 1]);
      changed += (next[i][j] - plate[i][j]) * (next[i][j] - plate[i][j]);
    }
  }
  return changed;
}

/* The change of the whole plate, the same on every rank. */
static double residual(double changed) {
  double total = 0;
  MPI_Allreduce(&changed, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(total);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int iterations = argc > 1 ? atoi(argv[1]) : 300, all_rows = argc > 2 ? atoi(argv[2]) : 1000;
  columns = argc > 3 ? atoi(argv[3]) : 2000;
  rows = all_rows / (size * BLOCK) * BLOCK;
  if (rank == size - 1) rows = all_rows - (size - 1) * rows;

  double (*plate)[columns] = calloc(rows + 2, sizeof *plate), (*next)[columns] = calloc(rows + 2, sizeof *next);
  for (int j = 0; rank == 0 && j < columns; ++j) plate[0][j] = next[0][j] = 100; /* the hot edge */

  for (int step = 1; step <= iterations; ++step) {
    exchange_halo(plate);
    double change = residual(sweep(plate, next));
    double (*swapped)[columns] = plate;
    plate = next;
    next = swapped;
    if (rank == 0 && step % REPORT_EVERY == 0) printf("iteration %d: residual %.4f\n", step, change);
  }
  free(plate);
  free(next);
  MPI_Finalize();
}
