// However a process ends, its trace holds every record that it wrote: the last one before the kill included.
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>

#include "kernels/reading/process_file.h"
#include "tests/check.h"

using namespace strobe;

namespace {

// The child counts what it has written in memory that outlives it.
struct Told {
  std::atomic<uint64_t> entered, left;
};

void endless(Told* told, const Folder& folder) {
  uint32_t regions[5];
  const char* names[5] = {"a", "b", "c", "d", "e"};
  for (int i = 0; i < 5; i++) regions[i] = region(names[i]);
  start(folder);
  for (;;) {
    for (int depth = 0; depth < 5; depth++) {
      strobe_enter(regions[depth]);
      told->entered.fetch_add(1);
    }
    for (int depth = 5; depth-- > 0;) {
      strobe_leave(regions[depth]);
      told->left.fetch_add(1);
    }
  }
}

// Whether the last write came to its end before the kill.
bool is_whole(const std::string& blocks) {
  std::ifstream file(blocks, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  size_t at = 0;
  for (ChunkHeader header; at + sizeof header <= bytes.size(); at += sizeof header + header.payload_bytes)
    memcpy(&header, bytes.data() + at, sizeof header);
  return at == bytes.size();
}

// What a kill in the middle of a write leaves: the beginning of a chunk. Nothing comes behind such a beginning.
void tear(const std::string& blocks) {
  if (!is_whole(blocks)) return;
  std::string chunk, payload(20000, 'x');
  append_chunk(chunk, kSpansChunk, 0, 1, payload);
  std::ofstream(blocks, std::ios::binary | std::ios::app) << chunk.substr(0, size_t(1 + rand() % 20000));
}

void killed(Told* told, int after_us, int number, bool cut_a_write = false) {
  Folder folder;
  told->entered = told->left = 0;
  pid_t pid = fork();
  if (pid == 0) endless(told, folder);
  while (told->entered.load() < 20) usleep(100);
  usleep(useconds_t(after_us));
  kill(pid, number);
  const int status = status_of(pid);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number);

  std::string blocks = folder.files(".blocks")[0];
  if (cut_a_write) tear(blocks);
  auto read = [&](size_t& complete) {
    auto file = open_process(blocks);
    Spans spans = all_spans(*file, file->locations.begin()->first);
    complete = 0;
    for (uint8_t c : spans.complete) complete += c;
    // Only spans that were open at the end are incomplete, and they lie on one stack.
    CHECK(spans.row.size() - complete <= 5);
    CHECK(file->bytes_lost == 0 && file->chunks_damaged == 0);
    return spans.row.size();
  };
  size_t complete;
  size_t spans = read(complete);
  // The record is in the ring before the child can count it; at most one more was written and not yet counted.
  CHECK(spans == told->entered.load() || spans == told->entered.load() + 1);
  CHECK(complete == told->left.load() || complete == told->left.load() + 1);

  // Written down for good, the file gives the same, and the rings are gone.
  std::string rings = folder.files(".rings")[0];
  recover_process(blocks, rings);
  CHECK(folder.files(".rings").empty());
  size_t complete_again;
  CHECK(read(complete_again) == spans && complete_again == complete);
  CHECK(open_process(blocks)->end_json.back().find("\"lost\"") != std::string::npos);
}

// A kill between the last write and the removal of the rings (a launcher that ends all ranks as soon as one has
// failed).
void killed_after_the_end() {
  Folder folder;
  const uint32_t here = region("here");
  start(folder);
  for (int i = 0; i < 100; i++) strobe_enter(here), strobe_leave(here);
  strobe_count("counted_once", 7);
  const std::string blocks = folder.files(".blocks")[0], rings = folder.files(".rings")[0];
  std::filesystem::create_hard_link(rings, rings + ".kept");
  strobe_stop();
  CHECK(folder.files(".rings").empty());
  std::filesystem::rename(rings + ".kept", rings);
  for (int again = 0; again < 2; again++) {
    auto file = open_process(blocks);
    CHECK(file->end_json.size() == 1);
    CHECK(file->end_json[0].find("\"counted_once\": 7") != std::string::npos);
    CHECK(file->counters.empty());
    CHECK(all_spans(*file, file->locations.begin()->first).row.size() == 100);
    if (!again) CHECK(recover_process(blocks, rings) == 0);
    CHECK(folder.files(".rings").empty());
  }
}

}  // namespace

int main() {
  killed_after_the_end();
  auto* told = shared_with_children<Told>();
  int rounds = 20;
#if defined(__SANITIZE_THREAD__)
  rounds = 5;
#endif
  srand(5);
  for (int i = 0; i < rounds; i++) killed(told, rand() % 60000, SIGKILL);
  for (int i = 0; i < rounds; i++) killed(told, rand() % 60000, SIGKILL, true);
  killed(told, 1000, SIGTERM);
}
