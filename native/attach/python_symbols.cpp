#include "attach/python_symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/system/elf_file.h"

namespace strobe {

namespace {

using Wanted = std::map<std::string_view, uintptr_t*>;

// Fills in what the symbols of an ELF file are worth in it. `first`: the address at which its beginning is mapped.
void find(const ElfFile& file, uintptr_t first, Wanted& wanted) {
  const auto* begin = file.segment(PT_LOAD, [](const Elf64_Phdr& segment) { return segment.p_offset == 0; });
  const uintptr_t bias = begin ? first - begin->p_vaddr : first;
  for (const uint32_t table : {SHT_DYNSYM, SHT_SYMTAB})
    file.symbols(table, [&](uint64_t name, const Elf64_Sym& symbol) {
      const auto at = wanted.find(file.text(name));
      if (at != wanted.end()) *at->second = bias + symbol.st_value;
      return false;
    });
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
    const ElfFile file(fd);
    if (file.empty()) {
      unread = each.path;
      continue;
    }
    PythonSymbols found;
    Wanted wanted{{"_PyRuntime", &found.runtime},
                  {"PyCode_Type", &found.code_type},
                  {"Py_Version", &found.version},
                  {"_PyEval_EvalFrameDefault", &found.evaluates}};
    find(file, each.begin, wanted);
    found.file = each.path;
    if (found.runtime && found.code_type) return found;
  }
  if (!unread.empty()) throw std::runtime_error("'" + unread + "', which it has loaded, cannot be read");
  return {};
}

}  // namespace strobe
