// own_thread.h - threads of the recorder inside the program.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

namespace strobe {

// Start a thread that gets none of the program's signals. SIGBUS alone stays open: one that a store causes while it is
// blocked ends the process (mapping_guard.h). 0, or an errno value.
inline int start_own_thread(pthread_t& thread, size_t stack_bytes, void* (*run)(void*), void* argument) {
  sigset_t all, old;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

// A joined thread is counted in /proc/self/stat for a moment longer: wait for that moment to pass, before a fork.
inline void wait_until_gone(uint32_t thread_id) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u", thread_id);
  for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++) sched_yield();
}

}  // namespace strobe
