// unwind_tables.h - how the functions of an ELF file are left: its .eh_frame, which compilers write for exceptions.
#pragma once
#include <stdint.h>

#include <functional>
#include <optional>
#include <string>

#include "core/system/elf_file.h"

namespace strobe {

// What is known of the registers of a function that called others: by DWARF's numbers for x86-64.
struct Registers {
  static constexpr int kCount = 17, kFrame = 6, kStack = 7, kAddress = 16;
  uint64_t value[kCount] = {};
  uint32_t known = 0;  // a bit each
  bool has(int number) const { return known >> number & 1; }
  void set(int number, uint64_t to) { value[number] = to, known |= 1u << number; }
};

class UnwindTables {
 public:
  // Reads a word of the stack; false: that is not known.
  using Read = std::function<bool(uint64_t at, uint64_t& value)>;
  // Takes a descriptor, as ElfFile does.
  explicit UnwindTables(int fd);
  // From an offset in the file to the address that symbols and tables have; nothing outside of loaded code.
  std::optional<uint64_t> address(uint64_t offset) const;
  // The beginning of the function around an address of this file, 0: it is not in the tables.
  uint64_t function(uint64_t address) const;
  // Replaces registers by those of the caller; false: the tables do not have how, or the stack is not known there.
  // `address`: where in this file the function is; of a caller, in the call.
  bool step(uint64_t address, Registers& registers, const Read& read) const;

 private:
  struct Entry {
    uint64_t begin = 0, end = 0, offset = 0;  // the last: of its record in the file
  };
  std::optional<Entry> find(uint64_t address) const;
  uint64_t offset_of(uint64_t address) const;

  ElfFile file_;
  const int32_t* index_ = nullptr;  // pairs, sorted: beginning of a function, its record, both from the header
  uint64_t index_count_ = 0, header_ = 0;
};

}  // namespace strobe
