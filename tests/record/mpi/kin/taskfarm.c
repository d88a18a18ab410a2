// A master that deals out tasks, kin of every parameter study: receives from whoever comes, of any tag.
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 300, WORK = 1, STOP = 2, MOST = 50 };

int main(int argc, char** argv) {
  int rank, size;
  double result[MOST] = {0}, sum = 0;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) {
    MPI_Send(NULL, 0, MPI_DOUBLE, 0, STOP + 1, MPI_COMM_WORLD);  // ready
    for (int task; MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status), status.MPI_TAG == WORK;) {
      const int count = 1 + task % MOST;
      for (int i = 0; i < count; i++) result[i] = task;
      MPI_Send(result, count, MPI_DOUBLE, 0, STOP + 2 + task % 2, MPI_COMM_WORLD);
    }
  } else {
    MPI_Request asked;
    for (int task = 0, stopped = 0; stopped < size - 1;) {
      MPI_Irecv(result, MOST, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &asked);
      int which;
      MPI_Waitany(1, &asked, &which, &status);
      if (status.MPI_TAG > STOP + 1) sum += result[0];
      stopped += task == TASKS;
      MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, task < TASKS ? WORK : STOP, MPI_COMM_WORLD);
      task += task < TASKS;
    }
    printf("sum %.0f\n", sum);
  }
  MPI_Finalize();
  return 0;
}
