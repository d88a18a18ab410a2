// While we have a file open, the program closes all of its descriptors and opens one of its own, which gets the number
// of ours: it stays open, and as it is.
#include "core/system/descriptors.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "tests/check.h"

using namespace strobe;

namespace {
// What the program does at the moment when we have just opened that descriptor.
std::function<void(int)> meanwhile;

void at(int fd) {
  if (const auto once = std::exchange(meanwhile, nullptr)) once(fd);
}
}  // namespace

extern "C" {  // come before libc's

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  static const auto libc = reinterpret_cast<decltype(&pread)>(dlsym(RTLD_NEXT, "pread"));
  at(fd);
  return libc(fd, to, bytes, offset);
}

int fcntl(int fd, int command, ...) {
  static const auto libc = reinterpret_cast<decltype(&fcntl)>(dlsym(RTLD_NEXT, "fcntl"));
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  const int result = libc(fd, command, argument);
  if (command == F_DUPFD_CLOEXEC) at(fd);
  return result;
}
}

namespace {

struct Program {
  Folder folder;
  std::string path = folder.path + "/mine";
  int mine = -1;
  Program() {
    meanwhile = [this](int fd) {
      close(fd);
      mine = open(path.c_str(), O_RDWR | O_CREAT, 0600);
      CHECK(mine == fd);
      CHECK(write(mine, "only this", 9) == 9);
    };
  }
  ~Program() {
    CHECK(meanwhile == nullptr);
    CHECK(lseek(mine, 0, SEEK_CUR) == 9);  // open, and nobody moved in it
    char all[16] = "";
    CHECK(pread(mine, all, sizeof all, 0) == 9 && !strcmp(all, "only this"));
    close(mine);
  }
};

void small_files() {
  char text[64];
  CHECK(read_small("/proc/self/stat", text, sizeof text) > 0 && atoi(text) == getpid());
  CHECK(read_small("/proc/self/no_such_file", text, sizeof text) < 0);
  Program program;
  read_small("/proc/self/stat", text, sizeof text);
}

void files_that_are_held() {
  HeldFile held;
  {
    Program program;
    CHECK(held.open_new(program.folder.path + "/held", O_RDWR | O_CREAT | O_EXCL | O_APPEND) == 0);
    CHECK(held.ours());
    CHECK(write(held.fd, "ours", 4) == 4);
  }
  CHECK(held.removed() && held.ours());
  held.release();
}

void files_that_are_opened_again() {
  Folder folder;
  HeldFile held;
  CHECK(held.open_new(folder.path + "/held", O_RDWR | O_CREAT | O_EXCL | O_APPEND) == 0);
  close(held.fd);
  {
    Program program;
    CHECK(held.ours());
    CHECK(write(held.fd, "ours", 4) == 4);
  }
  struct stat info;
  CHECK(fstat(held.fd, &info) == 0 && info.st_size == 4);
  const int old = held.fd;
  CHECK(dup2(open((folder.path + "/mine").c_str(), O_RDWR | O_CREAT, 0600), old) == old);  // the program has the number
  held.release();
  CHECK(fstat(old, &info) == 0);
}

void folders() {
  Program program;
  DIR* tasks = open_folder("/proc/self/task");
  bool found = false;
  while (dirent* entry = readdir(tasks)) found |= atoi(entry->d_name) == getpid();
  CHECK(found);
  closedir(tasks);
}

}  // namespace

int main() {
  small_files();
  files_that_are_held();
  files_that_are_opened_again();
  folders();
}
