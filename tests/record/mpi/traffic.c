/* Every way to move data, a few times each, with any number of ranks from 2 on. Prints a checksum that no recorder may change. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, right, left;
static double out[4096], in[4096];
static long sum;

static void seen(const void *bytes, int n) { for (int i = 0; i < n; i++) sum = sum * 31 % 1000003 + ((const unsigned char *)bytes)[i]; }

static void point_to_point(MPI_Comm comm) {
  static char space[65536];
  MPI_Request r[6];
  MPI_Status s[6];
  MPI_Message message;
  int flag = 0, index, count, indices[4];
  void *detached;
  MPI_Buffer_attach(space, sizeof space);
  for (int i = 0; i < 3; i++) {
    MPI_Irecv(in, 100, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r[0]); /* larger than what comes */
    MPI_Ssend(out, 10 + i, MPI_DOUBLE, right, 3 + i, comm);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE), seen(in, 80);
  }
  MPI_Bsend(out, 5, MPI_INT, right, 1, comm);
  MPI_Recv(in, 50, MPI_INT, left, 1, comm, &s[0]);
  MPI_Isend(out, 7, MPI_FLOAT, right, 2, comm, &r[0]); /* all of these are over at once, and may share a request */
  MPI_Isend(out, 8, MPI_FLOAT, right, 2, comm, &r[1]);
  MPI_Ibsend(out, 9, MPI_FLOAT, right, 2, comm, &r[2]);
  MPI_Issend(out, 11, MPI_FLOAT, right, 2, comm, &r[3]);
  MPI_Probe(left, 2, comm, &s[0]);
  for (int i = 0; i < 4; i++) MPI_Recv(in, 64, MPI_FLOAT, left, 2, comm, MPI_STATUS_IGNORE);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  MPI_Send(out, 12, MPI_BYTE, right, 4, comm), MPI_Send(out, 13, MPI_BYTE, right, 4, comm);
  MPI_Mprobe(left, 4, comm, &message, &s[0]), MPI_Mrecv(in, 12, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 4, comm, &flag, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(in, 20, MPI_BYTE, &message, &r[0]), MPI_Wait(&r[0], &s[0]);
  for (int i = 0; i < 4; i++) MPI_Irecv(in + 64 * i, 64, MPI_DOUBLE, left, 10 + i, comm, &r[i]);
  for (int i = 0; i < 4; i++) MPI_Send(out, i, MPI_DOUBLE, right, 10 + i, comm);
  MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
  MPI_Waitsome(4, r, &count, indices, MPI_STATUSES_IGNORE);
  for (flag = 0; !flag;) MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE);
  MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE); /* nothing left: index is MPI_UNDEFINED */
  MPI_Sendrecv(out, 3, MPI_INT, right, 1, in, 9, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(in, 4, MPI_INT, right, 1, left, 1, comm, &s[0]);
  MPI_Send(out, 99, MPI_INT, MPI_PROC_NULL, 1, comm), MPI_Recv(in, 99, MPI_INT, MPI_PROC_NULL, 1, comm, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 4, MPI_INT, right, 77, comm, &r[0]); /* nobody sends it */
  MPI_Cancel(&r[0]), MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Isend(out, 6, MPI_INT, right, 8, comm, &r[0]), MPI_Request_free(&r[0]);
  MPI_Recv(in, 6, MPI_INT, left, 8, comm, MPI_STATUS_IGNORE);
  MPI_Recv_init(in, 32, MPI_DOUBLE, MPI_ANY_SOURCE, 9, comm, &r[0]);
  MPI_Send_init(out, 21, MPI_DOUBLE, right, 9, comm, &r[1]), MPI_Ssend_init(out, 22, MPI_DOUBLE, right, 9, comm, &r[2]);
  for (int i = 0; i < 4; i++) {
    MPI_Start(&r[0]), MPI_Start(&r[1 + i % 2]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE), MPI_Wait(&r[1 + i % 2], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 3; i++) MPI_Request_free(&r[i]);
  MPI_Buffer_detach(&detached, &count);
}

static void collectives(MPI_Comm comm) {
  int n, me, counts[64], offsets[64], zeros[64] = {0};
  MPI_Datatype types[64];
  MPI_Request r[4];
  MPI_Comm_size(comm, &n), MPI_Comm_rank(comm, &me);
  for (int i = 0; i < n; i++) counts[i] = i + 1, offsets[i] = i * (i + 1) / 2, types[i] = MPI_INT;
  MPI_Barrier(comm);
  MPI_Bcast(in, 10, MPI_INT, n - 1, comm);
  MPI_Reduce(out, in, 11, MPI_INT, MPI_SUM, 0, comm);
  MPI_Reduce(me == 0 ? MPI_IN_PLACE : out, in, 12, MPI_INT, MPI_SUM, 0, comm);
  MPI_Allreduce(out, in, 13, MPI_DOUBLE, MPI_SUM, comm), MPI_Allreduce(MPI_IN_PLACE, in, 14, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Scan(out, in, 15, MPI_INT, MPI_SUM, comm), MPI_Exscan(out, in, 16, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm), MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, comm);
  MPI_Gather(out, 3, MPI_INT, in, 3, MPI_INT, 1, comm);
  MPI_Gather(me == 1 ? MPI_IN_PLACE : out, 3, MPI_INT, in, 3, MPI_INT, 1, comm);
  MPI_Gatherv(out, counts[me], MPI_INT, in, counts, offsets, MPI_INT, 0, comm);
  MPI_Scatter(out, 4, MPI_INT, in, 4, MPI_INT, 0, comm);
  MPI_Scatterv(out, counts, offsets, MPI_INT, me == 0 ? MPI_IN_PLACE : (void *)in, counts[me], MPI_INT, 0, comm);
  MPI_Allgather(out, 5, MPI_INT, in, 5, MPI_INT, comm), MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_INT, comm);
  MPI_Allgatherv(out, counts[me], MPI_INT, in, counts, offsets, MPI_INT, comm);
  MPI_Alltoall(out, 6, MPI_INT, in, 6, MPI_INT, comm), MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, MPI_INT, comm);
  for (int i = 0; i < n; i++) counts[i] = 2;
  MPI_Alltoallv(out, counts, offsets, MPI_INT, in, counts, offsets, MPI_INT, comm);
  MPI_Alltoallw(out, counts, zeros, types, in, counts, zeros, types, comm);
  MPI_Ibarrier(comm, &r[0]), MPI_Ibcast(in, 7, MPI_INT, 0, comm, &r[1]);
  MPI_Iallreduce(out, in + 100, 8, MPI_INT, MPI_SUM, comm, &r[2]), MPI_Igather(out, 9, MPI_INT, in + 200, 9, MPI_INT, 0, comm, &r[3]);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
#if MPI_VERSION >= 4
  MPI_Allreduce_init(out, in, 17, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
  for (int i = 0; i < 3; i++) MPI_Start(&r[0]), MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&r[0]);
#endif
  MPI_Allreduce(out, in, 3, MPI_DOUBLE, MPI_SUM, comm), seen(in, 24);
}

static void communicators(void) {
  MPI_Comm half, pair, same, grid, later, between, merged;
  MPI_Group all, some;
  MPI_Request r;
  int dims[1] = {size}, periodic[1] = {1}, remain[1] = {1}, members[2] = {0, 1};
  double cell = rank;
  for (int i = 0; i < 3; i++) { /* their handles are used again */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Allreduce(&cell, in, 1, MPI_DOUBLE, MPI_SUM, half);
    if (i < 2) MPI_Comm_free(&half);
  }
  MPI_Comm_dup(half, &same), MPI_Barrier(same);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank + 1) % 2 ? (size - 1) / 2 * 2 + 1 - (size % 2 ? 2 : 0) : (size - 1) / 2 * 2, 5, &between);
  MPI_Sendrecv(out, 2, MPI_INT, 0, 1, in, 2, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Bcast(in, 3, MPI_INT, rank % 2 ? 0 : rank == (size - 1) / 2 * 2 ? MPI_ROOT : MPI_PROC_NULL, between);
  MPI_Intercomm_merge(between, rank % 2, &merged), MPI_Barrier(merged);
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_Barrier(later);
  MPI_Comm_group(MPI_COMM_WORLD, &all), MPI_Group_incl(all, 2, members, &some);
  if (rank < 2) MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &pair), MPI_Bcast(in, 2, MPI_INT, 1, pair), MPI_Comm_free(&pair);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periodic, 0, &grid);
  int counts[2] = {1, 2}, taken[2] = {2, 1}, offsets[2] = {0, 2};
  MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, grid), MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, grid);
  MPI_Neighbor_alltoallv(out, counts, offsets, MPI_INT, in, taken, offsets, MPI_INT, grid);
  (void)remain;
  MPI_Comm *gone[] = {&half, &same, &grid, &later, &between, &merged};
  for (int i = 0; i < 6; i++) MPI_Comm_free(gone[i]);
  MPI_Group_free(&all), MPI_Group_free(&some);
}

static void windows(void) {
  MPI_Win window;
  MPI_Request r;
  int one = 1, was, *memory;
  MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, 64 * sizeof(int));
  MPI_Win_fence(0, window);
  MPI_Put(out, 5, MPI_INT, right, 0, 5, MPI_INT, window), MPI_Get(in, 6, MPI_INT, left, 8, 6, MPI_INT, window);
  MPI_Accumulate(&one, 1, MPI_INT, right, 20, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  MPI_Get_accumulate(&one, 1, MPI_INT, &was, 1, MPI_INT, right, 21, 1, MPI_INT, MPI_SUM, window);
  MPI_Fetch_and_op(&one, &was, MPI_INT, right, 22, MPI_SUM, window);
  MPI_Win_flush(right, window);
  MPI_Compare_and_swap(&one, &was, in, MPI_INT, right, 23, window);
  MPI_Rput(out, 3, MPI_INT, right, 30, 3, MPI_INT, window, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Win_unlock(right, window);
  MPI_Win_lock_all(0, window), MPI_Win_flush_all(window), MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  seen(memory + 20, 8);
  MPI_Win_free(&window);
}

static void files(const char *name) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, rank * 400, out, 100, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, 400 * size + rank * 80, out, 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(file, left * 400, in, 100, MPI_INT, MPI_STATUS_IGNORE), seen(in, 40);
  MPI_File_read_at_all(file, 480 * size - 8, in, 100, MPI_INT, MPI_STATUS_IGNORE); /* the file ends after 8 bytes */
  MPI_File_close(&file);
}

int main(int argc, char **argv) {
  MPI_Datatype column;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < 4096; i++) out[i] = rank + i;
  for (int i = 2; i < 5; i++) { /* the same handle, another size */
    MPI_Type_vector(3, i, 7, MPI_DOUBLE, &column), MPI_Type_commit(&column);
    MPI_Sendrecv(out, 2, column, right, 1, in, 2, column, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
  }
  point_to_point(MPI_COMM_WORLD);
  collectives(MPI_COMM_WORLD);
  communicators();
  windows();
  files(argc > 1 ? argv[1] : "traffic.bin");
  long all;
  MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %ld\n", size, all);
  MPI_Finalize();
  return 0;
}
