// native_stacks.h - the C code that a thread of a Python is in. libstrobe_threads.so, where it is preloaded, has the
// signal for it; the sampler finds it by its name.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace strobe {

constexpr uint32_t kNativeFrames = 64;

struct NativeStacks {
  // The functions that another thread is in, innermost first, without those of the library of `until` that called
  // them: `until` is the function of the interpreter that ends the stack. Returns how many; 0: it did not answer, or
  // SIGPROF is the program's. Interrupts the thread, and waits up to 20 ms for it.
  uint32_t (*of)(uint64_t thread, uintptr_t until, uintptr_t functions[kNativeFrames]);
  // "/usr/lib/libm.so.6+0x1139": the address in the file that holds it, for which a name is found after the run.
  void (*place)(uintptr_t function, char* text, size_t size);
};
extern "C" __attribute__((visibility("default"))) const NativeStacks strobe_native_stacks;

}  // namespace strobe
