/* Of the recorder's threads every second reading of the clock ends 0.3 ms late, as if they were interrupted there. Preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  static _Thread_local unsigned readings;
  const struct timespec late = {0, 300000};
  Dl_info from;
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (clock == CLOCK_MONOTONIC && dladdr(__builtin_return_address(0), &from) && strstr(from.dli_fname, "libstrobe") && ++readings % 2)
    nanosleep(&late, NULL);
  return result;
}
