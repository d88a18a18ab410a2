#include "attach/python_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace strobe {

namespace {

// A file that is mapped here for reading. Whatever it holds, nothing beyond it is read.
class MappedFile {
 public:
  explicit MappedFile(int fd) {
    struct stat facts;
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size > 0) {
      void* map = mmap(nullptr, size_t(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (map != MAP_FAILED) bytes_ = {static_cast<const char*>(map), size_t(facts.st_size)};
    }
    if (fd >= 0) close(fd);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  bool empty() const { return bytes_.empty(); }
  // `count` values at an offset; null where the file ends before.
  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    const uint64_t size = bytes_.size();
    if (offset > size || offset % alignof(T) || count > (size - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = bytes_.substr(size_t(offset));
    return rest.substr(0, std::min(rest.find('\0'), rest.size()));
  }

 private:
  std::string_view bytes_;
};

using Wanted = std::map<std::string_view, uintptr_t*>;

// Fills in what the symbols of an ELF file are worth in it. `first`: the address at which its beginning is mapped.
void find(const MappedFile& file, uintptr_t first, Wanted& wanted) {
  const auto* head = file.at<Elf64_Ehdr>(0);
  if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return;
  uintptr_t bias = first;
  const auto* segments = file.at<Elf64_Phdr>(head->e_phoff, head->e_phnum);
  for (size_t i = 0; segments && i < head->e_phnum; i++)
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) bias = first - segments[i].p_vaddr;
  const auto* sections = file.at<Elf64_Shdr>(head->e_shoff, head->e_shnum);
  for (size_t i = 0; sections && i < head->e_shnum; i++) {
    const Elf64_Shdr& section = sections[i];
    if ((section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) || section.sh_link >= head->e_shnum) continue;
    const uint64_t count = section.sh_size / sizeof(Elf64_Sym), names = sections[section.sh_link].sh_offset;
    const auto* symbols = file.at<Elf64_Sym>(section.sh_offset, count);
    for (uint64_t k = 0; symbols && k < count; k++) {
      if (symbols[k].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[k].st_info) != STT_OBJECT) continue;
      if (const auto at = wanted.find(file.text(names + symbols[k].st_name)); at != wanted.end())
        *at->second = bias + symbols[k].st_value;
    }
  }
}

}  // namespace

PythonSymbols python_symbols(const ProcessFiles& process) {
  const std::vector<Mapping> mappings = process.mappings();
  char program[4096];
  const ssize_t n = readlink(("/proc/" + std::to_string(process.pid()) + "/exe").c_str(), program, sizeof program);
  const std::string exe(program, size_t(std::max<ssize_t>(n, 0)));
  std::set<std::string> seen;
  std::string unread;
  for (const Mapping& each : mappings) {
    const std::string name = each.path.substr(each.path.rfind('/') + 1);
    if (each.offset != 0 || each.path.empty() || each.path[0] != '/' || !seen.insert(each.path).second) continue;
    const bool is_program = each.path == exe;
    // The program itself, the library that most have the interpreter in, or one in which it was built in.
    if (!is_program && name.find("python") == name.npos) continue;
    // As the process sees its files, which may be those of a container.
    int fd = is_program ? process.open("exe") : process.open("root" + each.path);
    if (fd < 0 && !is_program) {  // removed since, by an update
      char range[64];
      snprintf(range, sizeof range, "map_files/%lx-%lx", (unsigned long)each.begin, (unsigned long)each.end);
      fd = process.open(range);
    }
    const MappedFile file(fd);
    if (file.empty()) {
      unread = each.path;
      continue;
    }
    PythonSymbols found;
    Wanted wanted{{"_PyRuntime", &found.runtime}, {"PyCode_Type", &found.code_type}, {"Py_Version", &found.version}};
    find(file, each.begin, wanted);
    found.file = each.path;
    if (found.runtime && found.code_type) return found;
  }
  if (!unread.empty()) throw std::runtime_error("'" + unread + "', which it has loaded, cannot be read");
  return {};
}

}  // namespace strobe
