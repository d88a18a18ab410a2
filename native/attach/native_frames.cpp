#include "attach/native_frames.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

namespace strobe {

namespace {
constexpr size_t kMostFrames = 256, kWord = sizeof(uint64_t), kPage = 4096;
}

bool NativeFrames::copy(const Registers& registers) {
  stack_at_ = registers.value[Registers::kStack];
  stack_.clear();
  // As much as is there: to the end of the stack it may be less than fits.
  for (size_t most = ForeignMemory::kBytes; most >= kPage; most /= 2) {
    const size_t bytes = most - stack_at_ % kPage;
    if (const char* copied = memory_.read(stack_at_, bytes)) {
      stack_.assign(copied, bytes);
      return true;
    }
  }
  return false;
}

NativeFrames::Module* NativeFrames::module_of(uintptr_t address) {
  for (int attempt = 0; attempt < 2; attempt++) {
    const auto found = modules_.upper_bound(address);
    if (found != modules_.end() && address >= found->second.mapping.begin) return &found->second;
    if (attempt == 0) {  // a library that was loaded since
      modules_.clear(), labels_.clear();
      for (const Mapping& each : process_.mappings()) modules_[each.end] = {each, nullptr};
    }
  }
  return nullptr;
}

UnwindTables& NativeFrames::tables_of(Module& module) {
  if (!module.tables) {
    auto& file = files_[module.mapping.path];
    if (!file) {
      const bool is_file = module.mapping.path[0] == '/';
      file = std::make_shared<UnwindTables>(is_file ? process_.open("root" + module.mapping.path) : -1);
    }
    module.tables = file;
  }
  return *module.tables;
}

void NativeFrames::unwind(const Registers& registers, uintptr_t until, std::vector<uintptr_t>& functions, bool& found,
                          bool& cut) {
  functions.clear();
  found = cut = false;
  const auto word = [&](uint64_t at, uint64_t& value) {
    if (at < stack_at_ || at - stack_at_ > stack_.size() - kWord) return false;
    memcpy(&value, stack_.data() + (at - stack_at_), kWord);
    return true;
  };
  Registers now = registers;
  while (functions.size() < kMostFrames) {
    // A call may be the last instruction of its function.
    const uint64_t at = now.value[Registers::kAddress] - (functions.empty() ? 0 : 1);
    Module* module = module_of(at);
    if (!module) break;
    const uint64_t offset = at - module->mapping.begin + module->mapping.offset;
    UnwindTables& tables = tables_of(*module);
    const auto address = tables.address(offset);
    const uint64_t begin = address ? tables.function(*address) : 0;
    const uintptr_t function = begin ? at - (*address - begin) : at;
    if (until && function == until) {
      found = true;
      return;
    }
    functions.push_back(function);
    const uint64_t stack = now.value[Registers::kStack];
    if (begin) {
      if (!tables.step(*address, now, word)) return;  // of the outermost function it is not there, either
    } else {  // by frame pointers, as code that is made while a program runs has them
      uint64_t frame, caller;
      const uint64_t pointer = now.value[Registers::kFrame];
      if (!now.has(Registers::kFrame) || pointer < stack || !word(pointer, frame) || !word(pointer + kWord, caller))
        break;
      now = {};
      now.set(Registers::kFrame, frame), now.set(Registers::kAddress, caller);
      now.set(Registers::kStack, pointer + 2 * kWord);
    }
    if (now.value[Registers::kStack] <= stack) break;  // a stack grows
  }
  cut = true;
}

std::string_view NativeFrames::file(uintptr_t function) {
  const Module* module = module_of(function);
  return module ? std::string_view(module->mapping.path) : std::string_view();
}

const std::string& NativeFrames::label(uintptr_t function) {
  const auto known = labels_.find(function);
  if (known != labels_.end()) return known->second;
  Module* module = module_of(function);
  if (!module) return labels_[function] = "<unknown code>";
  const auto address = tables_of(*module).address(function - module->mapping.begin + module->mapping.offset);
  char text[32];
  snprintf(text, sizeof text, "+0x%llx", (unsigned long long)address.value_or(0));
  return labels_[function] = address ? module->mapping.path + text : module->mapping.path;
}

}  // namespace strobe
