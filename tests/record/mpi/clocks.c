// What the true time was around barriers and messages: every rank writes its own file, with the machine's clock, which
// no variable shifts. One thing at a time, some ms apart.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE* out;

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 100;
  int rank, size, number = 0;
  char name[40];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(name, sizeof name, "truth-%d.txt", rank);
  out = fopen(name, "w");
  for (int i = 0; i < rounds; i++) {
    long long before = now();
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(out, "MPI_Barrier %lld %lld\n", before, now());
    before = now();  // around the ring, and back
    MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    fprintf(out, "MPI_Send %lld %lld\n", before, now());
    before = now();
    MPI_Recv(&number, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fprintf(out, "MPI_Recv %lld %lld\n", before, now());
    MPI_Send(&number, 1, MPI_INT, (rank + size - 1) % size, 2, MPI_COMM_WORLD);
    MPI_Recv(&number, 1, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
  }
  fclose(out);
  MPI_Finalize();
  return 0;
}
