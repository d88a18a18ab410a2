/* A heat plate as real solvers are: halo exchange with derived data types at a wall (MPI_PROC_NULL), a task farm from anybody with
   MPI_Waitsome, neighbourhood collectives on a graph and at the wall, passive and active one-sided access, a file with views,
   partitioned messages. Each rank keeps its own account, by hand: at the end "NAME PEER CALLS SENT RECEIVED" lines go into
   plate-RANK.txt, PEER a rank of MPI_COMM_WORLD, or - where a call has none. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NX = 16, NY = 12, STEPS = 10, TASKS = 40 };
static int rank, size;
static double plate[NX + 2][NY + 2], out[4096], in[4096];

static struct { const char *name; int peer; long calls, sent, received; } account[500];
static void told(const char *name, int peer, long calls, long sent, long received) {
  int i = 0;
  if (peer < 0) peer = -1; /* MPI_PROC_NULL */
  while (account[i].name && (strcmp(account[i].name, name) || account[i].peer != peer)) i++;
  account[i].name = name, account[i].peer = peer;
  account[i].calls += calls, account[i].sent += sent, account[i].received += received;
}
#define T(name, ...) told("MPI_" #name, __VA_ARGS__)
#define ALONE(name) T(name, -1, 1, 0, 0)

static void halos(void) {
  int dims[2] = {0, 0}, walls[2] = {0, 0}, up, down, left, right;
  MPI_Comm grid;
  MPI_Datatype column;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, walls, 0, &grid), ALONE(Cart_create);
  MPI_Cart_shift(grid, 0, 1, &up, &down), MPI_Cart_shift(grid, 1, 1, &left, &right);
  MPI_Type_vector(NX, 1, NY + 2, MPI_DOUBLE, &column), MPI_Type_commit(&column);
  for (int step = 0; step < STEPS; step++) {
    MPI_Request r[8];
    const int peers[4] = {up, down, left, right}, bytes[4] = {8 * NY, 8 * NY, 8 * NX, 8 * NX};
    MPI_Irecv(&plate[0][1], NY, MPI_DOUBLE, up, 1, grid, &r[0]), MPI_Irecv(&plate[NX + 1][1], NY, MPI_DOUBLE, down, 2, grid, &r[1]);
    MPI_Irecv(&plate[1][0], 1, column, left, 3, grid, &r[2]), MPI_Irecv(&plate[1][NY + 1], 1, column, right, 4, grid, &r[3]);
    MPI_Isend(&plate[1][1], NY, MPI_DOUBLE, up, 2, grid, &r[4]), MPI_Isend(&plate[NX][1], NY, MPI_DOUBLE, down, 1, grid, &r[5]);
    MPI_Isend(&plate[1][1], 1, column, left, 4, grid, &r[6]), MPI_Isend(&plate[1][NY], 1, column, right, 3, grid, &r[7]);
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE), ALONE(Waitall);
    for (int i = 0; i < 4; i++) {
      const int moved = peers[i] == MPI_PROC_NULL ? 0 : bytes[i];
      T(Irecv, peers[i], 1, 0, moved), T(Isend, peers[i], 1, moved, 0);
    }
  }
  /* At a wall nothing comes and nothing goes, whatever the counts say. */
  const int neighbours = (up >= 0) + (down >= 0) + (left >= 0) + (right >= 0), counts[4] = {1, 2, 3, 4}, offsets[4] = {0, 4, 8, 12};
  const int there = (up >= 0) * 1 + (down >= 0) * 2 + (left >= 0) * 3 + (right >= 0) * 4;
  const int most[4] = {2, 1, 4, 3}; /* what comes from above is what that one sends down */
  MPI_Aint places[4] = {0, 64, 128, 192};
  MPI_Datatype types[4] = {MPI_DOUBLE, MPI_DOUBLE, column, column};
  MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, grid), T(Neighbor_alltoall, -1, 1, 12 * neighbours, 12 * neighbours);
  MPI_Neighbor_allgather(out, 5, MPI_INT, in, 5, MPI_INT, grid), T(Neighbor_allgather, -1, 1, 20 * neighbours, 20 * neighbours);
  const int coming = (up >= 0) * 2 + (down >= 0) * 1 + (left >= 0) * 4 + (right >= 0) * 3;
  MPI_Neighbor_alltoallv(out, counts, offsets, MPI_INT, in, most, offsets, MPI_INT, grid), T(Neighbor_alltoallv, -1, 1, 4 * there, 4 * coming);
  const int ones[4] = {1, 1, 1, 1};
  const long around = ((up >= 0) + (down >= 0)) * 8 + ((left >= 0) + (right >= 0)) * 8 * NX;
  MPI_Request r;
  MPI_Ineighbor_alltoallw(plate, ones, places, types, plate[0] + 100, ones, places, types, grid, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
  T(Ineighbor_alltoallw, -1, 1, around, around), ALONE(Wait);
  MPI_Type_free(&column), MPI_Comm_free(&grid), ALONE(Comm_free);
}

static void farm(void) { /* rank 0 hands tasks out; a task's number is its tag, and how many doubles come back */
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own), ALONE(Comm_dup);
  if (rank == 0) {
    MPI_Request r[64];
    MPI_Status s[64];
    int left = size - 1, next = 1, n, which[64];
    for (int i = 0; i < size - 1; i++) {
      MPI_Send(&next, 1, MPI_INT, i + 1, next, own), T(Send, i + 1, 1, 4, 0), next++;
      MPI_Irecv(in + 64 * i, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &r[i]);
    }
    while (left) {
      MPI_Waitsome(size - 1, r, &n, which, s), ALONE(Waitsome);
      for (int i = 0; i < n; i++) {
        int task = next <= TASKS ? next : 0, from = s[i].MPI_SOURCE;
        T(Irecv, from, 1, 0, 8l * s[i].MPI_TAG);
        MPI_Send(&task, 1, MPI_INT, from, task, own), T(Send, from, 1, 4, 0);
        if (task)
          next++, MPI_Irecv(in + 64 * which[i], 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &r[which[i]]);
        else
          left--;
      }
    }
  } else {
    for (int task;;) {
      MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, own, MPI_STATUS_IGNORE), T(Recv, 0, 1, 0, 4);
      if (!task) break;
      MPI_Send(out, task, MPI_DOUBLE, 0, task, own), T(Send, 0, 1, 8l * task, 0);
    }
  }
  MPI_Comm_free(&own), ALONE(Comm_free);
}

static void graphs(void) { /* each sends to the next two, as often as they differ */
  MPI_Comm ring, star;
  MPI_Request r;
  int to[2] = {(rank + 1) % size, (rank + 2) % size}, from[2] = {(rank + size - 1) % size, (rank + size - 2) % size};
  int counts[2] = {rank + 1, 2}, coming[2] = {from[0] + 1, 2}, offsets[2] = {0, 64}, ends[64], edges[64];
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  ALONE(Dist_graph_create_adjacent);
  MPI_Neighbor_alltoallv(out, counts, offsets, MPI_INT, in, coming, offsets, MPI_INT, ring);
  T(Neighbor_alltoallv, -1, 1, 4 * (rank + 3), 4 * (from[0] + 3));
  MPI_Ineighbor_allgather(out, 6, MPI_DOUBLE, in, 6, MPI_DOUBLE, ring, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
  T(Ineighbor_allgather, -1, 1, 96, 96), ALONE(Wait);
  for (int i = 0, n = 0; i < size; i++) { /* rank 0 has all others as neighbours, they have it */
    if (i == 0) for (int k = 1; k < size; k++) edges[n++] = k;
    else edges[n++] = 0;
    ends[i] = n;
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, 0, &star), ALONE(Graph_create);
  const long neighbours = rank == 0 ? size - 1 : 1;
  MPI_Neighbor_allgather(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, star), T(Neighbor_allgather, -1, 1, 24 * neighbours, 24 * neighbours);
  MPI_Comm_free(&ring), MPI_Comm_free(&star), T(Comm_free, -1, 2, 0, 0);
}

static void windows(void) {
  MPI_Win window;
  MPI_Group all, before, after;
  MPI_Request r[3];
  double *memory, one = 1, was;
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Win_allocate(8 * 256, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window), ALONE(Win_allocate);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window), T(Win_lock, -1, 1, 0, 0);
  MPI_Put(out, 10, MPI_DOUBLE, next, 0, 10, MPI_DOUBLE, window), T(Put, next, 1, 80, 0);
  MPI_Put(out, 10, MPI_DOUBLE, MPI_PROC_NULL, 0, 10, MPI_DOUBLE, window), ALONE(Put);
  MPI_Win_unlock(next, window), T(Win_unlock, -1, 1, 0, 0);
  MPI_Win_lock_all(0, window), ALONE(Win_lock_all);
  MPI_Rput(out, 7, MPI_DOUBLE, next, 16, 7, MPI_DOUBLE, window, &r[0]), T(Rput, next, 1, 56, 0);
  MPI_Rget(in, 9, MPI_DOUBLE, previous, 32, 9, MPI_DOUBLE, window, &r[1]), T(Rget, previous, 1, 0, 72);
  MPI_Raccumulate(out, 3, MPI_DOUBLE, next, 48, 3, MPI_DOUBLE, MPI_SUM, window, &r[2]), T(Raccumulate, next, 1, 24, 0);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE), ALONE(Waitall);
  MPI_Get_accumulate(out, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, next, 64, 4, MPI_DOUBLE, MPI_SUM, window), T(Get_accumulate, next, 1, 32, 32);
  for (int i = 0; i < 5; i++) MPI_Fetch_and_op(&one, &was, MPI_DOUBLE, 0, 80, MPI_SUM, window), T(Fetch_and_op, 0, 1, 8, 8);
  MPI_Win_flush(0, window), T(Win_flush, -1, 1, 0, 0);
  MPI_Win_unlock_all(window), ALONE(Win_unlock_all);
  MPI_Win_get_group(window, &all), MPI_Group_incl(all, 1, &previous, &before), MPI_Group_incl(all, 1, &next, &after);
  MPI_Win_post(before, 0, window), MPI_Win_start(after, 0, window), ALONE(Win_post), ALONE(Win_start);
  MPI_Get(in, 2, MPI_DOUBLE, next, 100, 2, MPI_DOUBLE, window), T(Get, next, 1, 0, 16);
  MPI_Win_complete(window), MPI_Win_wait(window), ALONE(Win_complete), ALONE(Win_wait);
  MPI_Group_free(&all), MPI_Group_free(&before), MPI_Group_free(&after);
  MPI_Win_free(&window), ALONE(Win_free);
}

static void files(const char *name) { /* each rank has every size-th block of 4 doubles */
  MPI_File file;
  MPI_Datatype blocks;
  MPI_Request r;
  MPI_Type_vector(8, 4, 4 * size, MPI_DOUBLE, &blocks), MPI_Type_commit(&blocks);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file), ALONE(File_open);
  MPI_File_set_view(file, 32l * rank, MPI_DOUBLE, blocks, "native", MPI_INFO_NULL), ALONE(File_set_view);
  MPI_File_write_all(file, out, 32, MPI_DOUBLE, MPI_STATUS_IGNORE), T(File_write_all, -1, 1, 256, 0);
  MPI_File_seek(file, 0, MPI_SEEK_SET), ALONE(File_seek);
  MPI_File_read_all(file, in, 32, MPI_DOUBLE, MPI_STATUS_IGNORE), T(File_read_all, -1, 1, 0, 256);
  MPI_File_iwrite_at(file, 4, out, 8, MPI_DOUBLE, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), T(File_iwrite_at, -1, 1, 64, 0), ALONE(Wait);
  MPI_File_sync(file), ALONE(File_sync);
  MPI_File_seek(file, 8, MPI_SEEK_SET), ALONE(File_seek);
  MPI_File_read_all_begin(file, in, 16, MPI_DOUBLE), ALONE(File_read_all_begin);
  MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE), T(File_read_all_end, -1, 1, 0, 128);
  MPI_File_close(&file), ALONE(File_close);
  MPI_Type_free(&blocks);
}

static void parts(void) { /* four parts of three doubles, twice */
  MPI_Request r[2];
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Psend_init(out, 4, 3, MPI_DOUBLE, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]), T(Psend_init, next, 1, 0, 0);
  MPI_Precv_init(in, 4, 3, MPI_DOUBLE, previous, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]), T(Precv_init, previous, 1, 0, 0);
  for (int i = 0; i < 2; i++) {
    MPI_Startall(2, r), ALONE(Startall);
    MPI_Pready(3, r[0]), MPI_Pready_range(0, 2, r[0]), ALONE(Pready), ALONE(Pready_range);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE), ALONE(Waitall), T(Psend_init, next, 0, 96, 0), T(Precv_init, previous, 0, 0, 96);
  }
  MPI_Request_free(&r[0]), MPI_Request_free(&r[1]), T(Request_free, -1, 2, 0, 0);
}

int main(int argc, char **argv) {
  int level;
  char name[64];
  double sum = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), ALONE(Init_thread);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 4096; i++) out[i] = rank + i;
  for (int i = 1; i <= NX; i++) for (int k = 1; k <= NY; k++) plate[i][k] = rank * i + k;
  halos(), farm(), graphs(), windows(), files(argc > 1 ? argv[1] : "plate.bin");
  if (argc > 2) parts();
  for (int i = 0; i < 64; i++) sum += in[i] + plate[0][i % NY];
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), T(Allreduce, -1, 1, 8 * (size - 1), 8 * (size - 1));
  if (rank == 0) printf("%d ranks\n", size);
  ALONE(Finalize);
  snprintf(name, sizeof name, "plate-%d.txt", rank);
  FILE *file = fopen(name, "w");
  for (int i = 0; account[i].name; i++) {
    char peer[16] = "-";
    if (account[i].peer >= 0) snprintf(peer, sizeof peer, "%d", account[i].peer);
    fprintf(file, "%s %s %ld %ld %ld\n", account[i].name, peer, account[i].calls, account[i].sent, account[i].received);
  }
  fclose(file);
  MPI_Finalize();
  return 0;
}
