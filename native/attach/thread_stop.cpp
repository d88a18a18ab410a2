#include "attach/thread_stop.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

namespace strobe {

ThreadStop::ThreadStop(pid_t thread) : thread_(thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    error_ = errno;
    return;
  }
  int status = 0;
  const bool asked = ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0;
  if (!asked || waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
    error_ = ESRCH;  // it ended
    return;
  }
  stopped_ = true;
  // A stop of ours, or of the whole process by a signal, has an event; without one, a signal waits to be delivered.
  if (status >> 16 == 0) signal_ = WSTOPSIG(status);
}

ThreadStop::~ThreadStop() {
  if (stopped_) ptrace(PTRACE_DETACH, thread_, nullptr, signal_);
}

bool ThreadStop::read([[maybe_unused]] Registers& registers) const {
#if defined(__x86_64__)
  user_regs_struct all;
  iovec to{&all, sizeof all};
  if (!stopped_ || ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &to) != 0) return false;
  const uint64_t values[Registers::kCount] = {all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi,
                                              all.rbp, all.rsp, all.r8,  all.r9,  all.r10, all.r11,
                                              all.r12, all.r13, all.r14, all.r15, all.rip};
  for (int i = 0; i < Registers::kCount; i++) registers.set(i, values[i]);
  return true;
#else
  return false;
#endif
}

}  // namespace strobe
