/* The functions with counts, for bytes.c: included once for those of type int, once for the MPI_*_c of MPI 4. */
#define total NAMED(total, )
#define all_types NAMED(all_types, )
static long total(const NUM *counts, int n) { long sum = 0; for (int i = 0; i < n; i++) sum += counts[i]; return sum; }
static long all_types(const NUM *n, const T *t, int ranks) { long sum = 0; for (int i = 0; i < ranks; i++) sum += n[i] * size_of(t[i]); return sum; }
#define SENDS(name)                                                             \
  int NAMED(MPI_##name, )(C b, NUM n, T t, int p, int g, M m) {                          \
    count(STRING(NAMED(MPI_##name, )), 1, p < 0 ? 0 : n * size_of(t), 0);                      \
    return REALC(name, (C, NUM, T, int, int, M))(b, n, t, p, g, m);              \
  }
#define ISENDS(name, persistent)                                                \
  int NAMED(MPI_##name, )(C b, NUM n, T t, int p, int g, M m, R r) {                     \
    int result = REALC(name, (C, NUM, T, int, int, M, R))(b, n, t, p, g, m, r);  \
    count(STRING(NAMED(MPI_##name, )), 1, 0, 0);                                               \
    if (p >= 0) begins(*r, STRING(NAMED(MPI_##name, )), n * size_of(t), 0, 0, persistent);     \
    return result;                                                              \
  }
#define IRECEIVES(name, persistent)                                             \
  int NAMED(MPI_##name, )(B b, NUM n, T t, int p, int g, M m, R r) {                     \
    int result = REALC(name, (B, NUM, T, int, int, M, R))(b, n, t, p, g, m, r);  \
    count(STRING(NAMED(MPI_##name, )), 1, 0, 0);                                               \
    if (p != MPI_PROC_NULL) begins(*r, STRING(NAMED(MPI_##name, )), 0, 0, 1, persistent);      \
    return result;                                                              \
  }
SENDS(Send) SENDS(Bsend) SENDS(Ssend) SENDS(Rsend)
ISENDS(Isend, 0) ISENDS(Ibsend, 0) ISENDS(Issend, 0) ISENDS(Irsend, 0)
ISENDS(Send_init, 1) ISENDS(Bsend_init, 1) ISENDS(Ssend_init, 1) ISENDS(Rsend_init, 1)
IRECEIVES(Irecv, 0) IRECEIVES(Recv_init, 1)

int NAMED(MPI_Recv, )(B b, NUM n, T t, int p, int g, M m, S s) {
  STATUS int result = REALC(Recv, (B, NUM, T, int, int, M, S))(b, n, t, p, g, m, s);
  got(STRING(NAMED(MPI_Recv, )), 0, s);
  return result;
}
int NAMED(MPI_Mrecv, )(B b, NUM n, T t, MPI_Message *m, S s) {
  STATUS int result = REALC(Mrecv, (B, NUM, T, MPI_Message *, S))(b, n, t, m, s);
  got(STRING(NAMED(MPI_Mrecv, )), 0, s);
  return result;
}
int NAMED(MPI_Imrecv, )(B b, NUM n, T t, MPI_Message *m, R r) {
  int result = REALC(Imrecv, (B, NUM, T, MPI_Message *, R))(b, n, t, m, r);
  count(STRING(NAMED(MPI_Imrecv, )), 1, 0, 0);
  begins(*r, STRING(NAMED(MPI_Imrecv, )), 0, 0, 1, 0);
  return result;
}
int NAMED(MPI_Sendrecv, )(C b, NUM n, T t, int p, int g, B c, NUM o, T u, int q, int h, M m, S s) {
  STATUS int result = REALC(Sendrecv, (C, NUM, T, int, int, B, NUM, T, int, int, M, S))(b, n, t, p, g, c, o, u, q, h, m, s);
  got(STRING(NAMED(MPI_Sendrecv, )), p < 0 ? 0 : n * size_of(t), s);
  return result;
}
int NAMED(MPI_Sendrecv_replace, )(B b, NUM n, T t, int p, int g, int q, int h, M m, S s) {
  STATUS int result = REALC(Sendrecv_replace, (B, NUM, T, int, int, int, int, M, S))(b, n, t, p, g, q, h, m, s);
  got(STRING(NAMED(MPI_Sendrecv_replace, )), p < 0 ? 0 : n * size_of(t), s);
  return result;
}
/* A collective in its blocking, non-blocking and persistent form. SENT and RECEIVED see the arguments. */
#if MPI_VERSION >= 4
#define PERSISTENT(name, lower, parameters, arguments, SENT, RECEIVED)                                                   \
  int NAMED(MPI_##name##_init, )(LIST parameters, MPI_Info info, R r) {                                                           \
    int result = REALC(name##_init, (LIST parameters, MPI_Info, R))(LIST arguments, info, r);                             \
    count(STRING(NAMED(MPI_##name##_init, )), 1, 0, 0), begins(*r, STRING(NAMED(MPI_##name##_init, )), SENT, RECEIVED, 0, 1);                        \
    return result;                                                                                                       \
  }
#else
#define PERSISTENT(...)
#endif
#define LIST(...) __VA_ARGS__
#define COLLECTIVE(name, lower, parameters, arguments, SENT, RECEIVED)                                                   \
  int NAMED(MPI_##name, )(LIST parameters) {                                                                                      \
    count(STRING(NAMED(MPI_##name, )), 1, SENT, RECEIVED);                                                                              \
    return REALC(name, (LIST parameters))(LIST arguments);                                                                \
  }                                                                                                                      \
  int NAMED(MPI_I##lower, )(LIST parameters, R r) {                                                                               \
    int result = REALC(I##lower, (LIST parameters, R))(LIST arguments, r);                                                \
    count(STRING(NAMED(MPI_I##lower, )), 1, 0, 0), begins(*r, STRING(NAMED(MPI_I##lower, )), SENT, RECEIVED, 0, 0);                                    \
    return result;                                                                                                       \
  }                                                                                                                      \
  PERSISTENT(name, lower, parameters, arguments, SENT, RECEIVED)
#define N ranks(m)
#define IN_PLACE (b == MPI_IN_PLACE)
#define ROOT (own(m) == p)
COLLECTIVE(Bcast, bcast, (B b, NUM n, T t, int p, M m), (b, n, t, p, m), (inter(m) ? p == MPI_ROOT : ROOT) ? N * n * size_of(t) : 0,
           inter(m) && p < 0 ? 0 : n * size_of(t))
COLLECTIVE(Reduce, reduce, (C b, B c, NUM n, T t, MPI_Op o, int p, M m), (b, c, n, t, o, p, m), IN_PLACE ? 0 : n * size_of(t),
           ROOT ? (N - IN_PLACE) * n * size_of(t) : 0)
COLLECTIVE(Allreduce, allreduce, (C b, B c, NUM n, T t, MPI_Op o, M m), (b, c, n, t, o, m), (N - IN_PLACE) * n * size_of(t),
           (N - IN_PLACE) * n * size_of(t))
COLLECTIVE(Scan, scan, (C b, B c, NUM n, T t, MPI_Op o, M m), (b, c, n, t, o, m), (N - own(m) - IN_PLACE) * n * size_of(t),
           (own(m) + 1 - IN_PLACE) * n * size_of(t))
COLLECTIVE(Exscan, exscan, (C b, B c, NUM n, T t, MPI_Op o, M m), (b, c, n, t, o, m), (N - own(m) - 1) * n * size_of(t),
           own(m) * n * size_of(t))
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, (C b, B c, NUM n, T t, MPI_Op o, M m), (b, c, n, t, o, m),
           (N - IN_PLACE) * n * size_of(t), (N - IN_PLACE) * n * size_of(t))
COLLECTIVE(Reduce_scatter, reduce_scatter, (C b, B c, const NUM *n, T t, MPI_Op o, M m), (b, c, n, t, o, m),
           (total(n, N) - (IN_PLACE ? n[own(m)] : 0)) * size_of(t), (N - IN_PLACE) * n[own(m)] * size_of(t))
COLLECTIVE(Gather, gather, (C b, NUM n, T t, B c, NUM k, T u, int p, M m), (b, n, t, c, k, u, p, m),
           IN_PLACE && ROOT ? 0 : n * size_of(t), ROOT ? (N - IN_PLACE) * k * size_of(u) : 0)
COLLECTIVE(Gatherv, gatherv, (C b, NUM n, T t, B c, const NUM *k, const OFFSET *d, T u, int p, M m), (b, n, t, c, k, d, u, p, m),
           IN_PLACE && ROOT ? 0 : n * size_of(t), ROOT ? (total(k, N) - (IN_PLACE ? k[p] : 0)) * size_of(u) : 0)
COLLECTIVE(Scatter, scatter, (C b, NUM n, T t, B c, NUM k, T u, int p, M m), (b, n, t, c, k, u, p, m),
           ROOT ? (N - (c == MPI_IN_PLACE)) * n * size_of(t) : 0, c == MPI_IN_PLACE ? 0 : k * size_of(u))
COLLECTIVE(Scatterv, scatterv, (C b, const NUM *n, const OFFSET *d, T t, B c, NUM k, T u, int p, M m), (b, n, d, t, c, k, u, p, m),
           ROOT ? (total(n, N) - (c == MPI_IN_PLACE ? n[p] : 0)) * size_of(t) : 0, c == MPI_IN_PLACE ? 0 : k * size_of(u))
COLLECTIVE(Allgather, allgather, (C b, NUM n, T t, B c, NUM k, T u, M m), (b, n, t, c, k, u, m),
           IN_PLACE ? (N - 1) * k * size_of(u) : N * n * size_of(t), (N - IN_PLACE) * k * size_of(u))
COLLECTIVE(Allgatherv, allgatherv, (C b, NUM n, T t, B c, const NUM *k, const OFFSET *d, T u, M m), (b, n, t, c, k, d, u, m),
           IN_PLACE ? (N - 1) * k[own(m)] * size_of(u) : N * n * size_of(t), (total(k, N) - (IN_PLACE ? k[own(m)] : 0)) * size_of(u))
COLLECTIVE(Alltoall, alltoall, (C b, NUM n, T t, B c, NUM k, T u, M m), (b, n, t, c, k, u, m),
           IN_PLACE ? (N - 1) * k * size_of(u) : N * n * size_of(t), (N - IN_PLACE) * k * size_of(u))
COLLECTIVE(Alltoallv, alltoallv, (C b, const NUM *n, const OFFSET *d, T t, B c, const NUM *k, const OFFSET *e, T u, M m),
           (b, n, d, t, c, k, e, u, m), IN_PLACE ? (total(k, N) - k[own(m)]) * size_of(u) : total(n, N) * size_of(t),
           (total(k, N) - (IN_PLACE ? k[own(m)] : 0)) * size_of(u))
COLLECTIVE(Alltoallw, alltoallw, (C b, const NUM *n, const OFFSET *d, const T *t, B c, const NUM *k, const OFFSET *e, const T *u, M m),
           (b, n, d, t, c, k, e, u, m), all_types(n, t, N), all_types(k, u, N))
COLLECTIVE(Neighbor_allgather, neighbor_allgather, (C b, NUM n, T t, B c, NUM k, T u, M m), (b, n, t, c, k, u, m),
           around(m) * n * size_of(t), around(m) * k * size_of(u))
COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, (C b, NUM n, T t, B c, NUM k, T u, M m), (b, n, t, c, k, u, m),
           around(m) * n * size_of(t), around(m) * k * size_of(u))
COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, (C b, const NUM *n, const OFFSET *d, T t, B c, const NUM *k, const OFFSET *e, T u, M m),
           (b, n, d, t, c, k, e, u, m), total(n, around(m)) * size_of(t), total(k, around(m)) * size_of(u))

#define RMA(name, parameters, arguments, SENT, RECEIVED) \
  int NAMED(MPI_##name, ) parameters { count(STRING(NAMED(MPI_##name, )), 1, SENT, RECEIVED); return REALC(name, parameters) arguments; }
RMA(Put, (C b, NUM n, T t, int p, A d, NUM k, T u, W w), (b, n, t, p, d, k, u, w), n * size_of(t), 0)
RMA(Get, (B b, NUM n, T t, int p, A d, NUM k, T u, W w), (b, n, t, p, d, k, u, w), 0, n * size_of(t))
RMA(Accumulate, (C b, NUM n, T t, int p, A d, NUM k, T u, MPI_Op o, W w), (b, n, t, p, d, k, u, o, w), n * size_of(t), 0)
RMA(Get_accumulate, (C b, NUM n, T t, B c, NUM l, T v, int p, A d, NUM k, T u, MPI_Op o, W w), (b, n, t, c, l, v, p, d, k, u, o, w),
    n * size_of(t), l * size_of(v))
int NAMED(MPI_Rput, )(C b, NUM n, T t, int p, A d, NUM k, T u, W w, R r) {
  int result = REALC(Rput, (C, NUM, T, int, A, NUM, T, W, R))(b, n, t, p, d, k, u, w, r);
  count(STRING(NAMED(MPI_Rput, )), 1, 0, 0), begins(*r, STRING(NAMED(MPI_Rput, )), n * size_of(t), 0, 0, 0);
  return result;
}
#define FILES(name, parameters, arguments, writes)                      \
  int NAMED(MPI_File_##name, ) parameters {                                      \
    int bytes;                                                          \
    STATUS int result = REALC(File_##name, parameters) arguments;        \
    PMPI_Get_count(s, MPI_BYTE, &bytes);                                \
    count(STRING(NAMED(MPI_File_##name, )), 1, writes ? bytes : 0, writes ? 0 : bytes); \
    return result;                                                      \
  }
FILES(write, (MPI_File f, C b, NUM n, T t, S s), (f, b, n, t, s), 1)
FILES(read, (MPI_File f, B b, NUM n, T t, S s), (f, b, n, t, s), 0)
FILES(write_at, (MPI_File f, MPI_Offset o, C b, NUM n, T t, S s), (f, o, b, n, t, s), 1)
FILES(write_at_all, (MPI_File f, MPI_Offset o, C b, NUM n, T t, S s), (f, o, b, n, t, s), 1)
FILES(read_at, (MPI_File f, MPI_Offset o, B b, NUM n, T t, S s), (f, o, b, n, t, s), 0)
FILES(read_at_all, (MPI_File f, MPI_Offset o, B b, NUM n, T t, S s), (f, o, b, n, t, s), 0)
#undef COLLECTIVE
#undef FILES
#undef IN_PLACE
#undef IRECEIVES
#undef ISENDS
#undef LIST
#undef N
#undef PERSISTENT
#undef RMA
#undef ROOT
#undef SENDS
#undef all_types
#undef total
