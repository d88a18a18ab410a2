// A conjugate gradient on rows that are dealt out in blocks, kin of HPCCG and NAS CG: halos and dot products.
#include <mpi.h>
#include <stdio.h>

enum { OWN = 400, HALO = 20 };  // rows of a rank, and how many it needs of each neighbour
static int rank, size;

static void exchange(double* x) {
  MPI_Request requests[2];
  int count = 0;
  if (rank > 0) MPI_Irecv(x, HALO, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, &requests[count++]);
  if (rank < size - 1) MPI_Irecv(x + HALO + OWN, HALO, MPI_DOUBLE, rank + 1, 2, MPI_COMM_WORLD, &requests[count++]);
  if (rank > 0) MPI_Send(x + HALO, HALO, MPI_DOUBLE, rank - 1, 2, MPI_COMM_WORLD);
  if (rank < size - 1) MPI_Send(x + OWN, HALO, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static double dot(const double* a, const double* b) {
  double own = 0, all;
  for (int i = HALO; i < HALO + OWN; i++) own += a[i] * b[i];
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  static double x[OWN + 2 * HALO], r[OWN + 2 * HALO], p[OWN + 2 * HALO], ap[OWN + 2 * HALO];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = HALO; i < HALO + OWN; i++) r[i] = p[i] = 1 + (rank * OWN + i) % 7;
  double rr = dot(r, r);
  for (int step = 0; step < 60; step++) {
    exchange(p);
    for (int i = HALO; i < HALO + OWN; i++) ap[i] = 4 * p[i] - p[i - 1] - p[i + 1] - 0.5 * (p[i - HALO] + p[i + HALO]);
    const double alpha = rr / dot(p, ap);
    for (int i = HALO; i < HALO + OWN; i++) x[i] += alpha * p[i], r[i] -= alpha * ap[i];
    const double next = dot(r, r);
    for (int i = HALO; i < HALO + OWN; i++) p[i] = r[i] + next / rr * p[i];
    rr = next;
  }
  if (rank == 0) printf("residual %s\n", rr < 1e-9 ? "small" : "large");
  MPI_Finalize();
  return 0;
}
