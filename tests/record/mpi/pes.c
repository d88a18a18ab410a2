// OpenSHMEM: steps with barriers, a broadcast, a reduction and a lock to which some PE comes late, and accesses of all
// kinds: `pes STEPS MS`, 4 PEs. Each PE writes when it entered and left calls of many, by the machine's clock (`what step
// enter leave`), and what it moved (`function PE calls bytes`). It fails if a value did not arrive.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE *out, *moved;
static int me, step;
static long numbers[8], count, lock, flag;
static long sync_all[4][SHMEM_REDUCE_SYNC_SIZE], sync_some[SHMEM_BARRIER_SYNC_SIZE];
static double real, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], sum, part;
static float little;
static long double wide;

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static void pause_if(int is_late, long ms) {
  struct timespec length = {ms / 1000, ms % 1000 * 1000000};
  if (is_late && ms) nanosleep(&length, NULL);
}

static void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "PE %d: %s\n", me, what);
  shmem_global_exit(1);
}

#define TIMED(what, call)                                        \
  do {                                                           \
    const long long enter = now();                               \
    call;                                                        \
    fprintf(out, "%s %d %lld %lld\n", what, step, enter, now()); \
  } while (0)

static void accesses(int next, int before, shmem_ctx_t context) {
  const long own[4] = {me, step, 3, 4};
  shmem_putmem(numbers, own, sizeof own, next);
  shmem_ctx_long_put_nbi(context, numbers + 4, own, 2, next);
  shmem_ctx_quiet(context);
  shmem_long_iput(numbers + 6, own, 1, 2, 2, next);
  shmem_float_p(&little, 0.5f + (float)me, next);
  shmem_longdouble_p(&wide, 0.25L + me, next);
  shmem_double_p(&real, 0.125 + me, next);
  TIMED("barrier", shmem_barrier_all());
  expect(numbers[0] == before && numbers[5] == step && numbers[6] == before && numbers[7] == 3, "puts");
  expect(little == 0.5f + (float)before && wide == 0.25L + before && real == 0.125 + before, "values put");
  long there[2];
  shmem_long_get(there, numbers, 2, next);
  expect(there[0] == me && there[1] == step, "get");
  expect(shmem_double_g(&real, next) == 0.125 + me && shmem_float_g(&little, next) == 0.5f + (float)me, "values got");
  TIMED("barrier", shmem_barrier_all());
  expect(shmem_double_atomic_swap(&real, 7.5, next) == 0.125 + me, "swap");
  shmem_long_atomic_fetch_add(&count, 2, 0);
  shmem_long_atomic_inc(&count, 0);
  TIMED("barrier", shmem_barrier_all());
  expect(shmem_long_atomic_fetch(&count, 0) == 12 * (step + 1), "atomics");
  expect(real == 7.5, "swapped");
}

int main(int argc, char** argv) {
  const int steps = atoi(argv[1]);
  const long ms = atol(argv[2]);
  char name[40];
  (void)argc;
  shmem_init();
  me = shmem_my_pe();
  const int size = shmem_n_pes(), next = (me + 1) % size, before = (me + size - 1) % size;
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < SHMEM_REDUCE_SYNC_SIZE; k++) sync_all[i][k] = SHMEM_SYNC_VALUE;
  for (int k = 0; k < SHMEM_BARRIER_SYNC_SIZE; k++) sync_some[k] = SHMEM_SYNC_VALUE;
  snprintf(name, sizeof name, "called-%d.txt", me);
  out = fopen(name, "w");
  long* heap = shmem_malloc(64);
  shmem_ctx_t context;
  shmem_ctx_create(0, &context);
  TIMED("barrier", shmem_barrier_all());
  for (step = 0; step < steps; step++) {
    pause_if(me == 2, ms);
    TIMED("barrier", shmem_barrier_all());
    part = me;
    pause_if(me == 1, ms);
    TIMED("broadcast", shmem_broadcast64(&real, &part, 1, 1, 0, 0, size, sync_all[0]));
    expect(me == 1 || real == 1, "broadcast");
    TIMED("barrier", shmem_barrier_all());
    pause_if(me == 3, ms);
    TIMED("sum", shmem_double_sum_to_all(&sum, &part, 1, 0, 0, size, work, sync_all[1]));
    expect(sum == 6, "sum");
    TIMED("barrier", shmem_barrier_all());
    if (me % 2 == 0) {  // PEs 0 and 2
      pause_if(me == 0, ms);
      TIMED("some", shmem_barrier(0, 1, 2, sync_some));
    }
    accesses(next, before, context);
    if (me == 0) TIMED("lock", shmem_set_lock(&lock));
    TIMED("barrier", shmem_barrier_all());
    if (me == 0) {
      pause_if(1, ms);
      TIMED("unlock", shmem_clear_lock(&lock));
    } else if (me == 3) {
      TIMED("lock", shmem_set_lock(&lock));
      TIMED("unlock", shmem_clear_lock(&lock));
    }
    TIMED("barrier", shmem_barrier_all());
    if (me == 1) {
      pause_if(1, ms);
      shmem_long_p(&flag, step + 1, 2);
    } else if (me == 2) {
      shmem_long_wait_until(&flag, SHMEM_CMP_EQ, step + 1);
    }
    TIMED("collect", shmem_fcollect64(heap, &count, 1, 0, 0, size, sync_all[2]));
    TIMED("barrier", shmem_barrier_all());
  }
  snprintf(name, sizeof name, "moved-%d.txt", me);
  moved = fopen(name, "w");
  fprintf(moved, "put %d %d %d\n", next, 6 * steps, (32 + 16 + 16 + 4 + 16 + 8) * steps);
  fprintf(moved, "get %d %d %d\n", next, 3 * steps, (16 + 8 + 4) * steps);
  fprintf(moved, "atomic %d %d %d\n", next, steps, 16 * steps);
  fprintf(moved, "atomic 0 %d %d\n", 3 * steps, (16 + 8 + 8) * steps);
  if (me == 1) fprintf(moved, "put 2 %d %d\n", steps, 8 * steps);
  shmem_ctx_destroy(context);
  shmem_free(heap);
  fclose(out);
  fclose(moved);
  printf("PE %d of %d is done\n", me, size);
  shmem_finalize();
  return 0;
}
