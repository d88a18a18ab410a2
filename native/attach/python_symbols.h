// python_symbols.h - where the interpreter of another process has its variables, from the symbols of its files.
#pragma once
#include <stdint.h>
#include <map>
#include <string>

#include "attach/process_files.h"

namespace strobe {

struct PythonSymbols {
  std::string file;  // as the process sees it; empty: it has no Python
  uintptr_t runtime = 0, code_type = 0;
  uintptr_t evaluates = 0;  // the function that runs Python
  uintptr_t version = 0;    // of the variable Py_Version; 0 before 3.11
};

// Throws std::runtime_error where the file of an interpreter is mapped that cannot be read.
PythonSymbols python_symbols(const ProcessFiles& process);

}  // namespace strobe
