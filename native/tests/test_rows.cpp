// Rows: each belongs to the span that was open when it was made, or has its own time, in whatever way the process ends.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "kernels/reading/process_file.h"
#include "kernels/reading/table_chunks.h"
#include "tests/check.h"

using namespace strobe;

namespace {

// Rows of a side table, all chunks together.
Table table(const ProcessFile& file, const std::string& name) {
  Table out;
  const auto found = file.tables.find(name);
  if (found == file.tables.end()) return out;
  for (const auto& chunk : found->second) CHECK(decode_table(chunk.payload, chunk.location, chunk.count, out));
  return out;
}

const Table::Column& column(const Table& table, const std::string& name) {
  for (const auto& [known, column] : table.columns)
    if (known == name) return column;
  fprintf(stderr, "no column %s\n", name.c_str());
  abort();
}

std::string text(const ProcessFile& file, int64_t number) { return std::string(file.texts.at(size_t(number))); }

void message(int64_t tag, int32_t peer = 3, uint32_t communicator = 0) {
  const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(strobe_text("send"), communicator),
                                             STROBE_TWO(peer, STROBE_NOTHING_32),
                                             STROBE_TWO(tag, STROBE_NOTHING_32),
                                             tag * 10,
                                             tag * 7,
                                             STROBE_NOTHING};
  strobe_row(STROBE_ROW_MESSAGE, values);
}

void collective(int32_t sequence) {
  const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(strobe_text("MPI_Allreduce"), strobe_text("world")),
                                             STROBE_TWO(STROBE_NOTHING_32, 4),
                                             sequence * 2,
                                             sequence * 3,
                                             STROBE_TWO(sequence, STROBE_NOTHING_32),
                                             STROBE_NOTHING};
  strobe_row(STROBE_ROW_COLLECTIVE, values);
}

// Every row's number is in the name of the region that was open: "r7" for sequence 7 modulo the regions.
constexpr int kRegions = 16;
uint32_t regions[kRegions];

void make_regions() {
  for (int i = 0; i < kRegions; i++) regions[i] = region(("r" + std::to_string(i)).c_str());
}

std::string region_of(const ProcessFile& file, uint32_t location, int64_t row) {
  const Spans spans = all_spans(file, location);
  CHECK(size_t(row) < spans.row.size() && spans.row[size_t(row)] == row);
  const uint32_t id = file.path_region[spans.path[size_t(row)]];
  for (const Region& r : file.regions)
    if (r.id == id) return r.name;
  return {};
}

void check_collectives(const ProcessFile& file, size_t least, bool all) {
  const Table rows = table(file, "collective_spans");
  CHECK(rows.row.size() >= least);
  const auto& sequence = column(rows, "rank");
  std::map<uint32_t, Spans> spans;
  std::map<uint32_t, std::string> names;
  for (const Region& r : file.regions) names[r.id] = r.name;
  std::map<uint32_t, int64_t> last;
  for (size_t i = 0; i < rows.row.size(); i++) {
    const uint32_t location = rows.location[i];
    if (!spans.count(location)) spans[location] = all_spans(file, location), last[location] = -1;
    const Spans& s = spans[location];
    const auto at = size_t(rows.row[i]);
    CHECK(at < s.row.size());
    CHECK(names[file.path_region[s.path[at]]] == "r" + std::to_string(sequence.value[i] % kRegions));
    CHECK(sequence.value[i] > last[location]);  // once each, in order
    if (all) CHECK(sequence.value[i] == last[location] + 1);
    last[location] = sequence.value[i];
  }
}

void work(int n) {
  for (int i = 0; i < n; i++) {
    strobe_enter(regions[i % kRegions]);
    strobe_enter(regions[(i + 5) % kRegions]);
    strobe_leave(regions[(i + 5) % kRegions]);
    collective(i);
    message(i);
    strobe_leave(regions[i % kRegions]);
  }
}

// More than a ring holds. With a sanitizer the thread that empties the rings may be too slow for that, and rows are
// lost (and counted): then as many as fit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOfThread = 8000;
#else
constexpr int kOfThread = 20000;
#endif

void of_threads() {
  Folder folder;
  start(folder);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++) threads.emplace_back([] { work(kOfThread); });
  work(kOfThread);
  for (auto& thread : threads) thread.join();
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  check_collectives(*file, 4 * kOfThread, true);
  const Table messages = table(*file, "messages");
  CHECK(messages.location.size() == 4 * kOfThread);
  CHECK(std::set<uint32_t>(messages.location.begin(), messages.location.end()).size() == 4);
  CHECK(text(*file, column(messages, "direction").value[0]) == "send");
  CHECK(column(messages, "peer_rank").value[7] == 3 && column(messages, "size_bytes").value[7] == 70);
  for (const auto& [name, c] : messages.columns)
    CHECK(name != "request" && name != "communicator" && name != "communicator_rank");  // nobody said
  const Table collectives = table(*file, "collective_spans");
  CHECK(text(*file, column(collectives, "communicator").value[0]) == "world");
  CHECK(column(collectives, "group_size").value[9] == 4 && column(collectives, "received_bytes").value[9] == 27);
  // A message's time lies between those of the spans around it.
  const auto& time = column(messages, "time_ns");
  for (size_t i = 1; i < time.value.size(); i++)
    if (messages.location[i] == messages.location[i - 1]) CHECK(time.value[i] >= time.value[i - 1]);
}

// Rows of a thread that has no spans, and rows of spans that are not there.
void without_spans() {
  Folder folder;
  start(folder);
  message(1);
  collective(0);
  for (int i = 2; i < 40000; i++) message(i);
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  const Table messages = table(*file, "messages");
  CHECK(messages.location.size() == 39999);
  CHECK(table(*file, "collective_spans").row.empty());
  CHECK(file->end_json[0].find("\"rows_outside_spans\": 1") != std::string::npos);
}

// Of a row about another location; the sampler's.
void about_another() {
  Folder folder;
  start(folder);
  strobe_enter(regions[0]);  // location 0
  strobe_leave(regions[0]);
  std::thread([] {
    for (int i = 0; i < 5000; i++) {
      const int64_t values[STROBE_ROW_VALUES] = {
          STROBE_TWO(i % 2, strobe_text("main\nwork")), STROBE_TWO(0, STROBE_NOTHING_32), 1, 0, 0, 0};
      strobe_row(STROBE_ROW_SAMPLE, values);
    }
  }).join();
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  const Table samples = table(*file, "samples");
  CHECK(samples.location.size() == 5000);
  CHECK(std::count(samples.location.begin(), samples.location.end(), 0u) == 2500);
  CHECK(text(*file, column(samples, "call_stack").value[3]) == "main\nwork");
}

// Of collectives of torch.distributed: three texts or numbers share a value, and each may be nothing or negative.
void make_group_rows() {
  const uint32_t reduce = strobe_text("all_reduce"), bfloat = strobe_text("bfloat16"), pair = strobe_text("pair"),
                 ranks = strobe_text("0,3"), one = strobe_text("1,"), nine = strobe_text("9");
  const uint32_t about = strobe_text(("2," + std::to_string(strobe_text("mesh_tp"))).c_str());
  const int64_t whole[STROBE_ROW_VALUES] = {
      STROBE_THREE(reduce, bfloat, pair), STROBE_THREE(ranks, 3, 7), STROBE_TWO(-1, about), 1ll << 40, -5, 123};
  const int64_t nothing[STROBE_ROW_VALUES] = {STROBE_THREE(reduce, 0, 0),
                                              STROBE_THREE(0, STROBE_NOTHING_21, STROBE_NOTHING_21),
                                              STROBE_TWO(STROBE_NOTHING_32, one),
                                              STROBE_NOTHING,
                                              0,
                                              STROBE_NOTHING};
  // The ends of what 21 bits hold.
  const int64_t ends[STROBE_ROW_VALUES] = {
      STROBE_THREE(reduce, 0, pair), STROBE_THREE(0, (1 << 20) - 1, 1 - (1 << 20)), STROBE_TWO(9, nine), 0, 0, 0};
  for (const int64_t* values : {whole, nothing, ends}) {
    strobe_enter(regions[3]);
    strobe_row(STROBE_ROW_GROUP_COLLECTIVE, values);
    strobe_leave(regions[3]);
  }
}

void check_group_rows(const ProcessFile& file) {
  const Table rows = table(file, "collective_spans");
  CHECK((rows.row == std::vector<int64_t>{0, 1, 2}));
  const auto cells = [&](const char* name) {
    std::string all;
    const Table::Column& of = column(rows, name);
    for (size_t i = 0; i < 3; i++) {
      all += i ? " " : "";
      if (!of.valid[i])
        all += "-";
      else
        all += of.type == CellType::text ? text(file, of.value[i]) : std::to_string(of.value[i]);
    }
    return all;
  };
  CHECK(cells("collective") == "all_reduce all_reduce all_reduce");
  CHECK(cells("dtype") == "bfloat16 - -" && cells("group") == "pair - pair" && cells("group_ranks") == "0,3 - -");
  CHECK(cells("root") == "3 - 1048575" && cells("bucket") == "7 - -1048575");
  CHECK(cells("sequence") == "-1 - 9" && cells("group_size") == "2 1 9");
  CHECK(cells("group_description") == "mesh_tp - -");
  CHECK(cells("sent_bytes") == "1099511627776 - 0" && cells("received_bytes") == "-5 0 0");
  CHECK(cells("pending_ns") == "123 - 0");
}

void of_groups() {
  Folder folder;
  start(folder);
  make_group_rows();
  strobe_stop();
  check_group_rows(*open_process(folder.files(".blocks")[0]));
}

struct Told {
  std::atomic<int64_t> rows;
};

[[maybe_unused]] void killed(Told* told, int after_us, bool totals) {
  Folder folder;
  told->rows = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    start(folder);
    const strobe_total_key key{regions[1], strobe_text("world"), 2, -1};
    for (int i = 0;; i++) {
      strobe_enter(regions[i % kRegions]);
      collective(i);
      message(i);
      if (totals) {
        const strobe_total_sums sums{1, 8, 0, 5};
        strobe_total(&key, &sums);
      }
      told->rows.store(i + 1);
      strobe_leave(regions[i % kRegions]);
    }
  }
  while (told->rows.load() < 100) usleep(100);
  usleep(useconds_t(after_us));
  kill(pid, SIGKILL);
  status_of(pid);
  const auto n = size_t(told->rows.load());
  const std::string blocks = folder.files(".blocks")[0];
  const auto check = [&] {
    auto file = open_process(blocks);
    check_collectives(*file, n, true);
    const Table messages = table(*file, "messages");
    CHECK(messages.location.size() >= n && messages.location.size() <= n + 1);
    for (size_t i = 0; i < messages.location.size(); i++) CHECK(column(messages, "tag").value[i] == int64_t(i));
    if (!totals) return;
    const Table sums = table(*file, "message_totals");
    CHECK(sums.location.size() == 1);
    const int64_t calls = column(sums, "calls").value[0];
    CHECK(calls >= int64_t(n) && calls <= int64_t(n) + 1);
    CHECK(column(sums, "peer_rank").value[0] == 2 && text(*file, column(sums, "function").value[0]) == "r1");
  };
  check();  // as a reader of a dead process does
  recover_process(blocks, blocks.substr(0, blocks.size() - 7) + ".rings");
  check();
}

// Nothing of them was written down: all are read back from the ring.
[[maybe_unused]] void groups_of_a_killed(Told* told) {
  Folder folder;
  told->rows = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    start(folder, {.drain_period_us = 600'000'000});
    make_group_rows();
    told->rows = 3;
    for (;;) pause();
  }
  while (told->rows.load() < 3) usleep(100);
  kill(pid, SIGKILL);
  status_of(pid);
  const std::string blocks = folder.files(".blocks")[0], rings = blocks.substr(0, blocks.size() - 7) + ".rings";
  CHECK(!ProcessFile(blocks, "").tables.count("collective_spans"));
  check_group_rows(*open_process(blocks));
  // Rows come before the block of their spans: a kill between the two, and one that tore the block.
  const TableLayout layout{"collective_spans", {{"sent_bytes", CellType::integer}}, true};
  TableColumns columns(layout);
  const uint64_t cell = 1;
  columns.add(0, 1, &cell);
  const RowTrailer trailer{1, 1000, 0, STROBE_ROW_GROUP_COLLECTIVE, 0, kRowTrailerMagic};
  std::string chunk;
  columns.append_to(chunk, 0, {reinterpret_cast<const char*>(&trailer), sizeof trailer});
  std::string paths;  // of the block come after its rows, too
  const uint32_t path[] = {kNoPath, regions[3]};
  append_chunk(paths, kPathsChunk, 0, 1, {reinterpret_cast<const char*>(path), sizeof path});
  for (const std::string& torn : {std::string(), paths + chunk.substr(0, 20)}) {
    std::ofstream(blocks, std::ios::binary | std::ios::app) << chunk << torn;
    const auto file = open_process(blocks);
    CHECK(file->bytes_lost == 0 && file->chunks_damaged == 0);
    check_group_rows(*file);
    CHECK(region_of(*file, 0, 2) == "r3");
  }
  recover_process(blocks, rings);
  const ProcessFile file(blocks, "");
  check_group_rows(file);
  CHECK(region_of(file, 0, 2) == "r3");
}

[[maybe_unused]] void forked() {
  Folder folder;
  // The recorder's thread sleeps at the fork: GCC's AddressSanitizer does not unlock its allocator in a child.
  start(folder, {.drain_period_us = 600'000'000});
  work(10);
  usleep(100'000);
  const pid_t pid = fork();
  if (pid == 0) {
    work(3000);
    strobe_stop();
    _exit(0);
  }
  status_of(pid);
  work(10);
  strobe_stop();
  size_t of_child = 0, of_parent = 0;
  for (const std::string& blocks : folder.files(".blocks")) {
    auto file = open_process(blocks);
    const Table messages = table(*file, "messages");
    const bool child = file->process_json[0].find("\"forked\": true") != std::string::npos;
    (child ? of_child : of_parent) = messages.location.size();
    if (child) check_collectives(*file, 3000, true);
    CHECK(text(*file, column(messages, "direction").value[0]) == "send");
  }
  CHECK(of_child == 3000 && of_parent == 20);
}

void sums() {
  Folder folder;
  start(folder);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([] {
      for (int i = 0; i < 30000; i++) {
        const strobe_total_key key{regions[i % 7], 0, i % 11, i % 2 ? 10 : -1};
        const strobe_total_sums sums{1, 100, uint64_t(i % 3), 7};
        strobe_total(&key, &sums);
      }
    });
  for (auto& thread : threads) thread.join();
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  const Table totals = table(*file, "message_totals");
  CHECK(totals.location.size() == 7 * 11 * 2);
  int64_t calls = 0, sent = 0, received = 0, ns = 0;
  for (size_t i = 0; i < totals.location.size(); i++) {
    calls += column(totals, "calls").value[i], sent += column(totals, "sent_bytes").value[i];
    received += column(totals, "received_bytes").value[i], ns += column(totals, "total_ns").value[i];
    CHECK(!column(totals, "size_bytes").valid[i] || column(totals, "size_bytes").value[i] == 1024);
  }
  CHECK(calls == 90000 && sent == 9000000 && received == 90000 && ns == 630000);
}

// More keys than there is room for: what is too many is counted, not forgotten.
void too_many_sums() {
  Folder folder;
  start(folder);
  for (int i = 0; i < 30000; i++) {
    const strobe_total_key key{regions[0], 0, i, -1};
    const strobe_total_sums sums{1, 1, 0, 0};
    strobe_total(&key, &sums);
  }
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  const Table totals = table(*file, "message_totals");
  const size_t kept = totals.location.size();
  CHECK(kept > 12000 && kept <= 16384);
  CHECK(file->end_json[0].find("\"totals_not_kept\": " + std::to_string(30000 - kept)) != std::string::npos);
}

// Of a loop whose iterations are folded, messages stay, and collectives keep begin and end of their spans.
void folded() {
  Folder folder;
  start(folder, {.keep = 3});
  strobe_region_info info{};
  info.name = "Optimizer.step#Adam.step", info.paradigm = STROBE_TORCH;
  const uint32_t step = strobe_region(&info);
  uint64_t made = 0;
  strobe_enter(regions[0]);  // stays open around them all
  for (int i = 0; i < 600; i++) {
    for (int k = 0; k < 4; k++) {
      strobe_enter(regions[(i * 4 + k) % kRegions]);
      collective(i * 4 + k);
      message(i * 4 + k);
      made += 2;
      strobe_leave(regions[(i * 4 + k) % kRegions]);
    }
    strobe_enter(step);
    usleep(1000);
    strobe_leave(step);
  }
  strobe_leave(regions[0]);
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  CHECK(!file->iterations.empty());
  const size_t collectives = table(*file, "collective_spans").row.size();
  check_collectives(*file, 12, false);
  CHECK(collectives < made / 4);
  const auto region_of = [&](const Table& rows, size_t i) {
    return file->path_region[size_t(column(rows, "call_path").value[i])];
  };
  const Table messages = table(*file, "messages"), others = table(*file, "folded_collectives");
  CHECK(messages.location.size() == made / 2);
  for (size_t i = 0; i < made / 2; i++) {
    CHECK(column(messages, "tag").value[i] == int64_t(i));
    CHECK(std::abs(column(messages, "in_call_ns").value[i] - int64_t(7 * i)) <= int64_t(1 + i / 10));
    CHECK(region_of(messages, i) == regions[i % kRegions]);
  }
  CHECK(collectives + others.location.size() == made / 2);
  for (size_t i = 0; i < others.location.size(); i++) {
    const size_t sequence = size_t(column(others, "sent_bytes").value[i] / 2);
    CHECK(region_of(others, i) == regions[sequence % kRegions]);
    // Its span lies around the message that was sent in it, which knows the time.
    const int64_t sent = column(messages, "time_ns").value[sequence], begin = column(others, "time_ns").value[i];
    CHECK(begin <= sent && sent <= begin + column(others, "duration_ns").value[i]);
  }
  CHECK(file->end_json[0].find("\"rows_folded\"") == std::string::npos);
}

}  // namespace

int main() {
  setenv("STROBE_CLOCK_WITHOUT_TSC", "1", 1);  // ticks, in which messages have their lengths, are ns
  make_regions();
  of_threads();
  without_spans();
  about_another();
  of_groups();
  sums();
  too_many_sums();
  folded();
#if defined(__SANITIZE_THREAD__)
  fprintf(stderr, "skipped under TSan, which cannot start threads in a forked child: forked, killed\n");
#else
  forked();
  auto* told = shared_with_children<Told>();
  for (int i = 0; i < 6; i++) killed(told, i * 4000, i % 2);
  groups_of_a_killed(told);
#endif
  return 0;
}
