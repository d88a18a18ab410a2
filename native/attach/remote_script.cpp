#include "attach/remote_script.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include <iterator>
#include <stdexcept>
#include <system_error>

#include "attach/python_symbols.h"

namespace strobe {

namespace {

// Offsets in _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h): the cookie, the version, whether it is a
// free-threaded build, and then one number for each member. What debuggers need is last.
constexpr size_t kVersion = 8, kFreeThreaded = 16, kFinalizing = 32, kInterpreters = 40, kNextInterpreter = 64,
                 kMainThread = 80;
struct DebuggerSupport {
  uint64_t eval_breaker, of_thread, enabled, pending, path, path_bytes;
};
constexpr struct {
  int minor;
  size_t debugger_support;
} kTables[] = {{14, 712}, {15, 840}};

constexpr int kFirstMinor = 14, kPathBytes = 512;
constexpr uint8_t kPleaseStop = 1 << 5;  // of the eval breaker: look at what is asked for

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

[[noreturn]] void unreadable() {
  const int error = errno;
  if (error == EPERM || error == EACCES || error == ESRCH)
    throw std::system_error(error, std::generic_category(), "its memory");
  refuse("has just ended");
}

}  // namespace

uint64_t RemoteScript::word(uintptr_t at) {
  uint64_t value;
  const char* copied = memory_.read(at, sizeof value);
  if (!copied) unreadable();
  memcpy(&value, copied, sizeof value);
  return value;
}

uint32_t RemoteScript::half_word(uintptr_t at) {
  uint32_t value;
  const char* copied = memory_.read(at, sizeof value);
  if (!copied) unreadable();
  memcpy(&value, copied, sizeof value);
  return value;
}

void RemoteScript::write(uintptr_t at, const void* bytes, size_t count) {
  const iovec from{const_cast<void*>(bytes), count}, to{reinterpret_cast<void*>(at), count};
  if (process_vm_writev(process_.pid(), &from, 1, &to, 1, 0) != ssize_t(count)) unreadable();
}

RemoteScript::RemoteScript(pid_t pid) : process_(pid) {
  if (!memory_.open(pid)) throw std::bad_alloc();
  const PythonSymbols symbols = python_symbols(process_);
  const uintptr_t runtime = symbols.runtime;
  if (!runtime) refuse("is not CPython 3");
  char cookie[8] = "";
  if (const char* copied = memory_.read(runtime, sizeof cookie))
    memcpy(cookie, copied, sizeof cookie);
  else
    unreadable();
  const uint64_t version = symbols.version ? word(symbols.version) : 0;
  minor_ = int(version >> 16 & 255);
  const std::string name = version ? "3." + std::to_string(minor_) : "3.10 or older";
  if (minor_ < kFirstMinor) refuse("runs Python " + name + ", and only Python 3.14 and later can be attached to");
  size_t table = 0;
  for (const auto& each : kTables)
    if (each.minor == minor_) table = each.debugger_support;
  if (!table || memcmp(cookie, "xdebugpy", sizeof cookie) != 0)
    refuse("runs Python " + name + ", which this version of strobe does not know");
  if (word(runtime + kFreeThreaded)) refuse("runs a free-threaded build of Python, which strobe does not record");

  DebuggerSupport support;
  if (const char* copied = memory_.read(runtime + table, sizeof support))
    memcpy(&support, copied, sizeof support);
  else
    unreadable();
  const uintptr_t interpreter = word(runtime + word(runtime + kInterpreters));
  if (!interpreter) refuse("has not begun to run Python yet, or is about to end");
  if (word(runtime + word(runtime + kFinalizing))) refuse("is about to end");
  // The newest is first in the list.
  if (word(interpreter + word(runtime + kNextInterpreter)))
    refuse("has subinterpreters, whose calls cannot be recorded from the middle on");
  // What is 0 is not in this build.
  if (!support.enabled || support.path_bytes != kPathBytes || half_word(interpreter + support.enabled) != 1)
    refuse("was started with remote debugging off (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug)");
  thread_ = word(interpreter + word(runtime + kMainThread));
  if (!thread_) refuse("is about to end");
  breaker_ = thread_ + support.eval_breaker;
  pending_ = thread_ + support.of_thread + support.pending;
  path_ = thread_ + support.of_thread + support.path;
  path_bytes_ = support.path_bytes;
}

void RemoteScript::request(const std::string& path) {
  if (path.size() >= path_bytes_) refuse("takes no script whose path is longer than 511 bytes");
  if (!taken()) refuse("has been asked for another script, by another tool, and has not run it yet");
  write(path_, path.c_str(), path.size() + 1);
  const int pending = 1;
  write(pending_, &pending, sizeof pending);
  // The byte with the flags alone: those above it are the version of the instrumentation.
  const uint8_t flags = uint8_t(word(breaker_)) | kPleaseStop;
  write(breaker_, &flags, sizeof flags);
}

bool RemoteScript::taken() { return half_word(pending_) == 0; }

void RemoteScript::withdraw() {
  const int pending = 0;
  write(pending_, &pending, sizeof pending);
}

}  // namespace strobe
