// Where the recorder meets what programs rarely do: nothing but switches of stacks, a window that closes over a full
// ring, names before a session, descriptors that become the program's own, tables that grow while a session starts.
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/syscall.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "core/system/hardware_counters.h"
#include "tests/check.h"

using namespace strobe;

// The drainer's writes wait while a test says so.
static std::atomic<bool> disk_waits{false};
extern "C" [[gnu::visibility("default")]] ssize_t write(int fd, const void* bytes, size_t n) {
  while (disk_waits.load() && fd > 2) usleep(1000);
  return ssize_t(syscall(SYS_write, fd, bytes, n));
}

namespace {

std::unique_ptr<ProcessFile> read(const Folder& folder) { return open_process(folder.files(".blocks")[0]); }

bool lost_nothing(const ProcessFile& file) {
  return file.end_json.size() == 1 && file.end_json[0].find("\"records_lost\": 0,") != std::string::npos;
}

// More switches than a ring holds, with nothing open: they make room, and what comes next is recorded.
void only_switches(uint32_t keep) {
  Folder folder;
  const uint32_t after = region("after");
  start(folder, {.keep = keep});
  for (uint32_t i = 0; i < 300000; i++) strobe_switch_stack(i % 2);
  strobe_enter(after);
  strobe_leave(after);
  strobe_stop();
  auto file = read(folder);
  CHECK(lost_nothing(*file));
  if (keep != UINT32_MAX) CHECK(all_spans(*file, 0).row.size() == 1);
}

// A kill while the last block ends on another stack: what the program came back to is no part of what it left.
void killed_on_another_stack() {
  Folder folder;
  auto* told = shared_with_children<std::atomic<int>>();
  const uint32_t outer = region("outer"), inner = region("inner"), first = region("first");
  const pid_t pid = fork();
  if (pid == 0) {
    start(folder);
    const std::string blocks = folder.files(".blocks")[0];
    strobe_switch_stack(5);
    strobe_enter(outer);
    const auto empty = std::filesystem::file_size(blocks);
    for (int i = 0; i < 500 && std::filesystem::file_size(blocks) < empty + 1000; i++) {
      for (int k = 0; k < 1000; k++) strobe_enter(inner), strobe_leave(inner);
      usleep(10000);
    }
    strobe_switch_stack(0);
    strobe_enter(first), strobe_leave(first);
    *told = 1;
    for (;;) pause();
  }
  while (!*told) usleep(1000);
  kill(pid, SIGKILL);
  status_of(pid);
  auto file = read(folder);
  CHECK(!file->locations.at(0).blocks.empty());
  const Spans spans = all_spans(*file, 0);
  CHECK(spans.row.size() > 4096);
  CHECK(file->path_region[spans.path[0]] == outer && spans.complete[0]);
  CHECK(file->path_region[spans.path.back()] == first && spans.parent.back() == -1 && spans.complete.back());
}

uint64_t records_lost(const Folder& folder) {  // by the first ring of the process
  std::ifstream rings(folder.files(".rings")[0], std::ios::binary);
  rings.seekg(kRingsHeaderBytes + offsetof(RingHeader, lost));
  uint64_t lost = 0;
  rings.read(reinterpret_cast<char*>(&lost), sizeof lost);
  return lost;
}

// The ring is full as the window closes, so that an enter is lost; in the next window everything is there again.
void window_closes_over_a_full_ring() {
  Folder folder;
  const uint32_t work = region("work"), lost = region("lost"), later = region("later");
  start(folder);
  strobe_enter(work), strobe_leave(work);
  disk_waits = true;
  for (int i = 0; i < 65000; i++) strobe_enter(work), strobe_leave(work);
  while (true) {  // until there is no room
    strobe_enter(lost);
    if (records_lost(folder)) break;
    strobe_leave(lost);
  }
  disk_waits = false;
  strobe_mute();
  strobe_leave(lost);
  strobe_unmute();
  for (int i = 0; i < 10; i++) strobe_enter(later), strobe_leave(later);
  strobe_stop();
  auto file = read(folder);
  CHECK(!lost_nothing(*file));
  int found = 0;
  for (uint32_t path : all_spans(*file, 0).path) found += file->path_region[path] == later;
  CHECK(found == 10);
}

// Threads that tell their names and end, in a program that records nothing now.
void names_without_a_session() {
  const std::string name(2000, 'n');
  const auto some = [&name](int threads) {
    for (int i = 0; i < threads; i++) std::thread([&name] { strobe_name_thread(name.c_str()); }).join();
  };
  some(20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const size_t before = mallinfo2().uordblks;
  some(1000);
  CHECK(mallinfo2().uordblks < before + 200000);
#endif
}

// Regions, texts and metrics that other threads make while sessions start: every number that is used is in the file.
void tables_grow_while_a_session_starts() {
  std::atomic<bool> done{false};
  std::atomic<uint32_t> newest{0}, newest_text{0};
  std::thread other([&] {
    // Fewer than a process may have: what is beyond is one region, which is counted, in the file that is just closed.
    for (int i = 0; !done && i < 100'000; i++) {
      newest = region(("made " + std::to_string(i)).c_str());
      newest_text = strobe_text(("text " + std::to_string(i)).c_str());
      if (i % 100 == 0) strobe_sample(strobe_metric(("metric " + std::to_string(i)).c_str(), ""), 1);
    }
  });
  while (!newest_text) usleep(1000);
  for (int round = 0; round < 20; round++) {
    Folder folder;
    start(folder);
    const uint32_t used = newest, text = newest_text;
    strobe_stop();
    auto file = read(folder);
    std::set<uint32_t> known;
    for (const auto& each : file->regions) known.insert(each.id);
    for (uint32_t id = 1; id <= used; id++) CHECK(known.count(id));
    CHECK(file->texts.size() > text);
  }
  done = true;
  other.join();
}

// A child's threads all record for the first time at once: whoever comes second joins the session, and ends nothing.
void first_records_of_a_child_at_once() {
  Folder folder;
  const uint32_t work = region("work"), metric = strobe_metric("metric", "");
  start(folder);
  strobe_enter(work), strobe_leave(work);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    std::atomic<int> ready{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++)
      all.emplace_back([&, t] {
        for (ready++; ready < 4;) {
        }
        t % 2 ? strobe_sample(metric, t) : strobe_enter(work);
        if (t % 2 == 0) strobe_leave(work);
      });
    for (auto& thread : all) thread.join();
    const bool active = strobe_active();
    strobe_note_exit(0);
    _exit(active ? 0 : 1);
  }
  CHECK(status_of(pid) == 0);
  strobe_stop();
}

bool counts_instructions() { return strobe_hardware_counter("instructions"); }

// Descriptors of counters lie behind the program's own; closed and used again they are the program's, and in a child
// they count the child.
void hardware_counters() {
  uint64_t values[STROBE_USAGE_VALUES];
  const int next = dup(0);
  close(next);
  strobe_thread_usage(1, values);
  const int same = dup(0);
  CHECK(same == next);
  close(same);
  volatile uint64_t sum = 0;
  for (int i = 0; i < 1000000; i++) sum = sum + 1;
  strobe_thread_usage(1, values);
  CHECK(values[5] > 1000000);
  const pid_t pid = fork();
  if (pid == 0) {
    strobe_thread_usage(1, values);
    const bool own = values[5] < 1000000;
    for (int i = 0; i < 1000000; i++) sum = sum + 1;
    strobe_thread_usage(1, values);
    _exit(own && values[5] > 1000000 ? 0 : 1);
  }
  CHECK(status_of(pid) == 0);
}

// With counters of the process: daemons close what is not theirs, and open files of their own.
[[maybe_unused]] void hardware_counters_of_a_daemon() {
  Folder folder;
  start(folder, {.metrics_period_ms = 5, .counters = "hardware"});
  usleep(50000);
  for (int fd = 3; fd < 4096; fd++) close(fd);
  int ends[2];
  CHECK(pipe(ends) == 0);
  const std::string bytes(60000, 'x');
  CHECK(write(ends[1], bytes.data(), bytes.size()) == ssize_t(bytes.size()));
  for (int i = 0; i < 1000; i++) dup(ends[0]);  // every number that was ours is now the program's
  std::thread([] { usleep(50000); }).join();
  usleep(50000);
  strobe_stop();
  for (int fd : {ends[0], ends[0] + 10, 600, 900}) CHECK(fcntl(fd, F_GETFD) >= 0);
  std::string back(60000, 0);
  CHECK(::read(ends[0], back.data(), back.size()) == ssize_t(back.size()) && back == bytes);
  for (int fd = 3; fd < 4096; fd++) close(fd);
}

// Many threads: only so many of the program's descriptors are taken.
void hardware_counters_of_many_threads() {
  Folder folder;
  std::atomic<bool> done{false};
  std::vector<std::thread> all;
  for (int i = 0; i < 100; i++)
    all.emplace_back([&] {
      while (!done) usleep(10000);
    });
  start(folder, {.metrics_period_ms = 10, .counters = "hardware"});
  usleep(200000);
  int open = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) (void)each, open++;
  done = true;
  for (auto& thread : all) thread.join();
  strobe_stop();
  CHECK(open < 64 * 4 + 30);
  CHECK(read(folder)->end_json[0].find("threads_without_hardware_counters") != std::string::npos);
}

void hardware_counters_are_shared() {
  SharedCount count;
  CHECK(count.after({100, 10, 10}) == 100);
  CHECK(count.after({100, 30, 20}) == 100);  // on for half of the time, in which nothing happened
  CHECK(count.after({100, 50, 20}) == 100);  // not on at all
  CHECK(count.after({300, 60, 30}) == 700);  // since then on for 10 of 30
  CHECK(count.sum() == 700);
}

}  // namespace

int main() {
  hardware_counters_are_shared();
  names_without_a_session();
  only_switches(0);
  only_switches(UINT32_MAX);
  window_closes_over_a_full_ring();
  tables_grow_while_a_session_starts();
#if defined(__SANITIZE_THREAD__)
  fprintf(stderr,
          "skipped under TSan, which cannot start threads in a forked child: first_records_of_a_child_at_once\n");
#else
  killed_on_another_stack();
  first_records_of_a_child_at_once();
#endif
  if (!counts_instructions()) {
    fprintf(stderr, "skipped, as the kernel counts no instructions here: hardware_counters\n");
    return 0;
  }
  hardware_counters();
  hardware_counters_of_many_threads();
#if defined(__SANITIZE_THREAD__)
  fprintf(stderr, "skipped under TSan, which takes a closed descriptor for a race: hardware_counters_of_a_daemon\n");
#else
  hardware_counters_of_a_daemon();
#endif
}
