#include "core/system/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace strobe {

FileId file_id(int fd) {
  struct stat info;
  return fd >= 0 && fstat(fd, &info) == 0 ? FileId{info.st_dev, info.st_ino} : FileId{};
}

bool is_file(int fd, const FileId& id) { return id != FileId{} && file_id(fd) == id; }

void close_file(int fd, const FileId& id) {
  if (is_file(fd, id)) close(fd);
}

int move_away(int fd) {
  const FileId id = file_id(fd);
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, int(known ? std::min<rlim_t>(limit.rlim_cur * 7 / 8, 900) : 900));
  if (high < 0) return fd;
  if (!is_file(high, id)) return close(high), fd;
  close_file(fd, id);
  return high;
}

ssize_t read_small(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const FileId id = file_id(fd);
  const ssize_t n = pread(fd, buffer, size - 1, 0);  // not read: it moves no file of the program, should this be one
  close_file(fd, id);
  buffer[n > 0 ? n : 0] = 0;
  return n;
}

std::string read_parts(const char* path, size_t most) {
  std::string all;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return all;
  const FileId id = file_id(fd);
  char part[4096];
  for (ssize_t n; all.size() < most && (n = pread(fd, part, sizeof part, off_t(all.size()))) > 0;)
    all.append(part, size_t(n));
  close_file(fd, id);
  return all;
}

DIR* open_folder(const char* path) {
  const int low = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (low < 0) return nullptr;
  const int fd = move_away(low);
  DIR* folder = fdopendir(fd);
  if (!folder) close(fd);
  return folder;
}

std::atomic<uint64_t> own_writes{0}, own_written_bytes{0};

int write_all(int fd, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t n =
        offset < 0 ? write(fd, bytes.data(), bytes.size()) : pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    own_writes++, own_written_bytes += uint64_t(n);
    bytes.remove_prefix(size_t(n));
    if (offset >= 0) offset += n;
  }
  return 0;
}

mode_t mode_in_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  struct stat folder;
  if (stat(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), &folder) != 0) return 0600;
  return folder.st_mode & 0666;
}

int HeldFile::open_new(const std::string& path, int flags) {
  const int low = open(path.c_str(), flags | O_CLOEXEC, mode_in_folder(path));
  if (low < 0) return errno;
  fd = move_away(low);
  name = path;
  id = file_id(fd);
  return 0;
}

bool HeldFile::ours() {
  if (is_file(fd, id)) return true;
  fd = open(name.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd >= 0 && is_file(fd = move_away(fd), id)) return true;
  if (fd >= 0) close(fd);
  fd = -1;
  errno = ENOENT;
  return false;
}

bool HeldFile::removed() const {
  struct stat info;
  return fd >= 0 && fstat(fd, &info) == 0 && info.st_nlink == 0;
}

void HeldFile::release() {
  close_file(fd, id);
  fd = -1;
}

}  // namespace strobe
