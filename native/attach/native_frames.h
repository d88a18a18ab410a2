// native_frames.h - the C, C++ and Fortran functions that a thread of another process is in.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/sampling/foreign_memory.h"
#include "attach/process_files.h"
#include "attach/unwind_tables.h"

namespace strobe {

class NativeFrames {
 public:
  NativeFrames(const ProcessFiles& process, ForeignMemory& memory) : process_(process), memory_(memory) {}
  // Copies the stack of a thread that is stopped, or sleeps in the kernel: from its stack pointer.
  bool copy(const Registers& registers);
  // The functions on the stack that was copied last, innermost first: their beginnings, or where in code without tables
  // they are. It ends before `until`, or where it cannot be followed (`cut`).
  void unwind(const Registers& registers, uintptr_t until, std::vector<uintptr_t>& functions, bool& found, bool& cut);
  // The file that code is from, as the process sees it; empty: it is from none.
  std::string_view file(uintptr_t function);
  // "/usr/lib/libm.so.6+0x1139": the address in the file that holds it, for which a name is found after the run.
  const std::string& label(uintptr_t function);

 private:
  struct Module {
    Mapping mapping;
    std::shared_ptr<UnwindTables> tables;  // of its file; null until asked for
  };
  Module* module_of(uintptr_t address);
  UnwindTables& tables_of(Module& module);

  const ProcessFiles& process_;
  ForeignMemory& memory_;
  std::map<uintptr_t, Module> modules_;  // by their ends
  std::map<std::string, std::shared_ptr<UnwindTables>> files_;
  std::map<uintptr_t, std::string> labels_;
  std::string stack_;
  uintptr_t stack_at_ = 0;
};

}  // namespace strobe
