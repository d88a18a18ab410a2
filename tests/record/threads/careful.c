// A program that would notice a recorder: it counts its own SIGPROF, waits for all signals, forks, starts a program, and
// calls what EINTR ends. Prints what came of each, the same in every run.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs.h"

static volatile sig_atomic_t ticks;
static void on_tick(int number) { ticks += number == SIGPROF; }

static void* wait_for_any(void* unused) {
  sigset_t all;
  int number = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  spin(30000000);  // were SIGPROF blocked, it would be waiting now
  sigdelset(&all, SIGCHLD);
  sigwait(&all, &number);
  printf("sigwait got %s\n", strsignal(number));
  return unused;
}

static int child_of_fork(void) {
  const pid_t child = fork();
  if (child == 0) {
    spin(30000000);
    _exit(7);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WEXITSTATUS(status);
}

int main(void) {
  struct sigaction action;
  sigaction(SIGPROF, NULL, &action);
  printf("SIGPROF was %s\n", action.sa_handler == SIG_DFL ? "free" : "taken");
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_any, NULL);
  spin(30000000);
  usleep(100000);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, NULL);
  int interrupted = 0;
  for (int i = 0; i < 20000; i++) {
    struct pollfd none = {-1, POLLIN, 0};
    interrupted += poll(&none, 1, i % 100 == 0) < 0;
  }
  printf("poll interrupted %d times\n", interrupted);
  printf("child ended with %d\n", child_of_fork());
  fflush(stdout);
  printf("command ended with %d\n", WEXITSTATUS(system("exit 5")));
  memset(&action, 0, sizeof action);
  action.sa_handler = on_tick;
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval each = {{0, 10000}, {0, 10000}}, off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &each, NULL);
  while (ticks < 5) spin(1000000);
  setitimer(ITIMER_PROF, &off, NULL);
  printf("own SIGPROF came\n");
  return 3;
}
