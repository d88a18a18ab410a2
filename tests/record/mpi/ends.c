/* How a rank ends: `ends kill`, `ends abort`. Rank 1 prints what it has done by then, and ends at once. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 700; i++) MPI_Barrier(MPI_COMM_SELF);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    if (!strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    kill(getpid(), SIGKILL);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* nobody comes */
  MPI_Finalize();
  return 0;
}
