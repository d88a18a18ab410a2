// A matrix in blocks on a grid of ranks, kin of NAS FT and Cannon's product: all-to-all in rows, shifts in columns.
#include <mpi.h>
#include <stdio.h>

enum { BLOCK = 16 };

int main(int argc, char** argv) {
  int rank, size, dims[2] = {0, 0}, wide, high;
  static double block[64 * BLOCK], turned[64 * BLOCK];
  MPI_Comm row, column;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Comm_split(MPI_COMM_WORLD, rank / dims[1], rank, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank % dims[1], size - rank, &column);  // from below
  MPI_Comm_size(row, &wide);
  MPI_Comm_size(column, &high);
  int place;
  MPI_Comm_rank(column, &place);
  for (int i = 0; i < 64 * BLOCK; i++) block[i] = rank + i;
  for (int step = 0; step < 40; step++) {
    MPI_Alltoall(block, BLOCK, MPI_DOUBLE, turned, BLOCK, MPI_DOUBLE, row);
    MPI_Sendrecv_replace(turned, BLOCK * (1 + step % 3), MPI_DOUBLE, (place + 1) % high, step, (place + high - 1) % high,
                         step, column, MPI_STATUS_IGNORE);
    for (int i = 0; i < wide * BLOCK; i++) block[i] = 0.5 * turned[i] + 1;
  }
  double sum;
  MPI_Reduce(block, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("grid of %d x %d\n", dims[0], dims[1]);
  MPI_Comm_free(&row);
  MPI_Comm_free(&column);
  MPI_Finalize();
  return 0;
}
