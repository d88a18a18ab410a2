// call_recording.h - what happens around an MPI call while a session records: a span, the rows that belong to it, and
// what has to be remembered until a request completes.
#pragma once
#include <stdint.h>

#include "adapters/mpi/call_arguments.h"
#include "adapters/mpi/mpi_library.h"
#include "adapters/mpi/requests.h"

namespace strobe::mpi {

enum Kind : uint8_t {
  kPlain,
  kInit,
  kSession,
  kFinalize,
  kAbort,
  kRequest,  // the last argument receives a request that has begun
  kStart,
  kStartall,
  kCancel,
  kNameComm,
  kPersistent,  // the last argument receives a request that MPI_Start will begin
  kRequestFree,
  kMprobe,
  kNewComm,  // the last argument receives it; so for windows and files
  kIdup,
  kFreeComm,
  kNewWin,
  kFreeWin,
  kBeginsEpoch,  // for the ranks of a group
  kEndsEpoch,
  kNewFile,
  kFreeFile,
  kFreeType,
  kWait,
  kWaitall,
  kWaitany,
  kWaitsome,
  // Polls: recorded only if they find something. They were 95 % of the events of SNAP and AMG.
  kIprobe,
  kImprobe,
  kWinTest,
  kParrived,
  kTest,
  kTestall,
  kTestany,
  kTestsome,
  kGetStatus,
  kGetStatusAll,
  kGetStatusAny,
  kGetStatusSome,
};

struct Description {
  const char* name;
  uint8_t arity, role;
  Kind kind;
  bool large;  // counts have 64 bits
  Arguments arguments;
};
const Description& description(int call);  // wrappers.cpp

// An MPI library may use its own functions, and callbacks of the program may call MPI: one span is enough.
extern thread_local bool inside __attribute__((tls_model("initial-exec")));

// Whether a call has to be looked at even while nothing is recorded: handles that it makes or frees are used later.
inline bool followed(Kind kind) {
  return (kind >= kPersistent && kind <= kFreeType) || kind == kImprobe ||
         (kind >= kWait && requests_begun.load(std::memory_order_relaxed) > 0);
}

using Invoke = int (*)(void* real, const Word* words);

// Calls the real function, with `words` as its arguments, and records it. `caller` and `frame`: of the wrapper.
int record(const Library& library, int call, Word* words, Invoke invoke, const void* caller, const void* frame);

}  // namespace strobe::mpi
