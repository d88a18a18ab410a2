// foreign_memory.h - reads memory of this process that may be gone at any moment, without ever faulting: the kernel
// copies it into a file in memory that is mapped here. A third of what process_vm_readv costs (0.7 against 2.1 us).
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/system/descriptors.h"

namespace strobe {

class ForeignMemory {
 public:
  static constexpr size_t kBytes = 128 << 10, kParts = 64;
  struct Part {
    uintptr_t at;
    size_t bytes;
  };
  ~ForeignMemory() { close(); }
  bool open();  // false: errno has the reason
  void close();
  // Whether the file is still ours: a program may close what it did not open.
  bool ours() const;
  // Copies the parts one behind the other; null unless all of them could be read. Valid until the next call.
  const char* read(const Part* parts, size_t n);
  const char* read(uintptr_t at, size_t bytes) {
    const Part part{at, bytes};
    return read(&part, 1);
  }

 private:
  int fd_ = -1;
  FileId id_;
  char* map_ = nullptr;
};

}  // namespace strobe
