/* Counts calls and bytes of MPI functions on its own, written against mpi.h: at MPI_Finalize "NAME CALLS SENT RECEIVED" lines go into
   bytes-RANK.txt. Preloaded in front of the recorder, or alone; hands every call on by dlsym. Bytes of collectives as Score-P counts
   them: what a rank sends to all and receives from all, itself included unless in place. Polls that find nothing do not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *B;
typedef const void *C;
typedef MPI_Datatype T;
typedef MPI_Comm M;
typedef MPI_Request *R;
typedef MPI_Status *S;
typedef MPI_Win W;
typedef MPI_Aint A;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *name; long calls, sent, received; } sums[400];
static struct pending { MPI_Request request; const char *name; long sent, received; int receives, persistent, active; } pending[20000];
static int pendings;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static void count(const char *full, long calls, long sent, long received) {
  char name[64];
  size_t length = strlen(strcpy(name, full));
  if (!strcmp(name + length - 2, "_c")) name[length - 2] = 0; /* of 64-bit counts: the same function */
  pthread_mutex_lock(&mutex);
  int i = 0;
  while (sums[i].name && strcmp(sums[i].name, name)) i++;
  if (!sums[i].name) sums[i].name = strdup(name);
   sums[i].calls += calls, sums[i].sent += sent, sums[i].received += received;
  pthread_mutex_unlock(&mutex);
}

static void begins(MPI_Request request, const char *name, long sent, long received, int receives, int persistent) {
  pthread_mutex_lock(&mutex);
  pending[pendings++] = (struct pending){request, name, sent, received, receives, persistent, !persistent};
  pthread_mutex_unlock(&mutex);
}

static void starts(MPI_Request request) {
  for (int i = 0; i < pendings; i++)
    if (pending[i].request == request && pending[i].persistent) pending[i].active = 1;
}

static void ends(MPI_Request request, MPI_Status *status) {
  int i = 0, cancelled = 0, bytes = 0;
  while (i < pendings && !(pending[i].request == request && pending[i].active)) i++;
  if (i == pendings) return;
  struct pending over = pending[i];
  if (over.persistent) pending[i].active = 0;
  else memmove(&pending[i], &pending[i + 1], sizeof *pending * (size_t)(--pendings - i));
  if (status) PMPI_Test_cancelled(status, &cancelled);
  if (cancelled) return;
  if (over.receives && status) PMPI_Get_count(status, MPI_BYTE, &bytes);
  count(over.name, 0, over.sent, over.received + bytes);
}

static long size_of(T type) {
  int bytes;
  PMPI_Type_size(type, &bytes);
  return bytes;
}
static int ranks(M comm) { int n, inter; PMPI_Comm_test_inter(comm, &inter); inter ? PMPI_Comm_remote_size(comm, &n) : PMPI_Comm_size(comm, &n); return n; }
static int own(M comm) { int rank; PMPI_Comm_rank(comm, &rank); return rank; }

static int inter(M comm) { int flag; PMPI_Comm_test_inter(comm, &flag); return flag; }

/* Neighbours: only Cartesian ones are counted, and not those behind the edge. */
static int around(M comm) {
  int n, found = 0, before, after;
  PMPI_Cartdim_get(comm, &n);
  for (int i = 0; i < n; i++) PMPI_Cart_shift(comm, i, 1, &before, &after), found += (before >= 0) + (after >= 0);
  return found;
}

#define REAL(name, parameters) ((int(*) parameters)next("MPI_" #name))
#define PLAIN(name, parameters, arguments)                                      \
  int MPI_##name parameters { count("MPI_" #name, 1, 0, 0); return REAL(name, parameters) arguments; }
static void got(const char *name, long sent, MPI_Status *status) {
  int bytes = 0;
  if (status->MPI_SOURCE >= 0) PMPI_Get_count(status, MPI_BYTE, &bytes);
  count(name, 1, sent, bytes);
}
#define STATUS MPI_Status mine; if (s == MPI_STATUS_IGNORE) s = &mine;
#define PASTE(a, b) a##b
#define NAMED_(a, b) PASTE(a, b)
#define NAMED(name, nothing) NAMED_(name, SUFFIX)
#define STRING_(a) #a
#define STRING(a) STRING_(a)
#define REALC(name, parameters) ((int(*) parameters)next(STRING(NAMED(MPI_##name, ))))
#define NUM int
#define OFFSET int
#define SUFFIX
#include "bytes_calls.h"
#undef SUFFIX
#if MPI_VERSION >= 4
#undef NUM
#undef OFFSET
#define NUM MPI_Count
#define OFFSET MPI_Aint
#define SUFFIX _c
#include "bytes_calls.h"
#endif
PLAIN(Barrier, (M m), (m))
int MPI_Ibarrier(M m, R r) { count("MPI_Ibarrier", 1, 0, 0); return REAL(Ibarrier, (M, R))(m, r); }
PLAIN(Probe, (int p, int g, M m, S s), (p, g, m, s))
PLAIN(Mprobe, (int p, int g, M m, MPI_Message *e, S s), (p, g, m, e, s))
int MPI_Iprobe(int p, int g, M m, int *f, S s) {
  int result = REAL(Iprobe, (int, int, M, int *, S))(p, g, m, f, s);
  if (*f) count("MPI_Iprobe", 1, 0, 0);
  return result;
}
int MPI_Improbe(int p, int g, M m, int *f, MPI_Message *e, S s) {
  int result = REAL(Improbe, (int, int, M, int *, MPI_Message *, S))(p, g, m, f, e, s);
  if (*f) count("MPI_Improbe", 1, 0, 0);
  return result;
}
int MPI_Start(R r) { starts(*r); count("MPI_Start", 1, 0, 0); return REAL(Start, (R))(r); }
int MPI_Startall(int n, R r) {
  for (int i = 0; i < n; i++) starts(r[i]);
  count("MPI_Startall", 1, 0, 0);
  return REAL(Startall, (int, R))(n, r);
}
int MPI_Request_free(R r) {
  count("MPI_Request_free", 1, 0, 0);
  ends(*r, NULL);
  for (int i = 0; i < pendings; i++)
    if (pending[i].request == *r) pending[i].persistent = pending[i].active = 0, pending[i].name = "free";
  return REAL(Request_free, (R))(r);
}
PLAIN(Cancel, (R r), (r))

#define MANY MPI_Request was[n + 1]; memcpy(was, r, sizeof *r * (size_t)n); MPI_Status mine[n + 1]; if (s == MPI_STATUSES_IGNORE) s = mine;
int MPI_Wait(R r, S s) {
  MPI_Request was = *r;
  STATUS int result = REAL(Wait, (R, S))(r, s);
  count("MPI_Wait", 1, 0, 0), ends(was, s);
  return result;
}
int MPI_Test(R r, int *f, S s) {
  MPI_Request was = *r;
  STATUS int result = REAL(Test, (R, int *, S))(r, f, s);
  if (*f) count("MPI_Test", 1, 0, 0), ends(was, s);
  return result;
}
int MPI_Waitall(int n, R r, S s) {
  MANY int result = REAL(Waitall, (int, R, S))(n, r, s);
  count("MPI_Waitall", 1, 0, 0);
  for (int i = 0; i < n; i++) ends(was[i], &s[i]);
  return result;
}
int MPI_Testall(int n, R r, int *f, S s) {
  MANY int result = REAL(Testall, (int, R, int *, S))(n, r, f, s);
  if (*f) count("MPI_Testall", 1, 0, 0);
  for (int i = 0; *f && i < n; i++) ends(was[i], &s[i]);
  return result;
}
int MPI_Waitany(int n, R r, int *i, S s) {
  MANY int result = REAL(Waitany, (int, R, int *, S))(n, r, i, s);
  count("MPI_Waitany", 1, 0, 0);
  if (*i >= 0) ends(was[*i], s);
  return result;
}
int MPI_Testany(int n, R r, int *i, int *f, S s) {
  MANY int result = REAL(Testany, (int, R, int *, int *, S))(n, r, i, f, s);
  if (*f) count("MPI_Testany", 1, 0, 0);
  if (*f && *i >= 0) ends(was[*i], s);
  return result;
}
int MPI_Waitsome(int n, R r, int *c, int *i, S s) {
  MANY int result = REAL(Waitsome, (int, R, int *, int *, S))(n, r, c, i, s);
  count("MPI_Waitsome", 1, 0, 0);
  for (int k = 0; k < *c; k++) ends(was[i[k]], &s[k]);
  return result;
}
int MPI_Testsome(int n, R r, int *c, int *i, S s) {
  MANY int result = REAL(Testsome, (int, R, int *, int *, S))(n, r, c, i, s);
  if (*c > 0) count("MPI_Testsome", 1, 0, 0);
  for (int k = 0; k < *c; k++) ends(was[i[k]], &s[k]);
  return result;
}

PLAIN(Comm_split, (M m, int c, int k, M *n), (m, c, k, n))
PLAIN(Comm_dup, (M m, M *n), (m, n))
PLAIN(Comm_create, (M m, MPI_Group g, M *n), (m, g, n))
PLAIN(Comm_create_group, (M m, MPI_Group g, int t, M *n), (m, g, t, n))
PLAIN(Comm_free, (M *m), (m))
PLAIN(Cart_create, (M m, int n, const int *d, const int *p, int r, M *c), (m, n, d, p, r, c))
PLAIN(Cart_sub, (M m, const int *d, M *c), (m, d, c))
PLAIN(Intercomm_create, (M m, int l, M p, int r, int t, M *c), (m, l, p, r, t, c))
PLAIN(Intercomm_merge, (M m, int h, M *c), (m, h, c))
int MPI_Comm_idup(M m, M *n, R r) {
  int result = REAL(Comm_idup, (M, M *, R))(m, n, r);
  count("MPI_Comm_idup", 1, 0, 0);
  return result;
}

#define RMA(name, parameters, arguments, SENT, RECEIVED) \
  int MPI_##name parameters { count("MPI_" #name, 1, SENT, RECEIVED); return REAL(name, parameters) arguments; }
RMA(Fetch_and_op, (C b, B c, T t, int p, A d, MPI_Op o, W w), (b, c, t, p, d, o, w), size_of(t), size_of(t))
RMA(Compare_and_swap, (C b, C e, B c, T t, int p, A d, W w), (b, e, c, t, p, d, w), size_of(t), size_of(t))
PLAIN(Win_create, (B b, A n, int d, MPI_Info i, M m, W *w), (b, n, d, i, m, w))
PLAIN(Win_allocate, (A n, int d, MPI_Info i, M m, B b, W *w), (n, d, i, m, b, w))
#if MPI_VERSION >= 4
int MPI_Win_create_c(B b, A n, A d, MPI_Info i, M m, W *w) {
  count("MPI_Win_create_c", 1, 0, 0);
  return REAL(Win_create_c, (B, A, A, MPI_Info, M, W *))(b, n, d, i, m, w);
}
int MPI_Win_allocate_c(A n, A d, MPI_Info i, M m, B b, W *w) {
  count("MPI_Win_allocate_c", 1, 0, 0);
  return REAL(Win_allocate_c, (A, A, MPI_Info, M, B, W *))(n, d, i, m, b, w);
}
#endif
PLAIN(Win_free, (W *w), (w))
PLAIN(Win_fence, (int a, W w), (a, w))
PLAIN(Win_lock, (int t, int p, int a, W w), (t, p, a, w))
PLAIN(Win_unlock, (int p, W w), (p, w))
PLAIN(Win_lock_all, (int a, W w), (a, w))
PLAIN(Win_unlock_all, (W w), (w))
PLAIN(Win_flush, (int p, W w), (p, w))
PLAIN(Win_flush_all, (W w), (w))

PLAIN(File_open, (M m, const char *n, int a, MPI_Info i, MPI_File *f), (m, n, a, i, f))
PLAIN(File_close, (MPI_File *f), (f))
PLAIN(File_set_view, (MPI_File f, MPI_Offset o, T e, T t, const char *r, MPI_Info i), (f, o, e, t, r, i))

PLAIN(Buffer_detach, (B b, int *n), (b, n))
PLAIN(Init, (int *a, char ***b), (a, b))
PLAIN(Init_thread, (int *a, char ***b, int c, int *d), (a, b, c, d))

int MPI_Finalize(void) {
  char name[64];
  snprintf(name, sizeof name, "bytes-%d.txt", own(MPI_COMM_WORLD));
  count("MPI_Finalize", 1, 0, 0);
  FILE *file = fopen(name, "w");
  for (int i = 0; sums[i].name; i++) fprintf(file, "%s %ld %ld %ld\n", sums[i].name, sums[i].calls, sums[i].sent, sums[i].received);
  fclose(file);
  return REAL(Finalize, (void))();
}
