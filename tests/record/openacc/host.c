// Constructs of OpenACC that GCC's runtime executes on the host. The line of each construct has its name at the end.
#include <openacc.h>
#include <stdio.h>

enum { kCount = 1000, kSteps = 20 };
static double from[kCount], to[kCount];

int main(void) {
#pragma acc data copyin(from) copyout(to)  // data
  for (int step = 0; step < kSteps; step++) {
#pragma acc parallel loop  // parallel
    for (int i = 0; i < kCount; i++) to[i] = from[i] + step;
#pragma acc update host(to)  // update
  }
#pragma acc enter data copyin(from)  // enter data
#pragma acc exit data delete (from)  // exit data
  printf("%g %g\n", to[0], to[1]);
  return 3;
}
