// Steps with fences, posts, locks, probes and an exchange among neighbours to which some rank comes late: `windows STEPS
// MS`, 4 ranks. Each rank writes when it entered and left every call, by the machine's clock: `what step enter leave`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE* out;
static int rank, size, step;
static double part[4], whole[8], *memory;

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static void pause_if(int is_late, long ms) {
  struct timespec length = {ms / 1000, ms % 1000 * 1000000};
  if (is_late && ms) nanosleep(&length, NULL);
}

#define TIMED(what, call)                                        \
  do {                                                           \
    const long long enter = now();                               \
    call;                                                        \
    fprintf(out, "%s %d %lld %lld\n", what, step, enter, now()); \
  } while (0)

static void epochs(MPI_Win window, MPI_Group first, MPI_Group second, long ms) {  // rank 0 accesses rank 1
  pause_if(rank == 3, ms);
  TIMED("fence", MPI_Win_fence(0, window));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    TIMED("start", MPI_Win_start(second, 0, window));
    TIMED("put", MPI_Put(part, 4, MPI_DOUBLE, 1, 0, 4, MPI_DOUBLE, window));
    pause_if(1, 2 * ms);
    TIMED("complete", MPI_Win_complete(window));
  } else if (rank == 1) {
    pause_if(1, ms);
    TIMED("post", MPI_Win_post(first, 0, window));
    TIMED("wait", MPI_Win_wait(window));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void locks(MPI_Win window, long ms) {  // rank 2 comes second; rank 3, the target, helps all the time
  int token = 0, there = 0;
  if (rank == 0) {
    TIMED("lock", MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 3, 0, window));
    MPI_Put(part, 1, MPI_DOUBLE, 3, 0, 1, MPI_DOUBLE, window);
    MPI_Win_flush(3, window);  // it has the lock now, whatever the library does in MPI_Win_lock
    MPI_Send(&token, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
    pause_if(1, ms);
    TIMED("unlock", MPI_Win_unlock(3, window));
    MPI_Send(&token, 1, MPI_INT, 3, 2, MPI_COMM_WORLD);
  } else if (rank == 2) {
    MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    TIMED("lock", MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 3, 0, window));
    TIMED("unlock", MPI_Win_unlock(3, window));
    MPI_Send(&token, 1, MPI_INT, 3, 2, MPI_COMM_WORLD);
  } else if (rank == 3) {
    for (int i = 0; i < 2; i++, there = 0) {
      while (!there) MPI_Iprobe(2 * i, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      MPI_Recv(&token, 1, MPI_INT, 2 * i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void probes(long ms) {
  MPI_Status status;
  MPI_Message message;
  pause_if(rank == 0, ms);
  if (rank == 0) {
    TIMED("send", MPI_Send(part, 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD));
    TIMED("send", MPI_Send(part, 1, MPI_DOUBLE, 2, 6, MPI_COMM_WORLD));
  } else if (rank == 1) {
    TIMED("probe", MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status));
    MPI_Recv(whole, 1, MPI_DOUBLE, status.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 2) {
    TIMED("probe", MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    MPI_Mrecv(whole, 1, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const int steps = atoi(argv[1]), all_around = 1;
  const long ms = atol(argv[2]);
  char name[40];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(name, sizeof name, "called-%d.txt", rank);
  out = fopen(name, "w");
  const int next = (rank + 1) % size, before = (rank + size - 1) % size, zero = 0, one = 1;
  MPI_Comm ring, one_way;
  MPI_Group all, first, second;
  MPI_Win window, locked;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &all_around, 0, &ring);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &one_way);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &zero, &first);
  MPI_Group_incl(all, 1, &one, &second);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &locked);
  for (step = 0; step < steps; step++) {
    epochs(window, first, second, ms);
    locks(locked, ms);
    probes(ms);
    pause_if(rank == 0, ms);
    TIMED("ring", MPI_Neighbor_alltoall(part, 1, MPI_DOUBLE, whole, 1, MPI_DOUBLE, ring));
    MPI_Barrier(MPI_COMM_WORLD);
    pause_if(rank == 0, ms);
    TIMED("one_way", MPI_Neighbor_allgather(part, 1, MPI_DOUBLE, whole, 1, MPI_DOUBLE, one_way));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_free(&window);
  MPI_Win_free(&locked);
  fclose(out);
  MPI_Finalize();
  return 0;
}
