#include "adapters/mpi/mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <mutex>
#include <string>
#include <vector>

#include "adapters/mpi/call_recording.h"
#include "adapters/mpi/patched_references.h"

namespace strobe::mpi {

std::atomic<const Library*> found_library{nullptr};

namespace {

void* handle_of(const char* file) { return dlopen(file && *file ? file : nullptr, RTLD_LAZY | RTLD_NOLOAD); }

int fails(...) { return 16; }  // about what MPI calls MPI_ERR_OTHER

// A function that an old library lacks fails: then less is known of what calls move.
template <class F>
void look_up(void* handle, const char* name, F*& function) {
  void* found = dlsym(handle, name);
  function = found ? reinterpret_cast<F*>(found) : reinterpret_cast<F*>(fails);
}

// A variable of the library. An executable linked with it may hold the only copy that is used (copy relocation).
void* object(void* handle, const char* name) {
  void* global = dlsym(RTLD_DEFAULT, name);
  return global ? global : dlsym(handle, name);
}

}  // namespace

// mpi4py is loaded by dlopen, and so is its libmpi: RTLD_NEXT does not look there. Its own handle does, and if the
// caller only was handed a pointer, any loaded object that has the function will do.
void* find_function(const char* name, const void* caller) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  Dl_info info;
  if (dladdr(caller, &info))
    if (void* handle = handle_of(info.dli_fname))
      if (void* found = dlsym(handle, name)) return found;
  std::vector<std::string> objects;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* list) {
        static_cast<std::vector<std::string>*>(list)->push_back(object->dlpi_name ? object->dlpi_name : "");
        return 0;
      },
      &objects);
  for (const auto& object : objects)
    if (void* handle = handle_of(object.c_str()))
      if (void* found = dlsym(handle, name)) return found;
  return nullptr;
}

const Library* find_library(const void* caller) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const Library* found = found_library.load()) return found;
  void* init = find_function("PMPI_Init", caller);
  Dl_info info;
  void* handle = init && dladdr(init, &info) ? handle_of(info.dli_fname) : nullptr;
  if (!handle) return nullptr;
  auto* made = new Library;
  for (int call = 0; call < kMpiCalls; call++)
    made->real[call] = dlsym(handle, (std::string("P") + description(call).name).c_str());
#define MPI_QUESTION(member, name, parameters) look_up(handle, "PMPI_" #name, made->member);
  MPI_QUESTIONS(MPI_QUESTION)
#undef MPI_QUESTION
  const char* file = basename(info.dli_fname);
  Constants& is = made->constants;
  if (void* world = object(handle, "ompi_mpi_comm_world")) {  // Open MPI: handles are addresses of its objects
    made->comm_world = Word(world);
    is.any_source = -1, is.proc_null = -2, is.root = -4;
    is.comm_null = Word(object(handle, "ompi_mpi_comm_null"));
    is.comm_self = Word(object(handle, "ompi_mpi_comm_self"));
    is.type_null = Word(object(handle, "ompi_mpi_datatype_null"));
    is.byte = Word(object(handle, "ompi_mpi_byte"));
    is.cartesian = 1, is.graph = 2, is.distributed_graph = 3;
    is.status_bytes = 24, is.status_source = 0, is.status_tag = 4;
  } else if (!strncmp(file, "libmpi_abi", 10)) {  // the ABI of MPI 5.0: handles are small numbers as wide as pointers
    made->comm_world = 0x101;
    is.any_source = -1, is.proc_null = -3, is.root = -4;
    is.comm_null = 0x100, is.comm_self = 0x102, is.type_null = 0x200, is.byte = 0x247;
    is.cartesian = 211, is.graph = 212, is.distributed_graph = 213;
    is.status_bytes = 32, is.status_source = 0, is.status_tag = 4;
    is.lock_shared = 302;
  } else {  // MPICH, Intel MPI, MVAPICH, Cray MPICH: handles are ints
    made->comm_world = 0x44000000;
    is.any_source = -2, is.proc_null = -1, is.root = -3;
    is.comm_null = 0x04000000, is.comm_self = 0x44000001, is.type_null = 0x0c000000, is.byte = 0x4c00010d;
    is.in_place = -1, is.status_ignore = 1;
    is.graph = 1, is.cartesian = 2, is.distributed_graph = 3;
    is.status_bytes = 20, is.status_source = 8, is.status_tag = 12;
    is.lock_shared = 235;
    is.handles_are_ints = true;
  }
  redirect_references(*made);
  found_library.store(made, std::memory_order_release);
  return made;
}

}  // namespace strobe::mpi
