// held_file.h - a file kept open in a process that is not ours (descriptors.h), whose own files must never get our
// bytes.
#pragma once
#include <string>

#include "core/system/descriptors.h"

namespace strobe {

struct HeldFile {
  std::string name;  // empty: none
  int fd = -1;
  FileId id;
  int open_new(const std::string& path, int flags);  // 0 or errno
  bool ours();                                       // before each use; false: not to be had any more, errno says why
  bool removed() const;                              // no folder has it any more
  void release();
};

}  // namespace strobe
