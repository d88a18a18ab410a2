#include "structure/region_names.h"

#include <algorithm>
#include <iterator>

#include "include/strobe.h"

namespace strobe::structure {

// Ranges that PyTorch itself puts into every program (2.13: torch/optim/optimizer.py:513 and 1057,
// torch/utils/data/dataloader.py:721, torch/profiler/profiler.py), and what torch/_dynamo compiled, which leaves no
// operators of its own.
namespace {
constexpr std::string_view kStepHint = "strobe.step", kProfilerStep = "ProfilerStep#",
                           kOptimizerStep = "Optimizer.step#", kZeroGrad = "Optimizer.zero_grad#",
                           kDataLoader = "enumerate(DataLoader)#", kCompiled = "Torch-Compiled Region",
                           // What python/calls records of PyTorch's functions.
    kBackwardPass = "autograd::engine::run_backward", kMakingOfIterator = "DataLoader.__iter__";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// What serving engines put around each of their steps: vLLM `execute_8192_context_9(...)_generation_37(...)`, SGLang
// `step[DECODE bs=32]`, ATOM `decode[bs=32 tok=32 d=32]`, TensorRT-LLM `[Executor] _forward_step 7: 0 ctx reqs, 32 gen
// reqs`, xDiT `execute_diffusion_1_1024x1024`. The anchor is called by what all of an engine have in common.
std::string_view engine_step(std::string_view name) {
  constexpr std::string_view kForward = "[Executor] _forward_step", kDiffusion = "execute_diffusion_";
  if (name.starts_with(kForward) && name.ends_with(" gen reqs")) return kForward;
  if (name.starts_with(kDiffusion)) return kDiffusion;
  const bool execute = name.starts_with("execute_") && name.find("context_") != name.npos;
  if (execute && name.find("_generation_") != name.npos) return "execute_context_generation";
  if (!name.ends_with(']')) return "";
  if (name.starts_with("prefill[bs=") || name.starts_with("decode[bs=")) return "prefill[] decode[]";
  return name.starts_with("step[") ? "step[]" : "";
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || (c & 0x80);
}
}  // namespace

bool is_backward_pass(std::string_view name) {
  return name == kBackwardPass || (name.starts_with("torch/autograd/") && name.ends_with(": _engine_run_backward"));
}

bool is_backward(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function") || name == "torch::autograd::AccumulateGrad") return true;
  // What stands behind the last "::" is words ending with Backward and a number (older versions: without the range).
  const size_t colons = name.rfind("::");
  std::string_view last = colons == name.npos ? name : name.substr(colons + 2);
  // Operators of the pass itself: aten::gelu_backward, aten::_softmax_backward_data. Not all profiles have its nodes.
  if (colons != name.npos && last.find("_backward") != last.npos) return true;
  while (!last.empty() && is_digit(last.back())) last.remove_suffix(1);
  if (!last.ends_with("Backward") || last.size() == std::string_view("Backward").size()) return false;
  for (char c : last)
    if (!is_word(c)) return false;
  return true;
}

namespace {
// In records, and in profiles with stacks.
bool makes_iterator(std::string_view name) {
  return name == kMakingOfIterator ||
         (name.starts_with("torch/utils/data/dataloader.py(") && name.ends_with(": __iter__"));
}
}  // namespace

int8_t part_of_region(std::string_view name, uint8_t paradigm) {
  if (makes_iterator(name)) return kDataWait;
  if (is_backward_pass(name)) return kBackward;
  if (paradigm != STROBE_TORCH || name.starts_with(kProfilerStep)) return kNoPart;
  if (name.starts_with(kDataLoader)) return kDataWait;
  if (is_backward(name)) return kBackward;
  if (name.starts_with("Optimizer.")) return kOptimizer;
  return name.find("::") != name.npos || name.starts_with(kCompiled) ? int8_t(kForward) : kNoPart;
}

Change change_of_region(std::string_view name) {
  if (name.starts_with(kZeroGrad)) return Change::zeroes;
  if (makes_iterator(name)) return Change::iterator;
  if (name == "aten::ones_like") return Change::seeds;
  constexpr std::string_view kAten = "aten::", kForeach = "_foreach_";
  if (!name.starts_with(kAten) || !name.ends_with('_')) return Change::none;
  name.remove_prefix(kAten.size());
  if (name.starts_with(kForeach)) return Change::in_place;
  constexpr std::string_view kUpdates[] = {"add_", "sub_", "mul_", "div_", "addcmul_", "addcdiv_", "lerp_", "zero_"};
  return std::ranges::find(kUpdates, name) != std::end(kUpdates) ? Change::in_place : Change::none;
}

bool is_module_call(std::string_view name, uint8_t paradigm) {
  if (paradigm != STROBE_PYTHON) return false;
  constexpr std::string_view kForwardCall = "forward", kModule = "nn.Module: ";
  if (name.starts_with(kModule)) return true;
  if (!name.ends_with(kForwardCall)) return false;
  name.remove_suffix(kForwardCall.size());
  return name.empty() || name.ends_with('.') || name.ends_with(": ");
}

bool is_model_call(std::string_view name, uint8_t paradigm) {
  return is_module_call(name, paradigm) && name.find("Loss") == name.npos;
}

LoopKind anchor_of_region(std::string_view name, uint8_t paradigm) {
  if (name == kStepHint && (paradigm == STROBE_USER || paradigm == STROBE_SELF)) return LoopKind::hint;
  if (name.starts_with(kProfilerStep) || !engine_step(name).empty()) return LoopKind::range;
  if (paradigm != STROBE_TORCH) return LoopKind::structure;
  if (name.starts_with(kOptimizerStep)) return LoopKind::optimizer;
  if (name.starts_with(kZeroGrad)) return LoopKind::zero_grad;
  return name.starts_with(kDataLoader) ? LoopKind::data_wait : LoopKind::structure;
}

bool is_profiler_step(std::string_view name) { return name.starts_with(kProfilerStep); }

std::string_view anchor_name(std::string_view name) {
  if (name.starts_with(kProfilerStep)) return kProfilerStep;
  const std::string_view engine = engine_step(name);
  return engine.empty() ? name : engine;
}

bool is_iteration(std::string_view name, uint8_t paradigm) {
  return paradigm == STROBE_PYTHON && name.starts_with("loop in ");
}

bool is_function(uint8_t paradigm) {
  return paradigm == STROBE_PYTHON || paradigm == STROBE_USER || paradigm == STROBE_NVTX || paradigm == STROBE_ITT;
}

}  // namespace strobe::structure
