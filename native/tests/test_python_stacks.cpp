// Stacks of threads that changed while they were copied: whatever the copy holds, reading it ends and touches nothing.
#include "adapters/sampling/python_stacks.h"

#include <stdio.h>

#include <random>

#include "tests/check.h"

using namespace strobe;

namespace {

struct Frame {
  uintptr_t code, previous, instruction;
  char owner, rest[7];
};
struct Thread {
  uintptr_t frame, chunk, top, rest;
};
constexpr char kSkipped = 3;
constexpr size_t kFrames = 40;
struct Interpreter {
  int collecting;
};
// The thread that has the GIL.
uintptr_t gil_holder;
const Interpreter interpreter{.collecting = 1};

frame_layout layout_of_these() {
  frame_layout layout{};
  layout.thread_bytes = sizeof(Thread);
  layout.frame_holder = offsetof(Thread, frame);
  layout.stack_chunk = offsetof(Thread, chunk);
  layout.stack_top = offsetof(Thread, top);
  layout.frame_bytes = sizeof(Frame);
  layout.frame_code = offsetof(Frame, code);
  layout.frame_previous = offsetof(Frame, previous);
  layout.frame_instruction = offsetof(Frame, instruction);
  layout.frame_owner = offsetof(Frame, owner);
  layout.first_owner_skipped = kSkipped;
  layout.collecting = offsetof(Interpreter, collecting);
  layout.gil = uintptr_t(&gil_holder);
  return layout;
}

struct Made {
  Frame frames[kFrames]{};
  Thread thread{};
  Made() {
    for (size_t i = 0; i < kFrames; i++)
      frames[i] = {100 + i, i ? uintptr_t(&frames[i - 1]) : 0, 1000 + i, char(i % 5 == 4 ? kSkipped : 0), {}};
    thread = {uintptr_t(&frames[kFrames - 1]), uintptr_t(frames), uintptr_t(frames + kFrames), 0};
  }
};

PythonStack stack_of(PythonStacks& stacks, const Made& made) {
  PythonStack stack;
  stacks.read(uintptr_t(&interpreter), uintptr_t(&made.thread), stack);
  return stack;
}

}  // namespace

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  fprintf(stderr,
          "skipped under sanitizers, which forbid what ForeignMemory is for: to ask the kernel for any address\n");
  return 0;
#endif
  ForeignMemory memory;
  CHECK(memory.open());
  PythonStacks stacks(layout_of_these(), memory);
  {
    const Made made;
    const PythonStack stack = stack_of(stacks, made);
    CHECK(stack.frames.size() == kFrames - kFrames / 5 && !stack.cut);
    CHECK(stack.frames.back().code == 100 && stack.frames.front().code == 100 + kFrames - 2);
    CHECK(!stack.collects);  // the collector runs, in another thread
    gil_holder = uintptr_t(&made.thread);
    CHECK(stack_of(stacks, made).collects);
  }
  // A frame before the last address there is: with the size of a frame, it lies at the beginning of memory.
  for (const uintptr_t beyond : {~uintptr_t(0), ~uintptr_t(15), ~uintptr_t(0) - sizeof(Frame) + 1, uintptr_t(1)}) {
    Made made;
    made.frames[kFrames - 1].owner = 0, made.frames[kFrames - 1].previous = beyond;
    const PythonStack stack = stack_of(stacks, made);
    CHECK(stack.cut && stack.frames.size() == 1);
  }
  {  // A circle of frames that are skipped.
    Made made;
    for (Frame& frame : made.frames) frame.owner = kSkipped;
    made.frames[0].previous = uintptr_t(&made.frames[kFrames - 1]);
    CHECK(stack_of(stacks, made).cut);
  }
  std::mt19937_64 random(1);
  PythonStack stack;  // also what was guessed from the stack before
  for (int i = 0; i < 20000; i++) {
    Made made;
    auto* words = reinterpret_cast<uintptr_t*>(&made);
    for (uint64_t n = random() % 12; n-- > 0;) {
      uintptr_t& word = words[random() % (sizeof made / sizeof *words)];
      const uintptr_t inside = uintptr_t(&made) + random() % sizeof made;
      word = random() % 3 == 0 ? random() : random() % 2 ? inside : ~uintptr_t(0) - random() % 4096;
    }
    stacks.read(uintptr_t(&interpreter), uintptr_t(&made.thread), stack);
    CHECK(stack.frames.size() <= PythonStacks::kMostFrames);
  }
}
