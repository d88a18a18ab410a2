// The entries of the global offset tables are changed, as a debugger would.
//
// Why MPI_LATER_CALLS are not defined by name, as all others: mpi4py's wheel refers to 159 functions weakly that Open
// MPI 5 does not have, and asks for each whether it is there. A preloaded definition would answer yes.
//
// Why Fortran: a Fortran program's mpi_send_ is in MPICH's binding, which calls MPI_Send and so comes to us. Open MPI's
// bindings (mpif.h, mpi and mpi_f08 alike) call PMPI_Send.
#include "adapters/mpi/patched_references.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/mpi/call_recording.h"

namespace strobe::mpi {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#endif

constexpr int kFirstLater = 0
#define MPI_CALL(...) +1
    MPI_CALLS(MPI_CALL)
#undef MPI_CALL
    ;

struct Object {
  bool fortran = false;
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  ElfW(Addr) relro = 0, relro_end = 0;
};

void* replacement(const char* name, const Object& object, const Library& library) {
  if (object.fortran && *name == 'P') name++;  // PMPI_Send
  if (strncmp(name, "MPI_", 4) != 0) return nullptr;
  for (int call = object.fortran ? 0 : kFirstLater; call < kMpiCalls; call++)
    if (!strcmp(description(call).name, name)) return library.real[call] ? wrapper_of(call) : nullptr;
  return nullptr;
}

void redirect(const Object& object, const ElfW(Rela) * table, size_t bytes, const Library& library) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < bytes / sizeof *table; i++) {
    uint32_t type = uint32_t(ELF64_R_TYPE(table[i].r_info));
    if (type != kJumpSlot && type != kGlobalData) continue;
    const char* name = object.strings + object.symbols[ELF64_R_SYM(table[i].r_info)].st_name;
    void* wrapper = replacement(name, object, library);
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
  const char* file = basename(info->dlpi_name ? info->dlpi_name : "");
  Object object;
  object.fortran = !strncmp(file, "libmpi_mpifh", 12) || !strncmp(file, "libmpi_usempi", 13);
  // What MPI calls itself is its own business.
  if (!object.fortran && (!strncmp(file, "libmpi", 6) || !strncmp(file, "libstrobe", 9))) return 0;
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

// Before main(): nothing of ours is called by a Fortran program whose bindings call PMPI_Init.
__attribute__((constructor)) void redirect_fortran() {
  bool bound = false;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (info->dlpi_name && strstr(info->dlpi_name, "/libmpi_mpifh")) *static_cast<bool*>(found) = true;
        return 0;
      },
      &bound);
  if (bound) library(reinterpret_cast<void*>(redirect_fortran));
}

}  // namespace

void redirect_references(const Library& library) { dl_iterate_phdr(visit, const_cast<Library*>(&library)); }

}  // namespace strobe::mpi
