// wrappers.cpp - libstrobe_mpi.so: MPI functions interposed by LD_PRELOAD, for C and C++ programs and for mpi4py, with
// whatever MPI library the program loads. Without a session every call goes straight through.
//
// Polls that find nothing (MPI_Test*, MPI_Iprobe) are counted, not recorded: they were 95 % of the events of SNAP and
// AMG.
#include <string.h>

#include "adapters/mpi/call_paths.h"
#include "adapters/mpi/library.h"
#include "adapters/mpi/references.h"
#include "adapters/mpi/regions.h"
#include "adapters/mpi/standalone.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

enum Kind : int { kPlain = 0, kInit, kAbort, kPoll = 16 };  // kPoll + position of the flag or count that says "found"

struct Description {
  const char* name;
  uint8_t role;
  int kind, to, from, comm;
};

constexpr Description kDescriptions[kCalls] = {
#define MPI_CALL(name, arity, role, kind, to, from, comm) {#name, STROBE_ROLE_##role, kind, to, from, comm},
    MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
#undef MPI_CALL
};

// An MPI library may use its own functions, and callbacks of the program may call MPI: one span is enough.
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

constexpr int kOtherError = 16;  // what MPI calls MPI_ERR_OTHER, more or less: there is no library to ask

int32_t relative(int peer, int rank, const Constants& is) {
  if (peer == is.any_source) return kAnybody;
  if (peer == is.proc_null) return kNullProcess;
  return peer - rank;
}

Peers peers_of(const Description& call, const Word* words, const Library& library) {
  Peers peers;
  if (call.comm < 0) return peers;
  const Constants& is = library.constants;
  Word comm = words[call.comm];
  if (is.comm_is_int) comm = Word(uint32_t(comm));
  int rank = 0;
  // What is wrong with the arguments is for the function itself to say.
  if (comm == is.comm_null || library.comm_rank(comm, &rank) != 0) return peers;
  if (call.to >= 0) peers.to = relative(int(words[call.to]), rank, is);
  if (call.from >= 0) peers.from = relative(int(words[call.from]), rank, is);
  return peers;
}

void note_rank(const Library& library) {
  int rank = 0, size = 0;
  if (library.comm_rank(library.comm_world, &rank) == 0 && library.comm_size(library.comm_world, &size) == 0)
    strobe_note_rank(rank, size);
}

template <int kCall, class... Words>
[[gnu::always_inline]] inline int around(const void* caller, const void* frame, Words... arguments) {
  constexpr Description call = kDescriptions[kCall];
  const Library* library = mpi::library(caller);
  if (!library || !library->real[kCall]) return kOtherError;
  auto real = reinterpret_cast<int (*)(Words...)>(library->real[kCall]);
  if constexpr (call.kind == kInit) {
    start_standalone();
    if (strobe_active()) strobe_stop_at_exit();
  }
  if (inside || !strobe_active()) return real(arguments...);
  Inside here;
  const Word words[] = {arguments..., 0};
  uint32_t region = region_of(kCall, call.name, call.role, peers_of(call, words, *library), call_path(caller, frame));
  if constexpr (call.kind >= kPoll) {
    uint64_t begin = strobe_ticks();
    int result = real(arguments...);
    auto found = reinterpret_cast<const int*>(words[call.kind - kPoll]);
    if (result == 0 && *found > 0) {
      strobe_enter_at(region, begin);
      strobe_leave(region);
    } else {
      strobe_count("mpi_polls_that_found_nothing", 1);
    }
    return result;
  } else {
    strobe_enter(region);
    // MPI ends this process now, perhaps by a signal: what was recorded is sealed first.
    if constexpr (call.kind == kAbort) strobe_note_exit(int(words[1]));
    int result = real(arguments...);
    strobe_leave(region);
    if constexpr (call.kind == kInit) {
      if (result == 0) note_rank(*library);
    }
    return result;
  }
}

}  // namespace

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
#define WORDS_12 WORDS_10, Word k, Word l
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
#define PASS_12 PASS_10, k, l

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
