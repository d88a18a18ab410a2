// Sorts keys by samples, kin of NAS IS: rooted collectives, counts by all-to-all, keys by all-to-all of own counts, and a
// ring in which each rank asks its neighbour whether the order goes on.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 3000, SAMPLES = 8, MOST = 32 };
static int less(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(int argc, char** argv) {
  int rank, size, keys[KEYS], samples[SAMPLES], all[SAMPLES * MOST], split[MOST], out[MOST], in[MOST], at[MOST], from[MOST];
  static int sorted[KEYS * MOST];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned seed = 17u + (unsigned)rank;
  int good = 1;
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < KEYS; i++) keys[i] = (int)((seed = seed * 1103515245u + 12345u) >> 8 & 0xffff);
    qsort(keys, KEYS, sizeof *keys, less);
    for (int i = 0; i < SAMPLES; i++) samples[i] = keys[i * KEYS / SAMPLES];
    MPI_Gather(samples, SAMPLES, MPI_INT, all, SAMPLES, MPI_INT, round % size, MPI_COMM_WORLD);
    if (rank == round % size) {
      qsort(all, (size_t)(SAMPLES * size), sizeof *all, less);
      for (int i = 1; i < size; i++) split[i - 1] = all[i * SAMPLES];
    }
    MPI_Bcast(split, size - 1, MPI_INT, round % size, MPI_COMM_WORLD);
    for (int i = 0, k = 0; i < size; i++) {
      at[i] = k;
      while (k < KEYS && (i == size - 1 || keys[k] < split[i])) k++;
      out[i] = k - at[i];
    }
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    int total = 0;
    for (int i = 0; i < size; i++) from[i] = total, total += in[i];
    MPI_Alltoallv(keys, out, at, MPI_INT, sorted, in, from, MPI_INT, MPI_COMM_WORLD);
    qsort(sorted, (size_t)total, sizeof *sorted, less);
    int last = total ? sorted[total - 1] : 0, before = 0;
    if (rank > 0) MPI_Recv(&before, 1, MPI_INT, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < size - 1) MPI_Ssend(&last, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD);
    good &= !total || before <= sorted[0];
  }
  int everywhere;
  MPI_Reduce(&good, &everywhere, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", everywhere ? "sorted" : "not sorted");
  MPI_Finalize();
  return 0;
}
