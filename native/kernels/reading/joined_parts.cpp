// The parts of a flight recorder's block file, mapped one behind the other as if they were one file.
#include "core/format/blocks.h"
#include "core/session/file_parts.h"
#include "kernels/reading/open_file.h"

namespace strobe {

// Names of the earlier parts, the oldest first.
static std::vector<std::string> earlier_parts(const std::string& blocks_path) {
  const size_t slash = blocks_path.rfind('/');
  const std::string folder = slash == blocks_path.npos ? "." : blocks_path.substr(0, slash);
  const std::string stem = blocks_path.substr(slash == blocks_path.npos ? 0 : slash + 1) + ".";
  std::vector<std::string> found;
  DIR* entries = opendir(folder.c_str());
  while (const dirent* entry = entries ? readdir(entries) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(stem) && name.find_first_not_of("0123456789", stem.size()) == name.npos)
      found.push_back(folder + "/" + entry->d_name);
  }
  if (entries) closedir(entries);
  // Numbers have six digits at least.
  std::ranges::sort(found,
                    [](const auto& a, const auto& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  return found;
}

MappedFile MappedFile::joined(const std::string& blocks_path) {
  // The newest first: what becomes a part while we look is found again under its other name, and left out there.
  std::vector<std::unique_ptr<OpenFile>> files;
  auto newest = std::make_unique<OpenFile>(blocks_path, O_RDONLY);
  for (const std::string& path : earlier_parts(blocks_path)) try {
      auto file = std::make_unique<OpenFile>(path, O_RDONLY);
      if (file->inode == newest->inode) break;
      files.push_back(std::move(file));
    } catch (const std::system_error& error) {
      if (error.code().value() != ENOENT) throw;
      files.clear();  // it was removed just now, and all before it are older
    }
  if (files.empty()) return MappedFile(blocks_path);
  MappedFile out;
  out.changed_ns_ = newest->changed_ns;
  bool aligned = true;
  for (const auto& file : files) {
    out.earlier_bytes_ += file->bytes;
    aligned &= file->bytes % kPartAlignment == 0;
  }
  files.push_back(std::move(newest));
  const size_t all = out.earlier_bytes_ + files.back()->bytes;
  const int access = aligned ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* map = mmap(nullptr, all, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::system_error(errno, std::generic_category(), blocks_path);
  out.data_ = {static_cast<const char*>(map), Unmap{all}};
  out.stored_.push_back({0, all});
  char* at = static_cast<char*>(map);
  for (const auto& file : files) {
    if (aligned && file->bytes && mmap(at, file->bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file->fd, 0) == MAP_FAILED)
      throw std::system_error(errno, std::generic_category(), blocks_path);
    for (size_t done = 0; !aligned && done < file->bytes;) {  // a process was killed while it filled a part up
      const ssize_t n = pread(file->fd, at + done, file->bytes - done, off_t(done));
      if (n <= 0) throw std::system_error(n < 0 ? errno : EIO, std::generic_category(), blocks_path);
      done += size_t(n);
    }
    at += file->bytes;
  }
  return out;
}

}  // namespace strobe
