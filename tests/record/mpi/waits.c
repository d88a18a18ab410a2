// Steps of messages and collectives to which some rank comes late: `waits STEPS MS`, 3 ranks or more; MS = 0: nobody is
// late. Each rank writes when it entered and left every call, by the machine's clock: `what step enter leave`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE* out;
static int rank, size, step;
static double part[4], whole[4];

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

static void messages(long ms) {
  MPI_Status status;
  pause_if(rank == 0, ms);
  if (rank == 0) TIMED("send", MPI_Send(part, 4, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD));
  if (rank == 1) TIMED("recv", MPI_Recv(whole, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  pause_if(rank == 1, ms);
  if (rank == 0) TIMED("ssend", MPI_Ssend(part, 1, MPI_DOUBLE, 1, 8, MPI_COMM_WORLD));
  if (rank == 1) TIMED("recv2", MPI_Recv(whole, 4, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  MPI_Request requests[2];
  if (rank == 2) {
    TIMED("irecv", MPI_Irecv(whole, 1, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, &requests[0]));
    TIMED("irecv", MPI_Irecv(whole + 1, 1, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, &requests[1]));
    TIMED("waitall", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  } else if (rank < 2) {
    pause_if(1, ms * (1 + rank));
    TIMED("isend", MPI_Isend(part, 1, MPI_DOUBLE, 2, 9, MPI_COMM_WORLD, &requests[0]));
    TIMED("wait", MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  }
}

static void collectives(long ms) {
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  pause_if(rank == 2, ms);
  TIMED("allreduce", MPI_Allreduce(part, whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  pause_if(rank == 1, ms);
  TIMED("bcast", MPI_Bcast(part, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  pause_if(rank == 2, ms);
  TIMED("reduce", MPI_Reduce(part, whole, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  pause_if(rank == 0, ms);
  TIMED("scan", MPI_Scan(part, whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
  MPI_Request request;
  pause_if(rank == 1, ms);
  TIMED("iallreduce", MPI_Iallreduce(part, whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
  TIMED("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
  TIMED("barrier", MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  const int steps = atoi(argv[1]);
  const long ms = atol(argv[2]);
  char name[40];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(name, sizeof name, "called-%d.txt", rank);
  out = fopen(name, "w");
  for (step = 0; step < steps; step++) {
    messages(ms);
    collectives(ms);
  }
  fclose(out);
  MPI_Finalize();
  return 0;
}
