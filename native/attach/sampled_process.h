// sampled_process.h - samples of the Python threads of another process that runs already. Nothing is loaded into it,
// and it is not stopped: its memory is copied while it runs, and what changed meanwhile is dropped and counted.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/sampling/foreign_memory.h"
#include "adapters/sampling/python_stacks.h"
#include "adapters/sampling/thread_states.h"
#include "attach/interpreter.h"
#include "attach/native_frames.h"
#include "attach/process_files.h"
#include "attach/thread_names.h"
#include "formats/importing/imported_process.h"

namespace strobe {

class SampledProcess {
 public:
  enum class Life : uint8_t { runs, ended, replaced };  // the last: it became another program by an exec

  // `native`: with the functions of C code below those of Python, for which threads that run are stopped for a moment;
  // then a process without Python is sampled, too. Throws what ProcessFiles and find_interpreter do, and
  // std::system_error where `blocks_path` cannot be written, or no thread may be stopped.
  SampledProcess(pid_t pid, std::string blocks_path, bool native);
  ~SampledProcess();
  // Takes a sample of every thread.
  Life look();
  // What the trace has of the process (docs/format/blocks.md), before the first sample.
  void describe(std::string description_json, std::string note_json);
  // Writes everything; afterwards the file is complete, and the process is left alone. `over`: it has ended.
  void finish(bool over);
  void count(const std::string& what, uint64_t n) { out_.count(what, n); }

  const std::string& version() const { return interpreter_.version; }
  uint64_t samples() const { return samples_; }

 private:
  struct Thread;
  bool list(int64_t now);
  bool know(uintptr_t at, uint64_t id, int64_t now);
  void name_threads();
  uint64_t number_here(uint64_t number_there);
  bool look_at(uintptr_t at, Thread& thread, int64_t now);
  State sleeps_in(const Thread& thread) const;
  bool read(uintptr_t at, Thread& thread, bool had_processor);
  bool read_python(uintptr_t at, Thread& thread);
  void add_native(Thread& thread, const Registers& registers);
  uint32_t call_stack(const Thread& t);
  void row(Thread& thread, int64_t now, int64_t cpu);

  const pid_t pid_;
  ProcessFiles files_;
  ForeignMemory memory_;
  Interpreter interpreter_;
  const bool native_;
  PythonStacks stacks_;
  NativeFrames frames_;
  ThreadNames names_;
  ImportedProcess out_;
  const int64_t started_ns_;
  int64_t last_ns_, saved_ns_;
  ProcessDescription description_;
  uint64_t looks_ = 0, list_at_ = 0, samples_ = 0;
  std::map<uintptr_t, std::unique_ptr<Thread>> threads_;
  std::vector<std::pair<uintptr_t, uint64_t>> found_;
  std::map<uint64_t, uint64_t> numbers_;             // of threads: here, by those in the process's own namespace
  std::vector<uintptr_t> functions_;                 // of C code in the innermost one of Python
  std::unordered_map<std::string, uint32_t> texts_;  // by numbers of code objects
  std::string key_;
  size_t text_bytes_ = 0;
  uint32_t table_, state_text_[kStates];
};

}  // namespace strobe
