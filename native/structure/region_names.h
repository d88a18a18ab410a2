// region_names.h - what follows from the name of a region: which part of a step it is, whether a framework marks
// iterations by it, and what an event is called in the flow graph. The one place of these rules; Python asks here, too.
#pragma once
#include <stdint.h>
#include <string_view>

#include "include/strobe.h"
#include "structure/iterations.h"

namespace strobe::structure {

constexpr int8_t kNoPart = -1;

// Part of a step that a region belongs to; kNoPart for all others.
int8_t part_of_region(std::string_view name, uint8_t paradigm);
// What it does to parameters: operators of which updates are made change them in place, `Optimizer.zero_grad` zeroes
// their gradients. `loss.backward()` begins with `aten::ones_like`.
Change change_of_region(std::string_view name);
// The call of a module, as Python's functions are called: `Net.forward`, `model.py(12): forward`, `nn.Module: Net_0`.
bool is_module_call(std::string_view name, uint8_t paradigm);
// Whether it is that of a model, or of a part of one: a loss is none.
bool is_model_call(std::string_view name, uint8_t paradigm);
// The engine that runs a backward pass: in records its call until the last gradient is there, in profiles with stacks
// the Python function.
bool is_backward_pass(std::string_view name);
// A node of the backward pass, or the range in which PyTorch's engine runs it.
bool is_backward(std::string_view name);

// Whether iterations may be marked by this region, and how. LoopKind::structure: it is not an anchor. Operators are
// never anchors: `aten::_fused_adam_` runs once per parameter group, not per step.
LoopKind anchor_of_region(std::string_view name, uint8_t paradigm);
// Steps of a profiler or a serving engine carry their number or their size: they are one anchor.
std::string_view anchor_name(std::string_view name);
// The step of PyTorch's profiler. Around the steps of an engine it may hold several.
bool is_profiler_step(std::string_view name);

// An iteration of a loop that calls nothing recorded (python/loops).
bool is_iteration(std::string_view name, uint8_t paradigm);

// Functions and ranges of the program itself: they show what it does only in some iterations.
bool is_function(uint8_t paradigm);
// Calls of what ranks communicate by.
inline bool is_of_ranks(uint8_t paradigm) { return paradigm == STROBE_MPI || paradigm == STROBE_SHMEM; }

// What an event is called in the flow graph: 64 bits.
class Signature {
 public:
  explicit Signature(uint64_t bits) : bits_(bits) {}
  // Python and user functions: region and caller's region.
  static Signature of_function(uint32_t region, uint32_t caller) {
    return Signature(kFunction << 62 | uint64_t(caller) << 32 | region);
  }
  // MPI calls: the call path.
  static Signature of_path(uint32_t path) { return Signature(kPath << 62 | path); }
  // All others.
  static Signature of_region(uint32_t region) { return Signature(kRegion << 62 | region); }

  uint64_t bits() const { return bits_; }
  uint32_t region() const { return kind() == kPath ? 0 : uint32_t(bits_); }
  uint32_t caller() const { return kind() == kFunction ? uint32_t(bits_ >> 32) & 0x3FFFFFFF : 0; }
  uint32_t path() const { return kind() == kPath ? uint32_t(bits_) : 0xFFFFFFFF; }

 private:
  static constexpr uint64_t kFunction = 1, kPath = 2, kRegion = 3;
  uint64_t kind() const { return bits_ >> 62; }
  uint64_t bits_;
};

}  // namespace strobe::structure
