// process_files.h - what /proc has of another process. All files are opened below one folder that belongs to this
// process alone, even if another one gets its number.
#pragma once
#include <stdint.h>
#include <sys/types.h>
#include <string>
#include <vector>

namespace strobe {

struct Mapping {
  uintptr_t begin, end;
  uint64_t offset;
  std::string path;  // as the process sees it
};

class ProcessFiles {
 public:
  // Throws std::system_error: ESRCH where there is no such process.
  explicit ProcessFiles(pid_t pid);
  ~ProcessFiles();
  ProcessFiles(const ProcessFiles&) = delete;

  pid_t pid() const { return pid_; }
  // A descriptor of a file, -1: errno has the reason. The caller closes it.
  int open(const std::string& name) const;
  // The first `most` bytes of a file; empty where it cannot be read.
  std::string text(const std::string& name, size_t most) const;
  // Its threads, by their numbers here; empty where it is gone.
  std::vector<uint64_t> threads() const;
  // Throws std::system_error: EACCES or EPERM where it may not be read.
  std::vector<Mapping> mappings() const;
  // Whether a descriptor of the process is a file, not a pipe or a socket.
  bool is_file(int descriptor) const;
  // Whether the program is still there that ran when this was made: it has not ended, and not become another one.
  bool same_program() const;
  // Whether the process runs any program: it has not ended, and is not about to.
  bool runs() const;

 private:
  const pid_t pid_;
  int folder_ = -1, memory_ = -1;
  uintptr_t known_ = 0;  // an address that can be read
};

// What a thread's file holds now, from the start; empty: the thread is gone.
std::string again(int fd);

}  // namespace strobe
