#define _GNU_SOURCE
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int64_t later_ns;
void pass(int64_t ns) { __atomic_add_fetch(&later_ns, ns, __ATOMIC_RELAXED); }
int clock_gettime(clockid_t clock, struct timespec* now) {
  const long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed || clock != CLOCK_MONOTONIC) return (int)failed;
  const int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + __atomic_load_n(&later_ns, __ATOMIC_RELAXED);
  now->tv_sec = ns / 1000000000, now->tv_nsec = ns % 1000000000;
  return 0;
}
