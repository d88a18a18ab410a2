/* A pipeline: rank 0 makes blocks of data, every further rank filters them and hands them on, the last one sums up.
 * The step is a block.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 200
#define SIZE 2048
#define REPORT 50

static long long begins[BLOCKS];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void make(double* block, int number) {
  for (int i = 0; i < SIZE; i++) block[i] = sin(0.01 * (number * SIZE + i));
}

static void filter(double* block, int strength) {
  for (int pass = 0; pass < strength; pass++)
    for (int i = 1; i < SIZE; i++) block[i] = 0.5 * (block[i] + block[i - 1]);
}

static double sum(const double* block) {
  double total = 0;
  for (int i = 0; i < SIZE; i++) total += block[i];
  return total;
}

int main(int argc, char** argv) {
  static double buffer[2][SIZE];
  int rank, size;
  double total = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Request sending = MPI_REQUEST_NULL;
  for (int number = 0; number < BLOCKS; number++) {
    begins[number] = now_ns();
    double* block = buffer[number % 2];
    if (rank == 0)
      make(block, number);
    else
      MPI_Recv(block, SIZE, MPI_DOUBLE, rank - 1, number % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    filter(block, 1 + rank);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    if (rank < size - 1)
      MPI_Isend(block, SIZE, MPI_DOUBLE, rank + 1, number % 7, MPI_COMM_WORLD, &sending);
    else
      total += sum(block);
    if (number % REPORT == REPORT - 1) {
      double all;
      MPI_Reduce(&total, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("%d blocks: %g\n", number + 1, all);
    }
  }
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < BLOCKS; i++) fprintf(out, "block %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
