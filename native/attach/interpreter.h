// interpreter.h - the CPython of another process: its version, and where its structures are.
#pragma once
#include <string>

#include "adapters/sampling/foreign_memory.h"
#include "attach/interpreter_layout.h"
#include "attach/process_files.h"

namespace strobe {

struct Interpreter {
  interpreter_layout layout;
  uintptr_t main = 0;       // the state of its main interpreter, whose threads are sampled
  uintptr_t evaluates = 0;  // the function that runs Python, 0: not known
  std::string version;      // "3.12.1"
  std::string file;         // that it is in, as the process sees it
};

// Throws std::system_error where the system forbids to read the process, std::runtime_error with what it is instead
// where it is not a Python that is known here.
Interpreter find_interpreter(const ProcessFiles& process, ForeignMemory& memory);

}  // namespace strobe
