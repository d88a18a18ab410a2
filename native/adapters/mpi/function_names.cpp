#include "adapters/mpi/function_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace strobe::mpi {

namespace {

class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
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
  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    bool inside = offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T);
    return inside ? reinterpret_cast<const T*>(bytes_.data() + offset) : nullptr;
  }

 private:
  std::string_view bytes_;
};

// The function of `.symtab` that holds an address (relative to where the object is loaded).
bool look_up(const MappedFile& file, uint64_t address, std::string& name, uint64_t& start) {
  auto header = file.at<ElfW(Ehdr)>(0);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  auto sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (!sections) return false;
  for (int i = 0; i < header->e_shnum; i++) {
    const auto& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const auto& texts = sections[table.sh_link];
    uint64_t count = table.sh_size / sizeof(ElfW(Sym));
    auto symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
    auto strings = file.at<char>(texts.sh_offset, texts.sh_size);
    if (!symbols || !strings) return false;
    for (uint64_t k = 0; k < count; k++) {
      const auto& symbol = symbols[k];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value) continue;
      if (address - symbol.st_value >= symbol.st_size || symbol.st_name >= texts.sh_size) continue;
      name.assign(strings + symbol.st_name, strnlen(strings + symbol.st_name, texts.sh_size - symbol.st_name));
      start = symbol.st_value;
      return true;
    }
  }
  return false;
}

std::string readable(std::string name) {  // C++ names without their arguments
  int status = 0;
  char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (status == 0 && plain) {
    name = plain;
    size_t at = name.rfind(')');
    for (int open = 0; at != 0 && at < name.size(); at--) {
      open += (name[at] == ')') - (name[at] == '(');
      if (open == 0) {
        name.resize(at);
        break;
      }
    }
  }
  free(plain);
  return name;
}

}  // namespace

Place find_place(const void* address) {
  Place place;
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP)) return place;
  bool executable = map && !map->l_name[0];
  const char* path = executable ? "/proc/self/exe" : info.dli_fname;
  char target[4096] = "";
  if (executable && readlink(path, target, sizeof target - 1) < 0) target[0] = 0;
  const char* shown = executable && target[0] ? target : info.dli_fname;
  place.object = basename(shown);
  char whole[PATH_MAX];
  place.path = shown[0] == '/' || !realpath(shown, whole) ? shown : whole;
  place.base = info.dli_fbase;
  uint64_t relative = reinterpret_cast<uint64_t>(address) - uint64_t(map ? map->l_addr : 0), start = 0;
  place.address = relative;
  place.offset = reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(info.dli_fbase);
  std::string name;
  if (look_up(MappedFile(path), relative, name, start)) {
    place.function = readable(name);
    place.offset = relative - start;
  } else if (info.dli_sname) {
    place.function = readable(info.dli_sname);
    place.offset = reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(info.dli_saddr);
  }
  return place;
}

std::string call_site(const Place& place) {
  char offset[32];
  snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(place.offset + 1));
  return (place.function.empty() ? place.object : place.function) + offset;
}

}  // namespace strobe::mpi
