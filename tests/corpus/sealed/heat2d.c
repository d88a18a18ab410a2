/* Jacobi iteration for the temperature of a plate on a Cartesian grid of ranks: columns are sent by a derived type, the
 * residual is reduced every tenth iteration, a checkpoint is gathered every hundredth. The step is an iteration.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NX = 96, NY = 80, MOST = 300, CHECK = 10, CHECKPOINT = 100 };

typedef struct {
  MPI_Comm comm;
  MPI_Datatype column;
  int rank, size, up, down, left, right, at[2];
} Topology;

static double old[NX + 2][NY + 2], new[NX + 2][NY + 2];
static long long begins[MOST];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static Topology topology(void) {
  Topology t;
  int sizes[2] = {0, 0}, periods[2] = {0, 0};
  MPI_Comm_size(MPI_COMM_WORLD, &t.size);
  MPI_Dims_create(t.size, 2, sizes);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &t.comm);
  MPI_Comm_rank(t.comm, &t.rank);
  MPI_Cart_coords(t.comm, t.rank, 2, t.at);
  MPI_Cart_shift(t.comm, 0, 1, &t.up, &t.down);
  MPI_Cart_shift(t.comm, 1, 1, &t.left, &t.right);
  MPI_Type_vector(NX, 1, NY + 2, MPI_DOUBLE, &t.column);
  MPI_Type_commit(&t.column);
  return t;
}

static void exchange(const Topology* t) {
  MPI_Sendrecv(&old[1][1], NY, MPI_DOUBLE, t->up, 0, &old[NX + 1][1], NY, MPI_DOUBLE, t->down, 0, t->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&old[NX][1], NY, MPI_DOUBLE, t->down, 1, &old[0][1], NY, MPI_DOUBLE, t->up, 1, t->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&old[1][1], 1, t->column, t->left, 2, &old[1][NY + 1], 1, t->column, t->right, 2, t->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&old[1][NY], 1, t->column, t->right, 3, &old[1][0], 1, t->column, t->left, 3, t->comm,
               MPI_STATUS_IGNORE);
}

static void relax(void) {
  for (int i = 1; i <= NX; i++)
    for (int j = 1; j <= NY; j++) new[i][j] = 0.25 * (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]);
}

static double residual(const Topology* t) {
  double mine = 0, all;
  for (int i = 1; i <= NX; i++)
    for (int j = 1; j <= NY; j++) mine += (new[i][j] - old[i][j]) * (new[i][j] - old[i][j]);
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, t->comm);
  return sqrt(all);
}

static void keep(void) {
  for (int i = 1; i <= NX; i++)
    for (int j = 1; j <= NY; j++) old[i][j] = new[i][j];
}

static void checkpoint(const Topology* t, int iteration) {
  double* all = t->rank == 0 ? malloc((size_t)t->size * NX * NY * sizeof(double)) : NULL;
  static double mine[NX][NY];
  for (int i = 0; i < NX; i++)
    for (int j = 0; j < NY; j++) mine[i][j] = old[i + 1][j + 1];
  MPI_Gather(mine, NX * NY, MPI_DOUBLE, all, NX * NY, MPI_DOUBLE, 0, t->comm);
  if (t->rank != 0) return;
  char name[64];
  snprintf(name, sizeof name, "plate-%04d.bin", iteration);
  FILE* out = fopen(name, "wb");
  if (!out || fwrite(all, sizeof(double), (size_t)t->size * NX * NY, out) == 0) fprintf(stderr, "no checkpoint\n");
  if (out) fclose(out);
  remove(name); /* nobody looks at it here */
  free(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Topology t = topology();
  if (t.at[0] == 0)
    for (int j = 0; j < NY + 2; j++) old[0][j] = 100;
  int iteration = 0;
  double change = 1e9;
  while (iteration < MOST && change > 1e-3) {
    begins[iteration++] = now_ns();
    exchange(&t);
    relax();
    if (iteration % CHECK == 0) {
      change = residual(&t);
      if (t.rank == 0 && iteration % (5 * CHECK) == 0) printf("%5d %.6f\n", iteration, change);
    }
    keep();
    if (iteration % CHECKPOINT == 0) checkpoint(&t, iteration);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < iteration; i++) fprintf(out, "iteration %lld\n", begins[i]);
  fclose(out);
  MPI_Type_free(&t.column);
  MPI_Comm_free(&t.comm);
  MPI_Finalize();
  return 0;
}
