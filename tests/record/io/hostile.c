/* What must go on as without a recorder: errno, a handler that writes while malloc is interrupted, vfork, a thread that
   is cancelled in a read. Prints what it saw. */
#ifdef EARLY /* a library that is initialised before any that is preloaded */
#include <fcntl.h>
static int file = -1;
__attribute__((constructor)) static void early(void) { file = open("/dev/null", O_WRONLY); }
int opened_early(void) { return file; }
#else
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
int opened_early(void);

static void handler(int number) {
  (void)number;
  const int before = errno;
  char name[32];
  /* New names and closed files, so that nothing is known of them. */
  snprintf(name, sizeof name, "handled-%d", (int)(handled++ % 50));
  int file = open(name, O_CREAT | O_WRONLY, 0600);
  if (file >= 0 && write(file, "x", 1) == 1) close(file);
  errno = before;
}

static void *allocates(void *nothing) {
  while (handled < 300) {
    void *parts[50];
    for (int i = 0; i < 50; i++) parts[i] = malloc((size_t)(rand() % 5000));
    for (int i = 0; i < 50; i++) free(parts[i]);
  }
  return nothing;
}

static void *waits(void *pipe) {
  char byte;
  return (void *)(read(*(int *)pipe, &byte, 1) + 100);
}

int main(void) {
  printf("early %d\n", write(opened_early(), "x", 1) == 1);
  errno = 7;
  int null = open("/dev/null", O_WRONLY);
  printf("errno %d", errno);
  write(null, "x", 1), close(null);
  printf(" %d", errno);
  printf(" %d", (int)read(-1, (char[1]){0}, 1));
  printf(" %d", errno == EBADF);
  open((char *)8, O_RDONLY);
  printf(" %d\n", errno == EFAULT);

  int file = open("kept", O_CREAT | O_RDWR, 0600);
  write(file, "1234", 4);
  pid_t child = vfork();
  if (!child) {
    close(file);
    if (open("of-child", O_CREAT | O_WRONLY, 0600) != file) _exit(3);
    write(file, "in the child", 12);
    execl("/bin/true", "true", (char *)NULL);
    _exit(4);
  }
  int status;
  waitpid(child, &status, 0);
  printf("vfork %d %d\n", WEXITSTATUS(status), (int)write(file, "56", 2));

  signal(SIGALRM, handler);
  struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, allocates, NULL);
  allocates(NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  setitimer(ITIMER_REAL, &never, NULL);
  printf("handled %d\n", handled >= 300);

  int ends[2];
  pipe(ends);
  void *result;
  pthread_create(&threads[0], NULL, waits, &ends[0]);
  pthread_cancel(threads[0]);
  pthread_join(threads[0], &result);
  printf("cancelled %d\n", result == PTHREAD_CANCELED);
  return 0;
}
#endif
