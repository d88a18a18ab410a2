/* Two threads of each rank talk to the same threads of the other rank at once: 300 messages each way and thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static int other;

static void *talk(void *number) {
  int tag = *(int *)number, got;
  for (int i = 0; i < 300; i++)
    MPI_Sendrecv(&i, 1, MPI_INT, other, tag, &got, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

int main(int argc, char **argv) {
  int rank, level, tags[2] = {1, 2};
  pthread_t threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = rank ^ 1;
  for (int i = 0; level == MPI_THREAD_MULTIPLE && i < 2; i++) pthread_create(&threads[i], NULL, talk, &tags[i]);
  for (int i = 0; level == MPI_THREAD_MULTIPLE && i < 2; i++) pthread_join(threads[i], NULL);
  printf("level %d\n", level == MPI_THREAD_MULTIPLE);
  MPI_Finalize();
  return 0;
}
