#include "adapters/mpi/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <mutex>
#include <string>
#include <vector>

#include "adapters/mpi/references.h"

namespace strobe::mpi {

std::atomic<const Library*> found_library{nullptr};

namespace {

constexpr const char* kNames[kCalls] = {
#define MPI_CALL(name, ...) "P" #name,
    MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
};

void* handle_of(const char* file) { return dlopen(file && *file ? file : nullptr, RTLD_LAZY | RTLD_NOLOAD); }

// mpi4py is loaded by dlopen, and so is its libmpi: RTLD_NEXT does not look there. Its own handle does, and if the
// caller only was handed a pointer, any loaded object that has the function will do.
void* find_init(const void* caller) {
  if (void* init = dlsym(RTLD_NEXT, "PMPI_Init")) return init;
  Dl_info info;
  if (dladdr(caller, &info))
    if (void* handle = handle_of(info.dli_fname))
      if (void* init = dlsym(handle, "PMPI_Init")) return init;
  std::vector<std::string> objects;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* list) {
        static_cast<std::vector<std::string>*>(list)->push_back(object->dlpi_name ? object->dlpi_name : "");
        return 0;
      },
      &objects);
  for (const auto& object : objects)
    if (void* handle = handle_of(object.c_str()))
      if (void* init = dlsym(handle, "PMPI_Init")) return init;
  return nullptr;
}

template <class F>
void look_up(void* handle, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(handle, name));
}

// A variable of the library. An executable linked with it may hold the only copy that is used (copy relocation).
void* object(void* handle, const char* name) {
  void* global = dlsym(RTLD_DEFAULT, name);
  return global ? global : dlsym(handle, name);
}

}  // namespace

const Library* find_library(const void* caller) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const Library* found = found_library.load()) return found;
  void* init = find_init(caller);
  Dl_info info;
  void* handle = init && dladdr(init, &info) ? handle_of(info.dli_fname) : nullptr;
  if (!handle) return nullptr;
  auto* made = new Library;
  for (int call = 0; call < kCalls; call++) made->real[call] = dlsym(handle, kNames[call]);
  look_up(handle, "PMPI_Comm_rank", made->comm_rank);
  look_up(handle, "PMPI_Comm_size", made->comm_size);
  const char* slash = strrchr(info.dli_fname, '/');
  const char* file = slash ? slash + 1 : info.dli_fname;
  Constants& is = made->constants;
  if (void* world = object(handle, "ompi_mpi_comm_world")) {  // Open MPI: handles are addresses of its objects
    made->comm_world = Word(world);
    is.any_source = -1, is.proc_null = -2;
    is.comm_null = Word(object(handle, "ompi_mpi_comm_null"));
  } else if (!strncmp(file, "libmpi_abi", 10)) {  // the ABI of MPI 5.0: handles are small numbers as wide as pointers
    made->comm_world = 0x101;
    is.any_source = -1, is.proc_null = -3;
    is.comm_null = 0x100;
  } else {  // MPICH, Intel MPI, MVAPICH, Cray MPICH: handles are ints
    made->comm_world = 0x44000000;
    is.any_source = -2, is.proc_null = -1;
    is.comm_null = 0x04000000;
    is.comm_is_int = true;
  }
  redirect_references(*made);
  found_library.store(made, std::memory_order_release);
  return made;
}

}  // namespace strobe::mpi
