#include "attach/process_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace strobe {

namespace {
constexpr size_t kMapsBytes = 16 << 20;
}

ProcessFiles::ProcessFiles(pid_t pid) : pid_(pid) {
  const std::string path = "/proc/" + std::to_string(pid);
  folder_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) throw std::system_error(errno == ENOENT ? ESRCH : errno, std::generic_category(), path);
  // It belongs to the memory that the program has now: of what it becomes by an exec nothing can be read here.
  memory_ = open("mem");
  const int error = errno;
  // The kernel's own mapping stays where it is as long as the program does.
  if (memory_ >= 0)
    for (const Mapping& each : mappings())
      if (char byte; !known_ && pread(memory_, &byte, 1, off_t(each.begin)) == 1) known_ = each.begin;
  if (memory_ < 0 || !known_) {
    const bool gone = !runs();
    if (memory_ >= 0) close(memory_);
    close(folder_);
    throw std::system_error(gone ? ESRCH : memory_ < 0 ? error : EPERM, std::generic_category(), path);
  }
}

ProcessFiles::~ProcessFiles() { close(memory_), close(folder_); }

int ProcessFiles::open(const std::string& name) const { return openat(folder_, name.c_str(), O_RDONLY | O_CLOEXEC); }

std::string ProcessFiles::text(const std::string& name, size_t most) const {
  std::string out;
  const int fd = open(name);
  if (fd < 0) return out;
  char piece[1 << 14];
  for (ssize_t n; out.size() < most && (n = ::read(fd, piece, std::min(sizeof piece, most - out.size()))) > 0;)
    out.append(piece, size_t(n));
  close(fd);
  return out;
}

std::vector<uint64_t> ProcessFiles::threads() const {
  std::vector<uint64_t> out;
  const int fd = openat(folder_, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : fdopendir(fd);
  if (!folder) return out;
  while (const dirent* each = readdir(folder))
    if (each->d_name[0] != '.') out.push_back(strtoull(each->d_name, nullptr, 10));
  closedir(folder);
  return out;
}

std::vector<Mapping> ProcessFiles::mappings() const {
  const std::string all = text("maps", kMapsBytes);
  if (all.empty() && runs()) {
    const int fd = open("maps");
    const int error = fd < 0 ? errno : EACCES;
    if (fd >= 0) close(fd);
    throw std::system_error(error, std::generic_category(), "/proc/" + std::to_string(pid_) + "/maps");
  }
  std::vector<Mapping> out;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    unsigned long begin, last, offset;
    int path = 0;
    const std::string line = all.substr(at, end - at);
    if (sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &last, &offset, &path) >= 3 && path)
      out.push_back({begin, last, offset, line.substr(size_t(path))});
    at = end + 1;
  }
  return out;
}

bool ProcessFiles::is_file(int descriptor) const {
  struct stat facts;
  return fstatat(folder_, ("fd/" + std::to_string(descriptor)).c_str(), &facts, 0) == 0 &&
         (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode));
}

bool ProcessFiles::same_program() const {
  char byte;
  return pread(memory_, &byte, 1, off_t(known_)) == 1;
}

bool ProcessFiles::runs() const {
  char program[8];
  return readlinkat(folder_, "exe", program, sizeof program) > 0 || errno == EACCES || errno == EPERM;
}

std::string again(int fd) {
  char bytes[256];
  const ssize_t n = pread(fd, bytes, sizeof bytes, 0);
  return n > 0 ? std::string(bytes, size_t(n)) : std::string();
}

}  // namespace strobe
