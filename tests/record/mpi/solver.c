/* A solver with one of everything: 60 time steps of halo exchange, a residual, polls; output every 20 steps. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int rank, size;

static void exchange(double *cell, int tag) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request requests[2];
  double halo = 0;
  MPI_Irecv(&halo, 1, MPI_DOUBLE, left, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(cell, 1, MPI_DOUBLE, right, tag, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  *cell = 0.5 * (*cell + halo);
}

static double residual(double cell) {
  double sum;
  MPI_Allreduce(&cell, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static void poll_neighbour(int step) { /* even ranks answer late, so that odd ones poll in vain */
  int other = rank ^ 1, flag = 0, got = 0, count, index;
  MPI_Request request;
  if (other >= size) return;
  if (rank % 2 == 0) {
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&step, 1, MPI_INT, other, 6, MPI_COMM_WORLD);
    MPI_Send(&step, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
    return;
  }
  MPI_Irecv(&got, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);  /* nobody has sent anything yet */
  MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE);
  MPI_Send(&step, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  for (flag = 0; !flag;) MPI_Iprobe(other, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Recv(&got, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  double cell, all[64], sum = 0;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  cell = rank;
  for (int step = 0; step < 60; step++) {
    usleep(2000); /* what it computes */
    exchange(&cell, 1);
    exchange(&cell, 2);
    sum = residual(cell);
    poll_neighbour(step);
    if (step % 20 == 19) {
      MPI_Gather(&cell, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("step %d: %.6f\n", step, sum);
    }
  }
  MPI_Request pair[2]; /* persistent */
  double incoming = 0;
  MPI_Send_init(&cell, 1, MPI_DOUBLE, (rank + 1) % size, 9, MPI_COMM_WORLD, &pair[0]);
  MPI_Recv_init(&incoming, 1, MPI_DOUBLE, (rank + size - 1) % size, 9, MPI_COMM_WORLD, &pair[1]);
  for (int i = 0; i < 5; i++) {
    MPI_Startall(2, pair);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&pair[0]);
  MPI_Request_free(&pair[1]);
  MPI_Request reduction;
  MPI_Iallreduce(&cell, &sum, 1, MPI_DOUBLE, MPI_SUM, half, &reduction);
  MPI_Wait(&reduction, MPI_STATUS_IGNORE);
  MPI_Bcast(&sum, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Sendrecv(&cell, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, &incoming, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, half, MPI_STATUS_IGNORE);
  MPI_Comm_free(&half);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %.6f\n", size, sum);
  MPI_Finalize();
  return rank == 0 ? 3 : 0; /* some launchers kill the others as soon as one ends like this */
}
