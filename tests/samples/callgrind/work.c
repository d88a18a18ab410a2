// The program of the samples: no library, so that the profile holds nothing else. How: README.md.
#include "tally.h"

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static long odd(int n);
static long even(int n) { return n == 0 ? 1 : odd(n - 1); }
static long odd(int n) { return n == 0 ? 0 : 1 + even(n - 1); }

volatile int rounds = 3; // without data that can be written, valgrind looks for no names

static long work(void) {
  int values[64];
  for (int i = 0; i < 64; i++) values[i] = (i * 37) % 64;
  long total = fib(8) + even(9);
  for (int i = 0; i < rounds; i++) total += tally(values, 64);
  return total;
}

void _start(void) {
  long status = work() == 0;
  __asm__ volatile("syscall" : : "a"(60), "D"(status));
}
