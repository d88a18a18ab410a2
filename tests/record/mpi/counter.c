/* Counts MPI calls on its own, and at MPI_Finalize writes "NAME COUNT" lines into calls-RANK.txt: what a trace must hold.
   Preloaded in front of the recorder; hands every call on by dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic long found, nothing;
#define LIST(X) X(Init) X(Init_thread) X(Send) X(Isend) X(Recv) X(Irecv) X(Sendrecv) X(Send_init) X(Recv_init) X(Request_free) X(Start) X(Startall) X(Wait) X(Waitall) \
  X(Waitany) X(Waitsome) X(Probe) X(Barrier) X(Ibarrier) X(Bcast) X(Reduce) X(Allreduce) X(Iallreduce) X(Allgather) X(Alltoall) \
  X(Gather) X(Scatter) X(Scan) X(Comm_split) X(Comm_dup) X(Comm_free) X(Finalize)
#define X(name) static _Atomic long n_##name;
LIST(X)
#undef X

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }
#define CALL(name, parameters, arguments)                      \
  int MPI_##name parameters {                                  \
    n_##name++;                                                \
    return ((int(*) parameters)next("MPI_" #name)) arguments;  \
  }
#define POLL(name, parameters, arguments, flag)                              \
  int MPI_##name parameters {                                                \
    int result = ((int(*) parameters)next("MPI_" #name)) arguments;          \
    if (*flag > 0) found++; else nothing++;                                  \
    return result;                                                           \
  }
typedef void *B;
typedef const void *C;
typedef MPI_Datatype T;
typedef MPI_Comm M;
typedef MPI_Request *R;
typedef MPI_Status *S;

CALL(Init, (int *a, char ***b), (a, b))
CALL(Init_thread, (int *a, char ***b, int c, int *d), (a, b, c, d))
CALL(Send, (C b, int n, T t, int p, int g, M m), (b, n, t, p, g, m))
CALL(Isend, (C b, int n, T t, int p, int g, M m, R r), (b, n, t, p, g, m, r))
CALL(Recv, (B b, int n, T t, int p, int g, M m, S s), (b, n, t, p, g, m, s))
CALL(Irecv, (B b, int n, T t, int p, int g, M m, R r), (b, n, t, p, g, m, r))
CALL(Sendrecv, (C b, int n, T t, int p, int g, B c, int o, T u, int q, int h, M m, S s), (b, n, t, p, g, c, o, u, q, h, m, s))
CALL(Send_init, (C b, int n, T t, int p, int g, M m, R r), (b, n, t, p, g, m, r))
CALL(Recv_init, (B b, int n, T t, int p, int g, M m, R r), (b, n, t, p, g, m, r))
CALL(Request_free, (R r), (r))
CALL(Start, (R r), (r))
CALL(Startall, (int n, R r), (n, r))
CALL(Wait, (R r, S s), (r, s))
CALL(Waitall, (int n, R r, S s), (n, r, s))
CALL(Waitany, (int n, R r, int *i, S s), (n, r, i, s))
CALL(Waitsome, (int n, R r, int *c, int *i, S s), (n, r, c, i, s))
CALL(Probe, (int p, int g, M m, S s), (p, g, m, s))
POLL(Iprobe, (int p, int g, M m, int *f, S s), (p, g, m, f, s), f)
POLL(Test, (R r, int *f, S s), (r, f, s), f)
POLL(Testall, (int n, R r, int *f, S s), (n, r, f, s), f)
POLL(Testany, (int n, R r, int *i, int *f, S s), (n, r, i, f, s), f)
POLL(Testsome, (int n, R r, int *c, int *i, S s), (n, r, c, i, s), c)
CALL(Barrier, (M m), (m))
CALL(Ibarrier, (M m, R r), (m, r))
CALL(Bcast, (B b, int n, T t, int p, M m), (b, n, t, p, m))
CALL(Reduce, (C b, B c, int n, T t, MPI_Op o, int p, M m), (b, c, n, t, o, p, m))
CALL(Allreduce, (C b, B c, int n, T t, MPI_Op o, M m), (b, c, n, t, o, m))
CALL(Iallreduce, (C b, B c, int n, T t, MPI_Op o, M m, R r), (b, c, n, t, o, m, r))
CALL(Allgather, (C b, int n, T t, B c, int o, T u, M m), (b, n, t, c, o, u, m))
CALL(Alltoall, (C b, int n, T t, B c, int o, T u, M m), (b, n, t, c, o, u, m))
CALL(Gather, (C b, int n, T t, B c, int o, T u, int p, M m), (b, n, t, c, o, u, p, m))
CALL(Scatter, (C b, int n, T t, B c, int o, T u, int p, M m), (b, n, t, c, o, u, p, m))
CALL(Scan, (C b, B c, int n, T t, MPI_Op o, M m), (b, c, n, t, o, m))
CALL(Comm_split, (M m, int c, int k, MPI_Comm *n), (m, c, k, n))
CALL(Comm_dup, (M m, MPI_Comm *n), (m, n))
CALL(Comm_free, (MPI_Comm *m), (m))

int MPI_Finalize(void) {
  int rank;
  char name[64];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "calls-%d.txt", rank);
  n_Finalize++;
  FILE *file = fopen(name, "w");
#define X(name) if (n_##name) fprintf(file, "MPI_" #name " %ld\n", (long)n_##name);
  LIST(X)
  fprintf(file, "found %ld\nnothing %ld\n", (long)found, (long)nothing);
  fclose(file);
  return ((int (*)(void))next("MPI_Finalize"))();
}
