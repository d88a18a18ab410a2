// 10 steps of two functions that compute, and an all-reduce. Each rank prints the CPU time of both, ns, by its own clock.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static volatile double sink;

static long long cpu_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static void assemble(int rounds) {
  for (int i = 0; i < rounds * 1000; i++) sink = sink * 1.0000001 + 1e-9;
}

static void relax(int rounds) {
  for (int i = 0; i < rounds * 1000; i++) sink = sink / 1.0000001 - 1e-9;
}

int main(int argc, char **argv) {
  int rank;
  double whole;
  long long assembled = 0, relaxed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < 10; step++) {
    long long at = cpu_ns();
    assemble(rank == 0 ? 48000 : 16000);
    assembled += cpu_ns() - at;
    at = cpu_ns();
    relax(16000);
    relaxed += cpu_ns() - at;
    double mine = sink;
    MPI_Allreduce(&mine, &whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("%d %lld %lld\n", rank, assembled, relaxed);
  MPI_Finalize();
  return 0;
}
