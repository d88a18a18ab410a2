/* A loop that does nothing but write and sync. */
#include <fcntl.h>
#include <unistd.h>

int main(void) {
  static char block[65536];
  int file = open("loop.dat", O_CREAT | O_WRONLY | O_TRUNC, 0600);
  for (int i = 0; i < 200; i++)
    if (write(file, block, sizeof block) < 0 || fsync(file) < 0) return 1;
  return 0;
}
