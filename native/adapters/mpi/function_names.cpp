#include "adapters/mpi/function_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/elf_file.h"

namespace strobe::mpi {

namespace {

// The function of `.symtab` that holds an address (relative to where the object is loaded).
bool look_up(const ElfFile& file, uint64_t address, std::string& name, uint64_t& start) {
  return file.symbols(SHT_SYMTAB, [&](uint64_t text, const Elf64_Sym& symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value) return false;
    if (address - symbol.st_value >= symbol.st_size) return false;
    name = file.text(text), start = symbol.st_value;
    return true;
  });
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
  if (look_up(ElfFile(open(path, O_RDONLY | O_CLOEXEC)), relative, name, start)) {
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
