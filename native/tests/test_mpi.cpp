// MPI calls, with a library that does nothing: what they are called, what is counted, and that the program's own calls
// come out as they went in.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/check.h"

extern "C" {
int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Abort(int, int);
int MPI_Barrier(int);
int MPI_Send(const void*, int, int, int, int, int);
int MPI_Sendrecv(const void*, int, int, int, int, void*, int, int, int, int, int, void*);
int MPI_Test(void*, int*, void*);
int MPI_Irecv(void*, int, int, int, int, int, int*);
}

using namespace strobe;

namespace {

constexpr int kWorld = 0x44000000, kAnySource = -2, kProcNull = -1;
std::atomic<int> sink;  // something to do after a call, so that it is no tail call

[[gnu::noinline]] void barrier() {
  CHECK(MPI_Barrier(kWorld) == 0);
  sink = 0;
}
// Frames of one size: seen from barrier(), only a return address further out tells the two apart.
[[gnu::noinline]] void first_half() {
  barrier();
  sink = 1;
}
[[gnu::noinline]] void second_half() {
  barrier();
  sink = 2;
}
[[gnu::noinline]] void either(bool second) {
  second ? second_half() : first_half();
  sink = 3;
}

[[gnu::noinline]] int ring(int to, int from) {
  int result = MPI_Sendrecv(nullptr, 1, 2, to, 30, nullptr, 1, 2, from, 12, kWorld, nullptr);
  sink = 4;
  return result;
}

[[gnu::noinline]] int poll() {
  int flag = -1;
  CHECK(MPI_Test(nullptr, &flag, nullptr) == 0);
  return flag;
}

struct Recorded {
  std::map<std::string, int> calls;  // "MPI_Send to -2" -> spans
  std::string end, notes;
};

Recorded read(const Folder& folder) {
  Recorded out;
  auto file = open_process(folder.files(".blocks")[0]);
  std::map<uint32_t, std::string> names;
  for (const auto& region : file->regions) {
    std::string path = region.file;
    // Offsets are the compiler's.
    for (size_t at; (at = path.find("+0x")) != path.npos;) {
      size_t end = path.find_first_not_of("0123456789abcdef", at + 3);
      path.erase(at, end == path.npos ? path.npos : end - at);
    }
    for (size_t at; (at = path.find("(anonymous namespace)::")) != path.npos;) path.erase(at, 23);
    names[region.id] = region.name + (path.empty() ? "" : " " + path);
  }
  for (const auto& [id, location] : file->locations) {
    Spans spans = all_spans(*file, id);
    for (uint32_t path : spans.path) out.calls[names[file->path_region[path]]]++;
  }
  if (!file->end_json.empty()) out.end = file->end_json.back();
  for (const auto& note : file->note_json) out.notes += note + '\n';
  return out;
}

int count_of(const Recorded& recorded, const std::string& what) {
  int found = 0;
  for (const auto& [name, count] : recorded.calls)
    if (name.rfind(what, 0) == 0) found += count;
  return found;
}

void without_a_session() {
  for (int i = 0; i < 3; i++) either(i % 2);
  CHECK(ring(1, kAnySource) == 42);
  CHECK(MPI_Send(nullptr, 0, 0, 9, 0, kWorld) == 1);
}

void with_a_session() {
  Folder folder;
  start(folder);
  errno = 77;
  CHECK(MPI_Init(nullptr, nullptr) == 0);
  for (int i = 0; i < 50; i++) either(i % 2);
  CHECK(errno == 77);
  for (int i = 0; i < 10; i++) CHECK(ring(3, 1) == 42);
  ring(0, kAnySource), ring(2, kProcNull);
  CHECK(MPI_Send(nullptr, 0, 0, 9, 0, kWorld) == 1);
  int found = 0;
  for (int i = 0; i < 40; i++) found += poll();
  CHECK(found == 20);
  CHECK(MPI_Finalize() == 0);
  strobe_stop();

  Recorded recorded = read(folder);
  CHECK(recorded.calls["MPI_Barrier barrier < first_half < either < with_a_session < main"] == 25);
  CHECK(recorded.calls["MPI_Barrier barrier < second_half < either < with_a_session < main"] == 25);
  CHECK(count_of(recorded, "MPI_Sendrecv to +1 from -1; ring < ") == 10);
  CHECK(count_of(recorded, "MPI_Sendrecv to -2 from any; ring < ") == 1);
  CHECK(count_of(recorded, "MPI_Sendrecv to self from null; ring < ") == 1);
  CHECK(count_of(recorded, "MPI_Send to +7; ") == 1);
  CHECK(count_of(recorded, "MPI_Test poll < ") == 20);
  CHECK(count_of(recorded, "MPI_Init ") == 1 && count_of(recorded, "MPI_Finalize ") == 1);
  CHECK(recorded.end.find("\"mpi_polls_that_found_nothing\": 20") != std::string::npos);
  CHECK(recorded.notes.find("{\"rank\": 2, \"ranks\": 4}\n") != std::string::npos);
  // Where a caller is, once for all paths that it is in: a place in this program.
  size_t sites = 0, own = 0;
  for (size_t at = 0; (at = recorded.notes.find("either+0x", at)) != std::string::npos; at++) sites++;
  for (size_t at = 0; (at = recorded.notes.find("/test_mpi\", \"0x", at)) != std::string::npos; at++) own++;
  CHECK(sites == 2 && own >= 10);
}

// A request whose test fails is over: under MPI_ERRORS_RETURN the program goes on, and asks for its result no more.
void failing_test() {
  Folder folder;
  start(folder);
  for (int i = 0; i < 3; i++) {
    int request = 0, flag = 0;
    CHECK(MPI_Irecv(nullptr, 1, 2, 1, 13, kWorld, &request) == 0);
    CHECK(MPI_Test(&request, &flag, nullptr) == 15 && request == 0x2c000000);
  }
  strobe_stop();
  Recorded recorded = read(folder);
  CHECK(recorded.end.find("\"mpi_requests_that_failed\": 3") != std::string::npos);
  CHECK(count_of(recorded, "MPI_Test ") == 3);
}

// Every thread sees every path for the first time at the same moment.
void threads() {
  Folder folder;
  start(folder);
  std::vector<std::thread> all;
  for (int t = 0; t < 4; t++)
    all.emplace_back([] {
      for (int i = 0; i < 500; i++) {
        either(i % 2);
        ring(i % 5, 1);
      }
    });
  for (auto& thread : all) thread.join();
  strobe_stop();
  Recorded recorded = read(folder);
  CHECK(count_of(recorded, "MPI_Barrier barrier < first_half < ") == 1000);
  CHECK(count_of(recorded, "MPI_Barrier barrier < second_half < ") == 1000);
  for (const char* to : {"-2", "-1", "self", "+1", "+2"})
    CHECK(count_of(recorded, std::string("MPI_Sendrecv to ") + to + " from -1; ") == 400);
}

void abort_seals_first() {
  Folder folder;
  start(folder);
  barrier();
  MPI_Abort(kWorld, 7);
  Recorded recorded = read(folder);
  CHECK(count_of(recorded, "MPI_Barrier ") == 1 && count_of(recorded, "MPI_Abort ") == 1);
  CHECK(recorded.end.find("\"exit_code\": 7") != std::string::npos);
}

}  // namespace

int main() {
  without_a_session();
  with_a_session();
  failing_test();
  threads();
  abort_seals_first();
}
