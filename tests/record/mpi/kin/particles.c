// Particles that move between ranks, kin of CoMD and LAMMPS: messages of sizes that the receiver learns by a probe.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, own = 1000, moved = 0;
  static double leaving[2][4000], coming[4000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int neighbours[2] = {(rank + size - 1) % size, (rank + 1) % size};
  unsigned seed = 3u + (unsigned)rank;
  for (int step = 0; step < 80; step++) {
    MPI_Request requests[2];
    for (int side = 0; side < 2; side++) {
      seed = seed * 1103515245u + 12345u;
      int count = (int)(seed >> 16) % (own / 4 + 1);  // at times none
      own -= count;
      for (int i = 0; i < 3 * count; i++) leaving[side][i] = i;
      MPI_Isend(leaving[side], 3 * count, MPI_DOUBLE, neighbours[side], side, MPI_COMM_WORLD, &requests[side]);
    }
    for (int side = 0; side < 2; side++) {
      MPI_Status status;
      int count;
      MPI_Probe(neighbours[1 - side], side, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_DOUBLE, &count);
      MPI_Recv(coming, count, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      own += count / 3, moved += count / 3;
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  int all;
  MPI_Reduce(&own, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d of %d particles are there\n", all, 1000 * size);
  MPI_Finalize();
  return moved == 0;
}
