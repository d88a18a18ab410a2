// Each rank writes 100 bytes to its own file, 10 times and as often again as its rank, and reads 5 bytes of it.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char** words) {
  char name[20], block[100] = {0};
  int rank, bad = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "rank-%d", rank);
  int file = open(name, O_CREAT | O_RDWR, 0600);
  for (int i = 0; i < 10 + rank; i++) bad |= write(file, block, sizeof block) != sizeof block;
  bad |= lseek(file, 50, SEEK_SET) != 50 || read(file, block, 5) != 5 || close(file) != 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return bad;
}
