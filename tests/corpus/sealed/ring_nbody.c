/* Gravity on a ring of ranks: the bodies of all others pass by in a pipeline while the forces are computed; the energy
 * is reduced every 20 time steps and the time step chosen anew from the largest acceleration. The step is a time step,
 * not one of the five shifts inside of it.
 *
 * ranks: 5
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BODIES 48 /* of a rank */
#define STEPS 120
#define REPORT 20
#define SOFTENING 0.01

typedef struct {
  double x[BODIES][3], m[BODIES];
} Block;

static Block mine, travelling[2];
static double v[BODIES][3], a[BODIES][3], potential;
static long long begins[STEPS];

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double uniform(void) { return rand() / (double)RAND_MAX - 0.5; }

static void start(int rank, int size) {
  srand(70 + rank);
  for (int i = 0; i < BODIES; i++) {
    mine.m[i] = 1.0 / (BODIES * size);
    for (int d = 0; d < 3; d++) {
      mine.x[i][d] = 2 * uniform();
      v[i][d] = 0.3 * uniform();
    }
  }
}

static void interact(const Block* other) {
  for (int i = 0; i < BODIES; i++)
    for (int j = 0; j < BODIES; j++) {
      double r[3], square = SOFTENING;
      for (int d = 0; d < 3; d++) {
        r[d] = other->x[j][d] - mine.x[i][d];
        square += r[d] * r[d];
      }
      double inverse = 1 / sqrt(square);
      potential -= 0.5 * mine.m[i] * other->m[j] * inverse;
      double force = other->m[j] * inverse * inverse * inverse;
      for (int d = 0; d < 3; d++) a[i][d] += force * r[d];
    }
}

static void forces(int rank, int size) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  memset(a, 0, sizeof a);
  potential = 0;
  travelling[0] = mine;
  for (int shift = 0; shift < size; shift++) {
    Block *here = &travelling[shift % 2], *next = &travelling[(shift + 1) % 2];
    MPI_Request requests[2];
    int last = shift == size - 1;
    if (!last) {
      MPI_Irecv(next, sizeof *next, MPI_BYTE, left, shift, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(here, sizeof *here, MPI_BYTE, right, shift, MPI_COMM_WORLD, &requests[1]);
    }
    interact(here);
    if (!last) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

static void kick(double dt) {
  for (int i = 0; i < BODIES; i++)
    for (int d = 0; d < 3; d++) v[i][d] += dt * a[i][d];
}

static void drift(double dt) {
  for (int i = 0; i < BODIES; i++)
    for (int d = 0; d < 3; d++) mine.x[i][d] += dt * v[i][d];
}

static double report(int rank, int step, double dt) {
  double local[2] = {potential, 0}, energy[2], fastest = 0, all;
  for (int i = 0; i < BODIES; i++) {
    double square = 0, pull = 0;
    for (int d = 0; d < 3; d++) {
      square += v[i][d] * v[i][d];
      pull += a[i][d] * a[i][d];
    }
    local[1] += 0.5 * mine.m[i] * square;
    fastest = fmax(fastest, sqrt(pull));
  }
  MPI_Reduce(local, energy, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&fastest, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("step %4d, dt %.2e, energy %.6f\n", step, dt, energy[0] + energy[1]);
  return fmin(0.01, 0.05 * sqrt(sqrt(SOFTENING) / all));
}

int main(int argc, char** argv) {
  int rank, size;
  double dt = 0.005;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  start(rank, size);
  forces(rank, size);
  for (int step = 0; step < STEPS; step++) {
    begins[step] = now_ns();
    kick(0.5 * dt);
    drift(dt);
    forces(rank, size);
    kick(0.5 * dt);
    if (step % REPORT == REPORT - 1) dt = report(rank, step + 1, dt);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", getenv("CORPUS_TRUTH"), (int)getpid());
  FILE* out = fopen(path, "w");
  for (int i = 0; i < STEPS; i++) fprintf(out, "step %lld\n", begins[i]);
  fclose(out);
  MPI_Finalize();
  return 0;
}
