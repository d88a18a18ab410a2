// elf_file.h - an ELF file of 64 bits that is mapped here for reading: its segments and its symbols. Whatever it holds,
// nothing beyond it is read.
#pragma once
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace strobe {

class ElfFile {
 public:
  // Takes a descriptor; -1: an empty file.
  explicit ElfFile(int fd) {
    struct stat facts;
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size > 0) {
      void* map = mmap(nullptr, size_t(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (map != MAP_FAILED) bytes_ = {static_cast<const char*>(map), size_t(facts.st_size)};
    }
    if (fd >= 0) close(fd);
    const auto* head = at<Elf64_Ehdr>(0);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return;
    if ((segments_ = at<Elf64_Phdr>(head->e_phoff, head->e_phnum))) segment_count_ = head->e_phnum;
    if ((sections_ = at<Elf64_Shdr>(head->e_shoff, head->e_shnum))) section_count_ = head->e_shnum;
  }
  ~ElfFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  ElfFile(const ElfFile&) = delete;

  bool empty() const { return bytes_.empty(); }
  // `count` values at an offset; null where the file ends before.
  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    const uint64_t size = bytes_.size();
    if (offset > size || offset % alignof(T) || count > (size - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  std::string_view bytes(uint64_t offset) const { return bytes_.substr(size_t(std::min(offset, bytes_.size()))); }
  std::string_view text(uint64_t offset) const {
    const std::string_view rest = bytes(offset);
    return rest.substr(0, std::min(rest.find('\0'), rest.size()));
  }
  // The first segment of a type that `wanted` accepts; null where there is none.
  template <class Wanted>
  const Elf64_Phdr* segment(uint32_t type, Wanted wanted) const {
    for (size_t i = 0; i < segment_count_; i++)
      if (segments_[i].p_type == type && wanted(segments_[i])) return &segments_[i];
    return nullptr;
  }
  // Calls `visit` with the offset of its name, and the symbol, for those that are defined here, of tables of a type
  // (SHT_SYMTAB, SHT_DYNSYM), until it returns true.
  template <class Visit>
  bool symbols(uint32_t table, Visit visit) const {
    for (size_t i = 0; i < section_count_; i++) {
      const Elf64_Shdr& section = sections_[i];
      if (section.sh_type != table || section.sh_link >= section_count_) continue;
      const uint64_t count = section.sh_size / sizeof(Elf64_Sym), names = sections_[section.sh_link].sh_offset;
      const auto* symbols = at<Elf64_Sym>(section.sh_offset, count);
      for (uint64_t k = 0; symbols && k < count; k++)
        if (symbols[k].st_shndx != SHN_UNDEF && visit(names + symbols[k].st_name, symbols[k])) return true;
    }
    return false;
  }

 private:
  std::string_view bytes_;
  const Elf64_Phdr* segments_ = nullptr;
  const Elf64_Shdr* sections_ = nullptr;
  size_t segment_count_ = 0, section_count_ = 0;
};

}  // namespace strobe
