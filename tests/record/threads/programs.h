// What the programs of this folder share: their own clocks, and what they print.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static int64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}
static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static int64_t cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// Computes until this thread has had so much CPU time more. The result is used, so that nothing is optimised away.
static volatile double sink;
static inline __attribute__((always_inline)) void spin(int64_t ns) {
  const int64_t until = cpu_ns() + ns;
  while (cpu_ns() < until)
    for (int i = 0; i < 20000; i++) sink = sink * 0.5 + i;
}
