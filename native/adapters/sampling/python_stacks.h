// python_stacks.h - the call stack of a Python thread, read while it runs.
#pragma once
#include <stdint.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/sampling/foreign_memory.h"
#include "python/calls/frame_layout.h"

namespace strobe {

struct CodeFacts {  // a code object; it is another one at the same address if any of these differ
  uintptr_t name = 0, file = 0, lines = 0;
  uint64_t words = 0;
  int32_t first_line = 0;
  bool operator==(const CodeFacts&) const = default;
};

struct Code {
  CodeFacts facts;
  uint32_t number = 0;                              // of this process's code objects, in order of first sight
  std::string label;                                // "name (file:line)"
  std::vector<std::pair<uint32_t, int32_t>> lines;  // from which instruction on which line; read when asked
  bool lines_read = false;
  bool imports = false;  // a part of the interpreter's import
  bool own = false;  // of the standard library, but not on top of C code that computes: compression, digests, SQLite
};

struct PythonFrame {
  uintptr_t at, code;
  bool operator==(const PythonFrame&) const = default;
};

// Of a thread: the frames that were checked the last time, innermost first, and their code objects.
struct KnownCodes {
  std::vector<PythonFrame> frames;
  std::vector<const Code*> codes;
  bool cut = false;        // as of the stack
  uint32_t forgotten = 0;  // how often all code objects had been forgotten by then
};
enum class CodesRead { kNot, kAsBefore, kChanged };

struct PythonStack {
  std::vector<PythonFrame> frames;  // innermost first
  uintptr_t holder = 0;             // where the thread keeps which frame runs
  uintptr_t from = 0, to = 0;       // what was copied of the thread's stack: a guess for the next time
  uintptr_t instruction = 0;        // of the innermost frame
  bool cut = false;                 // deeper than what is read
  bool moved = false;               // the innermost frame went on to another instruction while it was read
  bool collects = false;            // the thread collects garbage: the collector runs, and it holds the GIL
};

class PythonStacks {
 public:
  static constexpr size_t kMostFrames = 512, kMostSingles = 64, kMostChunk = 64 << 10;

  // `most_frames` of a stack are read, and so many pieces of it that lie elsewhere than the innermost ones.
  PythonStacks(const frame_layout& layout, ForeignMemory& memory, size_t most_frames = kMostFrames,
               size_t most_singles = kMostSingles)
      : layout_(layout), memory_(memory), most_frames_(most_frames), most_singles_(most_singles) {}
  // The threads of an interpreter: (state, thread id). False where the list changed meanwhile.
  bool threads(uintptr_t interpreter, std::vector<std::pair<uintptr_t, uint64_t>>& out);
  // False where it changed three times while it was read, or is gone.
  bool read(uintptr_t interpreter, uintptr_t thread, PythonStack& stack);
  // The code objects of a stack into `known`, which is empty where they cannot be read: kNot. What is where it was the
  // last time is not looked up again; kAsBefore: all of it.
  CodesRead codes(const PythonStack& stack, KnownCodes& known);
  int32_t line(const PythonStack& stack);  // of the innermost frame, 0 unknown
  // Whether the innermost frame is still at that instruction, and it is one that may call C code.
  bool still_there(const PythonStack& stack);
  // Whether the C code that the innermost frame runs, of `code`, is the interpreter's own: it sorts a list, or looks
  // for something in one. That is Python's work, as the same in a loop would be. `packages`: whether there is other C
  // code behind operators and methods.
  bool is_own(const PythonStack& stack, const Code& code, bool packages) const;

 private:
  Code* check(uintptr_t at, const char* copied);
  bool check_first(size_t n, const PythonStack& stack, std::vector<const Code*>& out);
  bool text(uintptr_t at, std::string& out);
  void read_lines(Code& code);
  const frame_layout layout_;
  ForeignMemory& memory_;
  std::unordered_map<uintptr_t, Code> codes_;
  const size_t most_frames_, most_singles_;
  uint32_t next_number_ = 0, forgotten_ = 0;
  std::string copy_, piece_;
};

}  // namespace strobe
