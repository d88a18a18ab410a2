/* Molecular dynamics in one dimension (after miniMD): forces every step with positions exchanged between neighbours,
 * the lists of neighbours built anew every 20 steps, thermodynamics printed every 100.
 *
 * ranks: 4
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEPS 400
#define ATOMS 400
#define GHOSTS 16
#define CUTOFF 2.5

static int rank, size, left, right;
static double x[ATOMS + 2 * GHOSTS], v[ATOMS], f[ATOMS];
static int neighbours[ATOMS][2];
static long long begins[STEPS];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void send_positions(int tag) {
  double* mine = x + GHOSTS;
  MPI_Sendrecv(mine, GHOSTS, MPI_DOUBLE, left, tag, mine + ATOMS, GHOSTS, MPI_DOUBLE, right, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(mine + ATOMS - GHOSTS, GHOSTS, MPI_DOUBLE, right, tag + 1, x, GHOSTS, MPI_DOUBLE, left, tag + 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void communicate(void) { send_positions(10); }

static void exchange_atoms(void) {
  int leaving[2] = {0, 0}, arriving[2];
  for (int i = 0; i < ATOMS; i++) leaving[0] += v[i] < -3, leaving[1] += v[i] > 3;
  MPI_Sendrecv(&leaving[0], 1, MPI_INT, left, 30, &arriving[1], 1, MPI_INT, right, 30, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&leaving[1], 1, MPI_INT, right, 31, &arriving[0], 1, MPI_INT, left, 31, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void build_lists(void) {
  const double* mine = x + GHOSTS;
  for (int i = 0; i < ATOMS; i++) {
    int from = i + GHOSTS, to = i + GHOSTS;
    while (from > 0 && fabs(x[from - 1] - mine[i]) < CUTOFF) from--;
    while (to < ATOMS + 2 * GHOSTS - 1 && fabs(x[to + 1] - mine[i]) < CUTOFF) to++;
    neighbours[i][0] = from, neighbours[i][1] = to;
  }
}

static void forces(void) {
  for (int i = 0; i < ATOMS; i++) {
    double sum = 0;
    for (int j = neighbours[i][0]; j <= neighbours[i][1]; j++) {
      double d = x[i + GHOSTS] - x[j];
      if (fabs(d) > 0.1) {
        double inverse = 1 / (d * d);
        sum += d * inverse * inverse * (inverse - 0.5);
      }
    }
    f[i] = fmax(-5, fmin(5, sum));
  }
}

static void thermo(int step) {
  double mine = 0, all;
  for (int i = 0; i < ATOMS; i++) mine += 0.5 * v[i] * v[i];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("step %d: kinetic energy %g\n", step, all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = rank ? rank - 1 : MPI_PROC_NULL;
  right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (int i = 0; i < ATOMS + 2 * GHOSTS; i++) x[i] = rank * ATOMS + i - GHOSTS;
  for (int i = 0; i < ATOMS; i++) v[i] = 0.1 * sin(i * 12.9898);
  build_lists();
  for (int step = 0; step < STEPS; step++) {
    begins[step] = now_ns();
    for (int i = 0; i < ATOMS; i++) v[i] += 0.5e-3 * f[i], x[i + GHOSTS] += 1e-3 * v[i];
    if (step % 20 == 19) {
      exchange_atoms();
      send_positions(20);
      build_lists();
    } else {
      communicate();
    }
    forces();
    for (int i = 0; i < ATOMS; i++) v[i] += 0.5e-3 * f[i];
    if (step % 100 == 99) thermo(step + 1);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < STEPS; i++) fprintf(out, "step %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
