// remote_script.h - lets another process run a file of Python in its main thread, as CPython 3.14 and later offer to
// debuggers (PEP 768): the path is written into the state of that thread, with a flag at which the interpreter looks
// between two instructions. Where they are is in a table at the beginning of _PyRuntime.
#pragma once
#include <stdint.h>
#include <string>

#include "adapters/sampling/foreign_memory.h"
#include "attach/process_files.h"

namespace strobe {

class RemoteScript {
 public:
  // Throws std::system_error where the process is gone or may not be read, std::runtime_error with why it takes no
  // scripts ("runs Python 3.13, ...").
  explicit RemoteScript(pid_t pid);

  int minor() const { return minor_; }  // of 3.minor
  // Asks for the script. Throws as the constructor does; where the path is too long, or another script is waiting.
  void request(const std::string& path);
  // Whether the interpreter has taken it, and begun.
  bool taken();
  // It is not to run any more, unless it has begun.
  void withdraw();
  // Whether the program that was found still runs: it has not ended, and not become another one.
  bool runs() const { return process_.same_program(); }

 private:
  uint64_t word(uintptr_t at);
  uint32_t half_word(uintptr_t at);
  void write(uintptr_t at, const void* bytes, size_t count);

  const ProcessFiles process_;
  ForeignMemory memory_;
  int minor_ = 0;
  uintptr_t thread_ = 0, breaker_ = 0, pending_ = 0, path_ = 0;
  uint64_t path_bytes_ = 0;
};

}  // namespace strobe
