// Why not by name, as all others: mpi4py's wheel refers to 159 functions weakly that Open MPI 5 does not have, and asks
// for each whether it is there. A preloaded definition would answer yes. So we look for references that the linker has
// bound to the MPI library, and put our wrapper there: the entries of the global offset tables, as a debugger would.
#include "adapters/mpi/later_calls.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace strobe::mpi {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#endif

constexpr const char* kNames[] = {
#define MPI_CALL(name, ...) #name,
    MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
};

void* wrapper_of(const char* name, const Library& library) {
  if (strncmp(name, "MPI_", 4)) return nullptr;
  int call = kCalls - int(sizeof kNames / sizeof kNames[0]);
  for (const char* known : kNames) {
    if (!strcmp(known, name)) return library.real[call] ? later_wrapper(call) : nullptr;
    call++;
  }
  return nullptr;
}

struct Object {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  ElfW(Addr) relro = 0, relro_end = 0;
};

void redirect(const Object& object, const ElfW(Rela) * table, size_t bytes, const Library& library) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < bytes / sizeof *table; i++) {
    uint32_t type = uint32_t(ELF64_R_TYPE(table[i].r_info));
    if (type != kJumpSlot && type != kGlobalData) continue;
    void* wrapper = wrapper_of(object.strings + object.symbols[ELF64_R_SYM(table[i].r_info)].st_name, library);
    auto slot = reinterpret_cast<void**>(object.base + table[i].r_offset);
    if (!wrapper || !*slot) continue;
    auto begin = reinterpret_cast<ElfW(Addr)>(slot) / page * page;
    bool sealed =
        reinterpret_cast<ElfW(Addr)>(slot) >= object.relro && reinterpret_cast<ElfW(Addr)>(slot) < object.relro_end;
    if (sealed && mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | PROT_WRITE) != 0) continue;
    *slot = wrapper;
    if (sealed) mprotect(reinterpret_cast<void*>(begin), page, PROT_READ);
  }
}

int visit(dl_phdr_info* info, size_t, void* argument) {
  const Library& library = *static_cast<const Library*>(argument);
  const char* slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : nullptr;
  const char* file = slash ? slash + 1 : "";
  // What MPI calls itself is its own business.
  if (!strncmp(file, "libmpi", 6) || !strncmp(file, "libstrobe", 9)) return 0;
  Object object;
  object.base = info->dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.base + header.p_vaddr);
    if (header.p_type == PT_GNU_RELRO) {
      object.relro = object.base + header.p_vaddr;
      object.relro_end = object.relro + header.p_memsz;
    }
  }
  if (!dynamic) return 0;
  const ElfW(Rela)* slots = nullptr, *others = nullptr;
  size_t slots_bytes = 0, others_bytes = 0;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    // glibc has made these addresses absolute, but for objects that it does not relocate (the vDSO).
    ElfW(Addr) address = dynamic->d_un.d_ptr < object.base ? object.base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) object.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (dynamic->d_tag == DT_STRTAB) object.strings = reinterpret_cast<const char*>(address);
    if (dynamic->d_tag == DT_JMPREL) slots = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_RELA) others = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_PLTRELSZ) slots_bytes = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_RELASZ) others_bytes = dynamic->d_un.d_val;
  }
  if (!object.symbols || !object.strings) return 0;
  if (slots) redirect(object, slots, slots_bytes, library);
  if (others) redirect(object, others, others_bytes, library);
  return 0;
}

}  // namespace

void redirect_later_calls(const Library& library) { dl_iterate_phdr(visit, const_cast<Library*>(&library)); }

}  // namespace strobe::mpi
