// wrappers.cpp - libstrobe_mpi.so: MPI functions interposed by LD_PRELOAD, for C and C++ programs and for mpi4py, with
// whatever MPI library the program loads. Without a session every call goes straight through.
#include "adapters/mpi/call_parameters.h"
#include "adapters/mpi/call_recording.h"
#include "adapters/mpi/mpi_calls.h"
#include "adapters/mpi/mpi_library.h"
#include "adapters/mpi/patched_references.h"
#include "adapters/mpi/requests.h"
#include "include/strobe.h"

#include <utility>

namespace strobe::mpi {

thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

namespace {

constexpr bool is_large(const char* name) {  // its counts have 64 bits
  size_t n = 0;
  while (name[n]) n++;
  return n > 2 && name[n - 2] == '_' && name[n - 1] == 'c';
}

constexpr Description kAll[kCalls] = {
#define MPI_CALL(name, arity, role, kind, arguments) \
  {#name, arity, STROBE_ROLE_##role, kind, is_large(#name), arguments},
    MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
#define SHMEM_CALL(result, name, parameters, arguments, arity, role, kind, facts) \
  {#name, arity, STROBE_ROLE_##role, kind, false, facts},
        SHMEM_CALLS(SHMEM_CALL)
#undef SHMEM_CALL
};

constexpr int kOtherError = 16;  // about MPI_ERR_OTHER: no library can be asked

template <class... Words>
int invoke(void* real, const Word* words) {
  return [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return reinterpret_cast<int (*)(Words...)>(real)(words[kAt]...);
  }(std::index_sequence_for<Words...>{});
}

template <int kCall>
struct Wrapped {
  const void *caller, *frame;  // of the wrapper

  template <class... Words>
  [[gnu::always_inline]] int operator()(Words... arguments) const {
    constexpr Kind kind = kAll[kCall].kind;
    const Library* library = mpi::library(caller);
    if (!library || !library->real[kCall]) return kOtherError;
    if constexpr (kind == kInit) {
      strobe_begin();  // unless this process records already: a Python has started long before it calls MPI
      if (strobe_active()) strobe_stop_at_exit();
    }
    if (inside || !(strobe_active() || followed(kind)))
      return reinterpret_cast<int (*)(Words...)>(library->real[kCall])(arguments...);
    Word words[] = {arguments..., 0};
    return record(*library, kCall, words, invoke<Words...>, caller, frame);
  }
};

}  // namespace

const Description& description(int call) { return kAll[call]; }

}  // namespace strobe::mpi

using strobe::mpi::Word;

#define WRAPPER(name, arity)                                                                                        \
  int name(ARGUMENTS_##arity(Word)) {                                                                               \
    const strobe::mpi::Wrapped<strobe::mpi::k##name> call{__builtin_return_address(0), __builtin_frame_address(0)}; \
    return call(ARGUMENTS_##arity());                                                                               \
  }

#define MPI_CALL(name, arity, ...) extern "C" STROBE_API WRAPPER(name, arity)
MPI_CALLS(MPI_CALL)
#undef MPI_CALL

#define MPI_CALL(name, arity, ...) static WRAPPER(name, arity)
MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL

// For libstrobe_threads.so.
extern "C" STROBE_API bool strobe_inside_mpi() { return strobe::mpi::inside; }

void* strobe::mpi::wrapper_of(int call) {
  static void* const wrappers[kMpiCalls] = {
#define MPI_CALL(name, ...) reinterpret_cast<void*>(::name),
      MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
  };
  return wrappers[call];
}
