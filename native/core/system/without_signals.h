// without_signals.h - what must not be left half done: a handler of the program may leave what it has interrupted by
// siglongjmp, and then a lock that was held there is never given back.
#pragma once
#include <signal.h>

namespace strobe {

// Signals that others send wait meanwhile. Those that an instruction causes do not: blocked, they end the process.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int number : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, number);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace strobe
