// held_file.h - a file kept open in a process that is not ours. Programs close descriptors that are not theirs (daemons
// close all); then the number may be one of their own files, which must never get our bytes.
#pragma once
#include <sys/types.h>

#include <string>

namespace strobe {

struct HeldFile {
  std::string name;  // empty: none
  int fd = -1;
  dev_t device = 0;
  ino_t inode = 0;
  int open_new(const std::string& path, int flags);  // 0 or errno
  bool ours();                                       // before each use; false: not to be had any more, errno says why
  bool removed() const;                              // no folder has it any more
  void release();
};

}  // namespace strobe
