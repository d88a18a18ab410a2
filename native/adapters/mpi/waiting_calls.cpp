#include "adapters/mpi/waiting_calls.h"

#include <iterator>

#include "adapters/mpi/transfer_rows.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {
constexpr WaitArguments kWaits[] = {
    {.requests = 0, .status = 1},                                                       // Wait
    {.count = 0, .requests = 1, .status = 2},                                           // Waitall
    {.count = 0, .requests = 1, .index = 2, .status = 3},                               // Waitany
    {.count = 0, .requests = 1, .completed = 2, .indices = 3, .status = 4},             // Waitsome
    {.flag = 3},                                                                        // Iprobe
    {.flag = 3},                                                                        // Improbe
    {.flag = 1},                                                                        // WinTest
    {.flag = 2},                                                                        // Parrived
    {.requests = 0, .flag = 1, .status = 2},                                            // Test
    {.count = 0, .requests = 1, .flag = 2, .status = 3},                                // Testall
    {.count = 0, .requests = 1, .flag = 3, .index = 2, .status = 4},                    // Testany
    {.count = 0, .requests = 1, .flag = 2, .completed = 2, .indices = 3, .status = 4},  // Testsome
    {.requests = 0, .flag = 1, .status = 2, .by_value = true},                          // GetStatus
    {.count = 0, .requests = 1, .flag = 2, .status = 3},                                // GetStatusAll
    {.count = 0, .requests = 1, .flag = 3, .index = 2, .status = 4},                    // GetStatusAny
    {.count = 0, .requests = 1, .flag = 2, .completed = 2, .indices = 3, .status = 4},  // GetStatusSome
};
static_assert(std::size(kWaits) == kGetStatusSome - kWait + 1);
}  // namespace

WaitArguments wait_arguments(Kind kind) { return kind < kWait ? WaitArguments{} : kWaits[kind - kWait]; }

Waiting::Waiting(const Library& library, Kind kind, Word* words)
    : library_(library), kind_(kind), at_(wait_arguments(kind)) {
  if (at_.requests < 0 || requests_begun.load(std::memory_order_relaxed) <= 0) return;
  const int n = at_.count < 0 ? 1 : int(words[at_.count]);
  if (n <= 0) return;
  count_ = size_t(n);
  if (count_ > kFew) {
    many_ = std::make_unique<Word[]>(count_);
    handles_ = many_.get();
  }
  requests_ = reinterpret_cast<const void*>(words[at_.requests]);
  for (size_t i = 0; i < count_; i++)
    handles_[i] = at_.by_value ? library.handle(words[at_.requests]) : library.handle_at(requests_, i);
  Word& status = words[at_.status];
  if ((status == library.constants.status_ignore || !status) && requests_asking.load(std::memory_order_relaxed) > 0) {
    const bool single = at_.count < 0 || at_.index >= 0;
    char* own = status_;
    if (!single && count_ > kFew) {
      statuses_ = std::make_unique<char[]>(count_ * size_t(library.constants.status_bytes));
      own = statuses_.get();
    }
    status = Word(own);
  }
  if (status != library.constants.status_ignore) status_place_ = reinterpret_cast<const char*>(status);
}

void Waiting::one(size_t request, size_t status, uint64_t began, bool rows) {
  Request over;
  if (kind_ >= kGetStatus ? !request_reported(handles_[request], over) : !request_completes(handles_[request], over))
    return;
  if (over.made && over.facts.communicator)
    made_from(library_, *over.facts.communicator, over.child, library_.handle_at(reinterpret_cast<void*>(over.made)));
  if (over.reported || !rows) return;
  const bool message = is_message(over.facts.traffic);
  if (status_place_)
    complete(over.facts,
             read_status(library_, status_place_ + status * size_t(library_.constants.status_bytes), message));
  else if (needs_status(over.facts))
    return write_lost(over);
  write_end(over, began);
}

void Waiting::failed() {
  if (kind_ >= kGetStatus) return;
  Request over;
  for (size_t i = 0; i < count_; i++) {
    if (library_.handle_at(requests_, i) == handles_[i] || !request_completes(handles_[i], over)) continue;
    write_lost(over);
    strobe_count("mpi_requests_that_failed", 1);
  }
}

void Waiting::over(const Word* words, int result, uint64_t began, bool rows) {
  if (!count_) return;
  if (result != 0) return failed();
  const auto number = [&](int8_t at) { return *reinterpret_cast<const int*>(words[at]); };
  if (at_.completed >= 0) {
    const int n = number(at_.completed);
    auto indices = reinterpret_cast<const int*>(words[at_.indices]);
    for (int i = 0; i < n; i++) one(size_t(indices[i]), size_t(i), began, rows);
  } else if (at_.index >= 0) {
    if (number(at_.index) >= 0) one(size_t(number(at_.index)), 0, began, rows);
  } else {
    for (size_t i = 0; i < count_; i++) one(i, i, began, rows);
  }
}

}  // namespace strobe::mpi
