// thread_stop.h - stops one thread of another process for a moment, to read what its registers hold.
#pragma once
#include <sys/types.h>

#include "attach/unwind_tables.h"

namespace strobe {

// Stops a thread until it is destroyed, or we are: the kernel lets it go on then. A signal that arrives meanwhile is
// delivered as it would have been.
class ThreadStop {
 public:
#if defined(__x86_64__)
  static constexpr bool kPossible = true;
#else
  static constexpr bool kPossible = false;
#endif
  // Only a thread that runs may be stopped: some calls of the kernel that wait would fail with EINTR afterwards.
  explicit ThreadStop(pid_t thread);
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  // What its registers hold; false: it could not be stopped, or this machine is not an x86-64.
  bool read(Registers& registers) const;
  // 0, or why it may not be stopped.
  int error() const { return error_; }

 private:
  const pid_t thread_;
  bool stopped_ = false;
  int signal_ = 0, error_ = 0;
};

}  // namespace strobe
