/* Two ranks start two more: messages and collectives between both worlds, and each world's own. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Comm parent, others, all;
  int rank, values[5] = {0}, codes[2];
  double own = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  const int spawned = parent != MPI_COMM_NULL;
  if (spawned) others = parent;
  else MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, codes);
  for (int i = 0; i < 2 + spawned; i++) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; !spawned && rank == 0 && i < 2; i++) MPI_Send(values, 5, MPI_INT, i, 7, others);
  if (spawned) MPI_Recv(values, 5, MPI_INT, 0, 7, others, MPI_STATUS_IGNORE);
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, others);
  MPI_Intercomm_merge(others, spawned, &all);
  MPI_Bcast(values, 1, MPI_INT, 0, all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
  if (!spawned && rank == 0) printf("%g\n", sum);
  MPI_Finalize();
  return 0;
}
