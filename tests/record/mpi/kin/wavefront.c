// A sweep over a plane from one corner, kin of Sweep3D and NAS LU: Cartesian neighbours, a column as a type of its own,
// persistent requests in one direction.
#include <mpi.h>
#include <stdio.h>

enum { N = 24 };

int main(int argc, char** argv) {
  int rank, size, dims[2] = {0, 0}, periods[2] = {0, 0}, north, south, west, east;
  double plane[N + 1][N + 1] = {{0}}, down[N + 1];
  MPI_Comm grid;
  MPI_Datatype column;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_shift(grid, 0, 1, &north, &south);
  MPI_Cart_shift(grid, 1, 1, &west, &east);
  MPI_Type_vector(N, 1, N + 1, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Request pass[2];
  MPI_Recv_init(&plane[0][1], N, MPI_DOUBLE, north, 1, grid, &pass[0]);
  MPI_Send_init(down, N, MPI_DOUBLE, south, 1, grid, &pass[1]);
  for (int step = 0; step < 50; step++) {
    MPI_Start(&pass[0]);
    MPI_Recv(&plane[1][0], 1, column, west, 2, grid, MPI_STATUS_IGNORE);
    MPI_Wait(&pass[0], MPI_STATUS_IGNORE);
    for (int i = 1; i <= N; i++)
      for (int k = 1; k <= N; k++) plane[i][k] = 0.5 * (plane[i - 1][k] + plane[i][k - 1]) + 1e-3 * step;
    MPI_Wait(&pass[1], MPI_STATUS_IGNORE);
    for (int k = 0; k < N; k++) down[k] = plane[N][k + 1];
    MPI_Start(&pass[1]);
    MPI_Send(&plane[1][N], 1, column, east, 2, grid);
  }
  MPI_Wait(&pass[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&pass[0]);
  MPI_Request_free(&pass[1]);
  double most;
  MPI_Reduce(&plane[N][N], &most, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
  if (rank == 0) printf("sweeps of %d ranks\n", size);
  MPI_Type_free(&column);
  MPI_Finalize();
  return 0;
}
