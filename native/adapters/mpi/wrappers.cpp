// wrappers.cpp - libstrobe_mpi.so: MPI functions interposed by LD_PRELOAD, for C and C++ programs and for mpi4py, with
// whatever MPI library the program loads. Without a session every call goes straight through.
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
};

constexpr int kOtherError = 16;  // about MPI_ERR_OTHER: no library can be asked

template <class... Words>
int invoke(void* real, const Word* words) {
  return [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return reinterpret_cast<int (*)(Words...)>(real)(words[kAt]...);
  }(std::index_sequence_for<Words...>{});
}

template <int kCall, class... Words>
[[gnu::always_inline]] inline int around(const void* caller, const void* frame, Words... arguments) {
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

}  // namespace

const Description& description(int call) { return kAll[call]; }

}  // namespace strobe::mpi

#define WORDS_0
#define WORDS_1 Word a
#define WORDS_2 WORDS_1, Word b
#define WORDS_3 WORDS_2, Word c
#define WORDS_4 WORDS_3, Word d
#define WORDS_5 WORDS_4, Word e
#define WORDS_6 WORDS_5, Word f
#define WORDS_7 WORDS_6, Word g
#define WORDS_8 WORDS_7, Word h
#define WORDS_9 WORDS_8, Word i
#define WORDS_10 WORDS_9, Word j
#define WORDS_11 WORDS_10, Word k
#define WORDS_12 WORDS_11, Word l
#define WORDS_13 WORDS_12, Word m
#define PASS_0
#define PASS_1 , a
#define PASS_2 PASS_1, b
#define PASS_3 PASS_2, c
#define PASS_4 PASS_3, d
#define PASS_5 PASS_4, e
#define PASS_6 PASS_5, f
#define PASS_7 PASS_6, g
#define PASS_8 PASS_7, h
#define PASS_9 PASS_8, i
#define PASS_10 PASS_9, j
#define PASS_11 PASS_10, k
#define PASS_12 PASS_11, l
#define PASS_13 PASS_12, m

using strobe::mpi::Word;

#define BODY(name, arity)                                                                      \
  {                                                                                            \
    return strobe::mpi::around<strobe::mpi::k##name>(__builtin_return_address(0),              \
                                                     __builtin_frame_address(0) PASS_##arity); \
  }

#define MPI_CALL(name, arity, ...) extern "C" STROBE_API int name(WORDS_##arity) BODY(name, arity)
MPI_CALLS(MPI_CALL)
#undef MPI_CALL

#define MPI_CALL(name, arity, ...) static int name(WORDS_##arity) BODY(name, arity)
MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL

void* strobe::mpi::wrapper_of(int call) {
  static void* const wrappers[kCalls] = {
#define MPI_CALL(name, ...) reinterpret_cast<void*>(::name),
      MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
  };
  return wrappers[call];
}
