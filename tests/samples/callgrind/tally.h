static inline __attribute__((always_inline)) long square(long x) {
  return x * x;
}

static long tally(const int *values, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) sum += square(values[i]);
  return sum;
}
