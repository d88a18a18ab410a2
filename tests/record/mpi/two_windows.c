// Two windows on one communicator, each with an epoch of its own at the same time: `two_windows STEPS MS`, 2 ranks. The
// post of the first window is late, and rank 0 accesses the second one long after the first. Each rank writes when it
// entered and left every call, by the machine's clock: `what step enter leave`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE* out;
static int rank, step;

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static void pause_for(long ms) {
  struct timespec length = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&length, NULL);
}

#define TIMED(what, call)                                        \
  do {                                                           \
    const long long enter = now();                               \
    call;                                                        \
    fprintf(out, "%s %d %lld %lld\n", what, step, enter, now()); \
  } while (0)

int main(int argc, char** argv) {
  const int steps = atoi(argv[1]);
  const long ms = atol(argv[2]);
  char name[40];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "called-%d.txt", rank);
  out = fopen(name, "w");
  const int other = 1 - rank;
  double part[4] = {0}, *memory;
  MPI_Group all, peer;
  MPI_Win first, second;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &other, &peer);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &first);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &second);
  for (step = 0; step < steps; step++) {
    if (rank == 1) TIMED("post_second", MPI_Win_post(peer, 0, second));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      TIMED("start_second", MPI_Win_start(peer, 0, second));
      TIMED("start_first", MPI_Win_start(peer, 0, first));
      TIMED("put_first", MPI_Put(part, 4, MPI_DOUBLE, 1, 0, 4, MPI_DOUBLE, first));
      pause_for(ms);
      TIMED("put_second", MPI_Put(part, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, second));
      pause_for(ms);
      TIMED("complete_first", MPI_Win_complete(first));
      TIMED("complete_second", MPI_Win_complete(second));
    } else {
      pause_for(ms);
      TIMED("post_first", MPI_Win_post(peer, 0, first));
      TIMED("wait_first", MPI_Win_wait(first));
      TIMED("wait_second", MPI_Win_wait(second));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_free(&first);
  MPI_Win_free(&second);
  fclose(out);
  MPI_Finalize();
  return 0;
}
