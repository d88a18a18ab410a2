// preload.cpp - libstrobe_threads.so, loaded by LD_PRELOAD: programs without Python are sampled from their beginning,
// with the threads that pthread_create makes. In a Python it only waits for what the sampler there asks
// (sampling/native_stacks.h). It is silent in a shell, in programs of the system that others start, and, where MPI's
// launcher was started, in all that do not call MPI.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "adapters/threads/collector.h"
#include "adapters/threads/thread_samples.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

constexpr size_t kSmallStack = 64 << 10;  // has no room for the handler of a signal
// Shells, and what starts the program that it is given, launchers of MPI among them.
constexpr std::string_view kStarters[] = {"ash",
                                          "bash",
                                          "dash",
                                          "ksh",
                                          "sh",
                                          "zsh",
                                          "chrt",
                                          "env",
                                          "ionice",
                                          "nice",
                                          "nohup",
                                          "numactl",
                                          "prlimit",
                                          "setarch",
                                          "setsid",
                                          "stdbuf",
                                          "taskset",
                                          "time",
                                          "timeout",
                                          "mpirun",
                                          "mpiexec",
                                          "mpiexec.hydra",
                                          "hydra_pmi_proxy",
                                          "orterun",
                                          "orted",
                                          "prterun",
                                          "prte",
                                          "prted",
                                          "oshrun",
                                          "shmemrun",
                                          "srun"};

std::atomic<bool> following{false};
int64_t period_ns = 0;

bool is_worth_it() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  const std::string_view program(path, size_t(std::max<ssize_t>(n, 0)));
  const std::string_view name = program.substr(program.rfind('/') + 1);
  if (std::ranges::find(kStarters, name) != std::end(kStarters)) return false;
  const char* supervisor = getenv("STROBE_THREADS_OF");
  if (supervisor && strcmp(supervisor, "mpi") == 0) {
    inside_mpi = reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, "strobe_inside_mpi"));
    return inside_mpi && dlsym(RTLD_DEFAULT, "PMPI_Init");
  }
  const bool main = supervisor && atoi(supervisor) == getppid();
  return main || !(program.starts_with("/usr/bin/") || program.starts_with("/bin/"));
}

void finish() {
  if (!following.exchange(false)) return;
  give_way();
  stop_collector();
}

[[gnu::constructor]] void begin() {
  sem_t unused{};
  sem_post(&unused);  // a handler of the program's may post: it must not be the first to look for that function
  const char* rate = getenv("STROBE_THREADS_HZ");
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized")) {
    unsetenv("STROBE_THREADS_HZ");  // nor are programs that it starts
    return;
  }
  if (!rate || !atoi(rate) || !is_worth_it() || !prepare() || !strobe_begin()) return give_way();
  period_ns = 1000000000 / atoi(rate);
  if (!start_collector()) return give_way();
  pthread_atfork(nullptr, nullptr, [] { following = false, forked(); });
  begin_thread(period_ns);
  following = true;
  atexit(finish);  // before strobe_stop, which strobe_begin has put there
}

struct Start {
  void* (*function)(void*);
  void* argument;
  Creation created;
};

void* run_thread(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  free(argument);
  begin_thread(period_ns, start.created);
  return start.function(start.argument);
}

// Whether the recorder itself calls.
bool is_own(void* caller) {
  static void *const core = base_of(reinterpret_cast<uintptr_t>(&strobe_begin)), *const own = base_of(
                                                                                     reinterpret_cast<uintptr_t>(
                                                                                         &begin));
  void* const base = base_of(reinterpret_cast<uintptr_t>(caller));
  return base && (base == core || base == own);
}

// A set of signals without SIGPROF, while that is ours: who blocks all signals, or waits for any, does not mean it.
class WithoutOurs {
 public:
  explicit WithoutOurs(const sigset_t* set) : set_(set) {
    if (!set || !following || !before()) return;
    mine_ = *set;
    sigdelset(&mine_, SIGPROF);
    set_ = &mine_;
  }
  operator const sigset_t*() const { return set_; }

 private:
  const sigset_t* set_;
  sigset_t mine_;
};

}  // namespace

}  // namespace strobe::threads

using namespace strobe::threads;

#define NEXT(name) STROBE_FOUND(real, next<decltype(&::name)>(#name))

extern "C" {

STROBE_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) {
  NEXT(pthread_create);
  size_t stack = kSmallStack;
  if (attributes) pthread_attr_getstacksize(attributes, &stack);
  auto* start = following && stack >= kSmallStack && !is_own(__builtin_return_address(0))
                    ? static_cast<Start*>(malloc(sizeof(Start)))
                    : nullptr;
  if (!start) return real(thread, attributes, function, argument);
  const bool of_mpi = (mine && mine->created.of_mpi) || (inside_mpi && inside_mpi());
  *start = {
      function,
      argument,
      {mine ? uint32_t(mine->id) : 0, of_mpi, strobe_ticks(), strobe::clock_ns(CLOCK_MONOTONIC), uintptr_t(function)}};
  const int error = real(thread, attributes, run_thread, start);
  if (error) free(start);
  return error;
}

STROBE_API int sigaction(int number, const struct sigaction* to, struct sigaction* from) {
  NEXT(sigaction);
  if (number == SIGPROF && before() && !to) {
    if (from) *from = *before();
    return 0;
  }
  if (number == SIGPROF) give_way();
  return real(number, to, from);
}

STROBE_API sighandler_t signal(int number, sighandler_t handler) {
  NEXT(signal);
  if (number == SIGPROF) give_way();
  return real(number, handler);
}

STROBE_API int setitimer(__itimer_which_t which, const itimerval* to, itimerval* from) noexcept {
  NEXT(setitimer);
  if (which == ITIMER_PROF) give_way();
  return real(which, to, from);
}

STROBE_API int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  NEXT(pthread_sigmask);
  if (how == SIG_UNBLOCK) return real(how, set, old);
  return real(how, WithoutOurs(set), old);
}

STROBE_API int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  NEXT(sigprocmask);
  if (how == SIG_UNBLOCK) return real(how, set, old);
  return real(how, WithoutOurs(set), old);
}

STROBE_API void __register_frame(void* begin) {
  STROBE_FOUND(real, next<void (*)(void*)>("__register_frame"));
  frames_registered = true;
  if (real) real(begin);
}

STROBE_API int poll(pollfd* files, nfds_t count, int timeout) {
  NEXT(poll);
  return again([&] { return real(files, count, timeout); });
}

STROBE_API int epoll_wait(int file, epoll_event* events, int count, int timeout) {
  NEXT(epoll_wait);
  return again([&] { return real(file, events, count, timeout); });
}

STROBE_API int nanosleep(const timespec* time, timespec* left) {
  NEXT(nanosleep);
  return again([&] { return real(time, left); });
}

STROBE_API int usleep(useconds_t time) {
  NEXT(usleep);
  return again([&] { return real(time); });
}

}  // extern "C"
