/* An MPI library that does nothing, with MPICH's constants: this process is rank 2 of 4, every other poll finds
   something. For tests and benchmarks that need no MPI. */
typedef void* Pointer;
#define BOTH(name, parameters, ...) int MPI_##name parameters __VA_ARGS__ int PMPI_##name parameters __VA_ARGS__

static int asked;

BOTH(Init, (int* argc, char*** argv), { return (void)argc, (void)argv, 0; })
BOTH(Finalize, (void), { return 0; })
BOTH(Abort, (int comm, int code), { return (void)comm, (void)code, 0; })
BOTH(Comm_rank, (int comm, int* rank), { return (void)comm, *rank = 2, 0; })
BOTH(Comm_size, (int comm, int* size), { return (void)comm, *size = 4, 0; })
BOTH(Barrier, (int comm), { return comm == 0x44000000 ? 0 : 5; })
BOTH(Send, (Pointer b, int n, int t, int to, int tag, int comm),
     { return (void)b, (void)n, (void)t, (void)tag, (void)comm, to == 9; })
BOTH(Sendrecv,
     (Pointer b, int n, int t, int to, int tag, Pointer c, int m, int u, int from, int tag2, int comm, Pointer s), {
       return (void)b, (void)n, (void)t, (void)to, (void)c, (void)m, (void)u, (void)from, (void)comm, (void)s,
              tag + tag2;
     })
/* A data type is as large as its number says. */
BOTH(Type_size_x, (int type, long long* bytes), { return *bytes = type, 0; })
BOTH(Comm_test_inter, (int comm, int* flag), { return (void)comm, *flag = 0, 0; })
BOTH(Comm_group, (int comm, int* group), { return (void)comm, *group = 1, 0; })
BOTH(Group_size, (int group, int* size), { return (void)group, *size = 4, 0; })
BOTH(Group_translate_ranks, (int group, int n, const int* ranks, int other, int* translated), {
  for (int i = 0; i < n; i++) translated[i] = ranks[i];
  return (void)group, (void)other, 0;
})
BOTH(Group_free, (int* group), { return *group = 0, 0; })
BOTH(Initialized, (int* flag), { return *flag = 1, 0; })
BOTH(Topo_test, (int comm, int* kind), { return (void)comm, *kind = -32766, 0; })
/* Every message comes from rank 1 with tag 7, and has 24 bytes. */
static int received(int* status) {
  if (status && status != (int*)1) status[0] = 24, status[1] = 0, status[2] = 1, status[3] = 7, status[4] = 0;
  return 0;
}
BOTH(Get_elements_x, (const int* status, int type, long long* count), { return (void)type, *count = status[0], 0; })
BOTH(Test_cancelled, (const int* status, int* flag), { return *flag = status[1] & 1, 0; })
BOTH(Recv, (Pointer b, int n, int t, int from, int tag, int comm, int* status),
     { return (void)b, (void)n, (void)t, (void)from, (void)tag, (void)comm, received(status); })
/* All sends have one request, as those that are over at once. */
BOTH(Isend, (Pointer b, int n, int t, int to, int tag, int comm, int* request),
     { return (void)b, (void)n, (void)t, (void)to, (void)tag, (void)comm, *request = 0x6c000001, 0; })
BOTH(Irecv, (Pointer b, int n, int t, int from, int tag, int comm, int* request), {
  (void)b, (void)n, (void)t, (void)from, (void)comm;
  return *request = tag, 0;
})
BOTH(Wait, (int* request, int* status), { return *request = 0x2c000000, received(status); })
BOTH(Allreduce, (Pointer a, Pointer b, int n, int t, int op, int comm),
     { return (void)a, (void)b, (void)n, (void)t, (void)op, (void)comm, 0; })
/* One of tag 13 fails when it is asked for: it is over then, and was it ready? The flag says nothing. */
BOTH(Test, (int* request, int* flag, Pointer status), {
  (void)status;
  if (request && *request == 13) return *request = 0x2c000000, 15;
  *flag = __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED) % 2;
  return 0;
})
