/* An explicit heat solver that also runs alone: the norm is reduced every step, rank 0 gathers the field every 30.
 *
 * ranks: 1
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define N 96
#define STEPS 150

static double a[N][N], b[N][N], whole[N * N];
static long long begins[STEPS];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; i++) a[i][0] = b[i][0] = 1;
  for (int step = 0; step < STEPS; step++) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    begins[step] = t.tv_sec * 1000000000LL + t.tv_nsec;
    double change = 0, most;
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) {
        b[i][j] = a[i][j] + 0.2 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1] - 4 * a[i][j]);
        change = fmax(change, fabs(b[i][j] - a[i][j]));
      }
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) a[i][j] = b[i][j];
    MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (step % 30 == 29) {
      MPI_Gather(a, N * N, MPI_DOUBLE, whole, N * N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("step %d: change %g, middle %g\n", step + 1, most, whole[N * N / 2 + N / 2]);
    }
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < STEPS; i++) fprintf(out, "step %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
