// foreign_memory.h - reads memory that may be gone at any moment, without ever faulting. Of this process: the kernel
// copies it into a file in memory that is mapped here, a third of what process_vm_readv costs (0.7 against 2.1 us). Of
// another process: process_vm_readv.
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
  bool open();               // false: errno has the reason
  bool open(pid_t process);  // of another process, which may forbid it: that shows when it is read
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
  pid_t process_ = 0;  // 0: this one
};

}  // namespace strobe
