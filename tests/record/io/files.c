/* Does I/O of known sizes on known files, in threads and a forked child, and counts it itself: lines of "file function
   calls bytes", which a trace must have. With an argument it prints `ready` and its number first, and waits to be killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, TIMES = 50 };
static char block[1000];

static void need(int true) {
  if (!true) perror("files"), exit(9);
}

static void *writes(void *name) {
  int file = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
  for (int i = 0; i < TIMES; i++) need(write(file, block, 10 + i) == 10 + i);
  struct iovec parts[2] = {{block, 100}, {block, 23}};
  need(writev(file, parts, 2) == 123 && pwrite(file, block, 7, 0) == 7);
  need(fsync(file) == 0 && fdatasync(file) == 0 && lseek(file, 0, SEEK_SET) == 0);
  need(read(file, block, 300) == 300 && pread(file, block, 11, 5) == 11 && readv(file, parts, 2) == 123);
  void *map = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, file, 0);
  need(map != MAP_FAILED && mmap(NULL, 100, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  int other = dup(file);
  need(read(other, block, 50) == 50 && close(other) == 0 && close(file) == 0);
  return NULL;
}

static void counted(const char *name) {
  const char *rows[] = {"open 1 0", "writev 1 123", "pwrite 1 7", "fsync 1 0", "fdatasync 1 0", "lseek 1 0", "read 2 350",
                        "pread 1 11", "readv 1 123", "mmap 1 0", "close 2 0"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) printf("%s %s\n", name, rows[i]);
  int bytes = 0;
  for (int i = 0; i < TIMES; i++) bytes += 10 + i;
  printf("%s write %d %d\n", name, TIMES, bytes);
}

int main(int count, char **words) {
  static char names[THREADS + 1][20];
  pthread_t threads[THREADS];
  for (int i = 0; i <= THREADS; i++) sprintf(names[i], "file-%d", i);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, writes, names[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pid_t child = fork();
  if (!child) {
    writes(names[THREADS]);
    exit(0);
  }
  waitpid(child, NULL, 0);
  /* Another file gets the number of one that the C library has closed. */
  FILE *stream = fopen("stream", "w");
  need(fwrite(block, 10, 30, stream) == 30 && fflush(stream) == 0 && fclose(stream) == 0);
  need((stream = fopen("stream", "r")) && fread(block, 7, 100, stream) == 42 && fclose(stream) == 0);
  int file = open("later", O_CREAT | O_WRONLY, 0600);
  need(write(file, block, 5) == 5 && close(file) == 0);
  need(close(file) != 0);  // has no name any more: not counted. Threads are over, which would have got its number
  int missing = open("missing", O_RDONLY);
  need(missing == -1);
  if (count > 1) printf("ready\n%d\n", getpid());
  for (int i = 0; i <= THREADS; i++) counted(names[i]);
  puts("stream fopen 2 0\nstream fwrite 1 300\nstream fflush 1 0\nstream fread 1 294\nstream fclose 2 0");
  puts("later open 1 0\nlater write 1 5\nlater close 1 0");
  fflush(stdout);
  if (count > 1) puts("end"), fflush(stdout), pause();
  return 0;
}
