/* program.c - two kinds of kernels on two streams. */
#include "toy.h"

int main(void) {
  toyInit();
  for (int i = 0; i < 50; i++) {
    toyLaunch("toy_gemm", 1, 200000);
    toyLaunch("toy_relu", 2, 50000);
  }
  return 0;
}
