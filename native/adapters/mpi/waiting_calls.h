// waiting_calls.h - calls that wait or look for requests (MPI_Wait, MPI_Testsome, ...): what their requests were, since
// MPI overwrites them, and the statuses of those that are over.
#pragma once
#include <stdint.h>

#include <memory>

#include "adapters/mpi/call_recording.h"

namespace strobe::mpi {

// Positions of arguments, -1 where there is none. `flag`: whether something was found.
struct WaitArguments {
  int8_t count = -1, requests = -1, flag = -1, index = -1, completed = -1, indices = -1, status = -1;
  bool by_value = false;  // the request itself is the argument
};
WaitArguments wait_arguments(Kind kind);

class Waiting {
 public:
  // Notes the requests, and gives the call a status of our own where the program wants none and a request has to be
  // asked. Does nothing while no request has begun.
  Waiting(const Library& library, Kind kind, Word* words);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // After the call that `began` then: what is over is forgotten, and, if `rows`, reported.
  void over(const Word* words, int result, uint64_t began, bool rows);

 private:
  void one(size_t request, size_t status, uint64_t began, bool rows);
  void failed();

  static constexpr size_t kFew = 16;
  const Library& library_;
  const Kind kind_;
  const WaitArguments at_;
  size_t count_ = 0;
  Word few_[kFew];
  std::unique_ptr<Word[]> many_;
  Word* handles_ = few_;
  alignas(8) char status_[kFew * 32];
  std::unique_ptr<char[]> statuses_;
  const char* status_place_ = nullptr;
  const void* requests_ = nullptr;
};

}  // namespace strobe::mpi
