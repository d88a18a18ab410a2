// What non-blocking MPI calls have begun, found again when it completes: by handles that several requests share, that
// come again, that are persistent, that nobody waits for.
#include "adapters/mpi/requests.h"

#include <atomic>
#include <set>
#include <thread>

#include "tests/check.h"

using namespace strobe::mpi;

namespace {

Request send_to(int32_t rank) {
  Request request;
  request.facts.to = rank, request.facts.sent = 8;
  return request;
}
Request receive_from(int32_t rank) {
  Request request;
  request.facts.from = rank, request.facts.received = kUnknown;
  return request;
}

bool nothing_is_open() { return requests_begun == 0 && requests_asking == 0; }

void one_after_the_other() {
  Request out;
  CHECK(!request_completes(5, out));
  request_begins(5, send_to(1));
  CHECK(requests_begun == 1 && requests_asking == 0);  // a send has nothing to ask of its status
  request_begins(6, receive_from(kAnyone));
  CHECK(requests_begun == 2 && requests_asking == 1);
  CHECK(request_completes(6, out) && out.facts.from == kAnyone && out.from_anyone);
  const uint32_t number = out.number;
  CHECK(request_completes(5, out) && out.facts.to == 1 && !out.from_anyone && out.number + 1 == number);
  CHECK(!request_completes(5, out) && nothing_is_open());
  request_begins(5, receive_from(2));  // the handle comes again
  CHECK(request_completes(5, out) && out.facts.from == 2 && out.number > number && nothing_is_open());
}

// MPI gives sends that are over at once one handle: they complete in the order in which they began.
void of_one_handle() {
  Request out;
  for (int32_t i = 0; i < 5; i++) request_begins(7, send_to(i));
  for (int32_t i = 0; i < 3; i++) CHECK(request_completes(7, out) && out.facts.to == i);
  request_begins(7, send_to(5));
  for (int32_t i = 3; i < 6; i++) CHECK(request_completes(7, out) && out.facts.to == i);
  CHECK(!request_completes(7, out) && nothing_is_open());
}

void persistent() {
  Request out;
  request_prepared(8, receive_from(kAnyone));
  CHECK(nothing_is_open() && !request_completes(8, out));  // MPI_Wait of an inactive one tells nothing
  for (uint64_t round = 1; round <= 3; round++) {
    request_starts(8, round);
    request_starts(8, 99);  // is active: the program's mistake, which MPI reports
    CHECK(requests_begun == 1 && requests_asking == 1);
    CHECK(request_completes(8, out) && out.persistent && out.began == round && !out.from_anyone);
    CHECK(!request_completes(8, out) && nothing_is_open());
  }
  request_starts(8, 4);
  CHECK(request_freed(8, out) && out.began == 4 && nothing_is_open());  // nobody hears of its end
  CHECK(!request_freed(8, out));
  request_starts(8, 5);  // is unknown now
  CHECK(nothing_is_open());
  request_prepared(8, send_to(1));
  CHECK(!request_freed(8, out) && out.facts.to == 1 && nothing_is_open());  // was not active
}

// MPI_Request_get_status: reported once, while the request goes on.
void asked_before_its_end() {
  Request out;
  request_begins(9, receive_from(3));
  CHECK(request_reported(9, out) && out.facts.from == 3 && !out.reported);
  CHECK(!request_reported(9, out) && requests_begun == 1);
  CHECK(request_completes(9, out) && out.reported && nothing_is_open());
  CHECK(!request_reported(9, out));
}

void cancelled() {
  Request out;
  request_begins(10, send_to(1));
  request_cancelled(10);
  request_cancelled(10);
  CHECK(requests_asking == 1);  // whether it was sent, its status tells
  CHECK(request_completes(10, out) && nothing_is_open());
  request_cancelled(10);
  CHECK(nothing_is_open());
}

std::multiset<int32_t> left;

void at_the_end() {
  Request out;
  request_begins(11, send_to(1));
  request_begins(11, send_to(2));
  request_begins(12, send_to(3));
  request_prepared(13, send_to(4));  // never started
  requests_left([](const Request& request) { left.insert(request.facts.to); });
  CHECK((left == std::multiset<int32_t>{1, 2, 3}));
  for (strobe::mpi::Word handle : {11, 11, 12}) CHECK(request_completes(handle, out));
  request_freed(13, out);
  requests_left([](const Request&) { CHECK(false); });
  CHECK(nothing_is_open());
}

// More handles than buckets, from several threads: each finds its own, and numbers are given once.
void many() {
  constexpr int kThreads = 4, kEach = 5000;
  std::vector<std::set<uint32_t>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([t, &numbers] {
      Request out;
      const auto handle = [t](int i) { return strobe::mpi::Word(0x1000 + 16 * (i * kThreads + t)); };
      for (int i = 0; i < kEach; i++) request_begins(handle(i), i % 3 ? send_to(i) : receive_from(i));
      for (int i = kEach; i-- > 0;) {
        CHECK(request_completes(handle(i), out) && (i % 3 ? out.facts.to : out.facts.from) == i);
        CHECK(numbers[size_t(t)].insert(out.number).second);
      }
    });
  for (auto& thread : threads) thread.join();
  std::set<uint32_t> all;
  for (const auto& each : numbers) all.insert(each.begin(), each.end());
  CHECK(all.size() == kThreads * kEach && nothing_is_open());
}

}  // namespace

int main() {
  one_after_the_other();
  of_one_handle();
  persistent();
  asked_before_its_end();
  cancelled();
  at_the_end();
  many();
}
