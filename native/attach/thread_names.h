// thread_names.h - the names that the threading module has for the threads of another process.
#pragma once
#include <stdint.h>
#include <functional>
#include <map>
#include <string>

#include "adapters/sampling/foreign_memory.h"
#include "attach/interpreter_layout.h"

namespace strobe {

class ThreadNames {
 public:
  ThreadNames(const interpreter_layout& layout, ForeignMemory& memory) : layout_(layout), memory_(memory) {}
  // By threading.get_ident(); empty where the module is not loaded, or changes at this moment.
  std::map<uint64_t, std::string> read(uintptr_t interpreter);

 private:
  using Each = std::function<bool(uintptr_t key, uintptr_t value)>;
  // Calls `each` for the items of a dict until it returns false.
  void items(uintptr_t dict, const Each& each);
  void items(uintptr_t keys, uintptr_t values, const Each& each);
  // The value of a text in a dict, 0: none.
  uintptr_t item(uintptr_t dict, const std::string& name);
  uintptr_t attribute(uintptr_t object, const std::string& name);
  std::string text(uintptr_t at);
  uint64_t number(uintptr_t at);
  uintptr_t word(uintptr_t at);

  const interpreter_layout& layout_;
  ForeignMemory& memory_;
};

}  // namespace strobe
