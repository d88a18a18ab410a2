// Reads single pages at random places of a file: `cold` (not in memory), `mapped` (the same through a mapping) or
// `cached`. Prints how long the main thread slept in that, as the time that is neither CPU time nor time without a core
// by the kernel's count, and how long the loop lasted with a core: `NAME NS` a line.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs.h"

enum { kPages = 4096, kPage = 4096, kReads = 60, kSteps = 80 };
static char page[kPage];
static uint64_t places = 12345;

static int64_t without_core_ns(void) {
  long long ran = 0, without = 0;
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  if (file && fscanf(file, "%lld %lld", &ran, &without) < 2) without = 0;
  if (file) fclose(file);
  return without;
}

static long next_place(void) {
  places = places * 6364136223846793005ull + 1442695040888963407ull;
  return (long)(places >> 33) % kPages * kPage;
}

__attribute__((noinline)) static void fetch(int fd, const char* mapped) {
  for (int i = 0; i < kReads; i++)
    if (mapped)
      sink = mapped[next_place()];
    else if (pread(fd, page, kPage, next_place()) != kPage)
      exit(1);
}

int main(int count, char** words) {
  const int cold = count > 1 && strcmp(words[1], "cached"), by_map = cold && !strcmp(words[1], "mapped");
  const int fd = open("pages", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < kPages; i++)
    if (write(fd, page, kPage) != kPage) return 1;
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  const int64_t begin = now_ns() - without_core_ns();
  int64_t slept = 0;
  for (int step = 0; step < kSteps; step++) {
    char* mapped = NULL;
    if (cold) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (by_map) mapped = mmap(NULL, kPages * kPage, PROT_READ, MAP_SHARED, fd, 0);
    if (by_map) madvise(mapped, kPages * kPage, MADV_RANDOM);
    const int64_t busy = cpu_ns() + without_core_ns(), from = now_ns();
    for (int i = 0; i < (cold ? 1 : 200); i++) fetch(fd, mapped);
    slept += now_ns() - from - (cpu_ns() + without_core_ns() - busy);
    if (by_map) munmap(mapped, kPages * kPage);
    spin(500000);
  }
  printf("slept %lld\nlasted %lld\n", (long long)slept, (long long)(now_ns() - without_core_ns() - begin));
  return 0;
}
