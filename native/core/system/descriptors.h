// descriptors.h - files that we open in a process that is not ours. Programs close descriptors that are not theirs
// (daemons close all), at any moment of ours; what they open next gets the number, and is none of our business.
#pragma once
#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <atomic>
#include <string>
#include <string_view>

namespace strobe {

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// Of an open file; of none: FileId{}.
FileId file_id(int fd);
bool is_file(int fd, const FileId& id);

// Closes `fd` if it is still that file.
void close_file(int fd, const FileId& id);

// A file that was just opened gets a number far from those that the program's own files get. Returns it, or `fd` itself
// where there is none.
int move_away(int fd);

// Mode of a new file: who may read its folder may read it, and nobody else.
mode_t mode_in_folder(const std::string& path);

// Reads up to `size` - 1 bytes from the start of a file of /proc or of a control group, and ends them with a 0.
// How many, or -1.
ssize_t read_small(const char* path, char* buffer, size_t size);

// The first `most` bytes of such a file that the system gives in parts; fewer where it ends.
std::string read_parts(const char* path, size_t most);

// As opendir, with such a number.
DIR* open_folder(const char* path);

// Writes all of `bytes`: where the file ends or is at, or at `offset`. 0, or an errno value.
int write_all(int fd, std::string_view bytes, off_t offset = -1);
extern std::atomic<uint64_t> own_writes, own_written_bytes;  // by these calls: no output of the program's

// A file kept open, so that no file of the program's own ever gets our bytes.
struct HeldFile {
  std::string name;  // empty: none
  int fd = -1;
  FileId id;
  int open_new(const std::string& path, int flags);  // 0 or an errno value
  bool ours();                                       // before each use; false: it is gone, and errno is set
  bool removed() const;                              // it is in no folder any more
  void release();
};

}  // namespace strobe
