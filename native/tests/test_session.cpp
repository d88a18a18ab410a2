// Recording while many threads write: nothing lost, nothing torn, every thread its own location; again after a stop; in
// forked children.
#include <atomic>
#include <thread>

#include "tests/check.h"

using namespace strobe;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kCalls = 20000;
#else
constexpr int kCalls = 200000;
#endif

void work(uint32_t outer, uint32_t inner, int calls) {
  for (int i = 0; i < calls; i++) {
    strobe_enter(outer);
    strobe_enter(inner);
    strobe_leave(inner);
    strobe_leave(outer);
  }
}

void check_location(const ProcessFile& file, uint32_t location, size_t spans_expected) {
  Spans spans = all_spans(file, location);
  CHECK(spans.row.size() == spans_expected);
  for (size_t i = 0; i < spans.row.size(); i++) {
    CHECK(spans.complete[i]);
    CHECK((spans.parent[i] >= 0) == (i % 2 == 1));
    if (i % 2) {
      CHECK(spans.start_ns[i] >= spans.start_ns[i - 1]);
      CHECK(spans.start_ns[i] + spans.duration_ns[i] <= spans.start_ns[i - 1] + spans.duration_ns[i - 1]);
    }
  }
}

void many_threads() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([=] {
      strobe_name_thread("worker");
      work(outer, inner, kCalls);
    });
  for (auto& thread : threads) thread.join();
  strobe_stop();
  CHECK(folder.files(".rings").empty());
  auto blocks = folder.files(".blocks");
  CHECK(blocks.size() == 1);
  auto file = open_process(blocks[0]);
  CHECK(file->locations.size() == 8 && file->end_json.size() == 1);
  CHECK(file->end_json[0].find("\"records_lost\": 0,") != std::string::npos);
  for (const auto& [id, location] : file->locations) check_location(*file, id, size_t(kCalls) * 2);
}

// Threads that come and go reuse the rings of those that ended: memory stays bounded.
void short_threads() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  for (int t = 0; t < 60; t++) {
    std::thread([=] { work(outer, inner, 100); }).join();
    if (t % 10 == 9) usleep(25000);
  }
  std::string rings = folder.files(".rings")[0];
  CHECK(std::filesystem::file_size(rings) < 40u << 20);
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  CHECK(file->locations.size() == 60);
  for (const auto& [id, location] : file->locations) check_location(*file, id, 200);
}

// A second session in the same process records the same threads again.
void twice() {
  uint32_t outer = region("outer"), inner = region("inner");
  for (int round = 0; round < 3; round++) {
    Folder folder;
    start(folder);
    work(outer, inner, 1000);
    strobe_stop();
    work(outer, inner, 1000);  // goes nowhere
    auto file = open_process(folder.files(".blocks")[0]);
    CHECK(file->locations.size() == 1);
    check_location(*file, file->locations.begin()->first, 2000);
  }
}

void forked_children() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  work(outer, inner, 500);
  strobe_enter(outer);  // open while forking: the child never closes it
  for (int child = 0; child < 3; child++) {
    pid_t pid = fork();
    if (pid == 0) {
      uint32_t own = region("only in the child");
      work(outer, inner, 700 + child);
      strobe_enter(own);
      strobe_leave(own);
      strobe_note_exit(0);
      _exit(0);
    }
    CHECK(status_of(pid) == 0);
  }
  if (pid_t idle = fork(); idle == 0) {
    _exit(0);  // a child that records nothing makes no files
  } else {
    status_of(idle);
  }
  strobe_leave(outer);
  strobe_stop();
  auto blocks = folder.files(".blocks");
  CHECK(blocks.size() == 4);
  size_t spans = 0;
  for (const auto& path : blocks) {
    auto file = open_process(path);
    CHECK(file->end_json.size() == 1);
    for (const auto& [id, location] : file->locations) spans += all_spans(*file, id).row.size();
  }
  CHECK(spans == 1001 + (1400 + 1) + (1402 + 1) + (1404 + 1));
}

// Children of a process whose threads are all in the middle of recording and naming: none deadlocks, none crashes.
void forks_while_recording() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; !done; i++) {
        work(outer, inner, 50);
        char name[32];
        snprintf(name, sizeof name, "region %d.%d", t, i % 2000);
        region(name);
        strobe_count(i % 2 ? "odd" : "even", 1);
      }
    });
  for (int i = 0; i < 60; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(20);  // a deadlock ends here
      work(outer, inner, 200);
      region("of the child");
      strobe_note_exit(0);
      _exit(0);
    }
    CHECK(status_of(pid) == 0);
  }
  done = true;
  for (auto& thread : threads) thread.join();
  strobe_stop();
  CHECK(folder.files(".blocks").size() == 61);
}

// Programs that close every descriptor keep their own files to themselves, and stay recorded.
void closed_descriptors() {
  Folder folder;
  uint32_t outer = region("outer"), inner = region("inner");
  start(folder);
  work(outer, inner, 3000);
  for (int fd = 3; fd < 4096; fd++) close(fd);
  FILE* own = fopen((folder.path + "/own").c_str(), "wb");
  for (int i = 0; i < 1000; i++) dup(fileno(own));  // every number that was ours is now the program's
  work(outer, inner, 3000);
  std::thread([=] { work(outer, inner, 100); }).join();
  strobe_stop();
  CHECK(std::filesystem::file_size(folder.path + "/own") == 0);
  auto file = open_process(folder.files(".blocks")[0]);
  check_location(*file, 0, 12000);
  check_location(*file, 1, 200);
}

}  // namespace

#if defined(__SANITIZE_THREAD__)
// Whether a number is still ours is asked while the program closes and opens it: what closed_descriptors() is about.
extern "C" const char* __tsan_default_suppressions() { return "race:strobe::is_file\n"; }
#endif

int main() {
  many_threads();
  short_threads();
  twice();
  closed_descriptors();
#if defined(__SANITIZE_THREAD__)
  fprintf(stderr, "skipped under TSan, which cannot start threads in a forked child: forked_children\n");
#else
  forked_children();
#if defined(__SANITIZE_ADDRESS__)
  fprintf(
      stderr,
      "skipped under ASan, whose allocator may be locked in a child forked by a busy process: forks_while_recording\n");
#else
  forks_while_recording();
#endif
#endif
}
