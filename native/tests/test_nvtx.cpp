// NVTX through its function tables: names, domains, ranges that end elsewhere, and NCCL within torch.distributed.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "adapters/nvtx/nvtx_payload.h"
#include "adapters/torch_collectives.h"
#include "core/system/clock.h"
#include "kernels/reading/table_chunks.h"
#include "tests/check.h"

using namespace strobe;

namespace {

// The tables that a program's NVTX hands out: nothing but places of functions.
constexpr uint32_t kSlots = 16;
void* core[kSlots];
void* core2[kSlots];
intptr_t payload[63];

const void* export_table(uint32_t) {
  static void** places[2][kSlots];
  static const struct {
    size_t size;
    int (*get)(uint32_t, void****, uint32_t*);
  } table = {sizeof table, [](uint32_t module, void**** out, uint32_t* size) {
               void** functions = module == 1 ? core : core2;
               for (uint32_t i = 0; i < kSlots; i++) places[module == 5][i] = functions + i;
               *out = places[module == 5];
               *size = kSlots;
               return 1;
             }};
  return &table;
}

template <class F>
F* function(void* place) {
  return reinterpret_cast<F*>(place);
}
void* create_domain(const char* name) { return function<void*(const char*)>(core2[12])(name); }
int push(void* domain, const char* text, const nvtx::Data* data = nullptr, int count = 1) {
  nvtx::Attributes a{};
  a.message_type = nvtx::kAscii, a.message = text;
  if (data) a.payload_type = nvtx::kExtendedPayload, a.payload_count = count, a.payload = uint64_t(data);
  return function<int(void*, const nvtx::Attributes*)>(core2[4])(domain, &a);
}
int pop(void* domain) { return function<int(void*)>(core2[5])(domain); }
uint64_t start_range(const char* text) { return function<uint64_t(const char*)>(core[5])(text); }
void end_range(uint64_t id) { function<void(uint64_t)>(core[7])(id); }

void inject() {
  CHECK(InitializeInjectionNvtx2(export_table) == 1);
  nvtx::ModuleSegment segment{0, 63, payload};
  nvtx::ModuleInfo info{3, sizeof info, 9, 0x0104, 1, &segment, nullptr, nullptr};
  CHECK(InitializeInjectionNvtxExtension(&info) == 1 && !payload[0]);  // another extension
  info.module = nvtx::kPayloadModule;
  CHECK(InitializeInjectionNvtxExtension(&info) == 1 && payload[0] && payload[7] && !payload[8]);
}

struct Range {
  std::string location;
  int64_t start_ns, end_ns;
};

// Spans of the locations beside the threads, by name.
std::multimap<std::string, Range> ranges_of(const std::string& blocks) {
  auto file = open_process(blocks);
  std::map<uint32_t, std::string> known;
  for (const Region& r : file->regions) known[r.id] = r.name;
  std::multimap<std::string, Range> found;
  for (const auto& [id, location] : file->locations) {
    if (location.kind != 2) continue;
    CHECK(location.device == -1);
    const Spans spans = all_spans(*file, id);
    for (size_t i = 0; i < spans.row.size(); i++)
      found.emplace(known.at(file->path_region[spans.path[i]]),
                    Range{location.name, spans.start_ns[i], spans.start_ns[i] + spans.duration_ns[i]});
  }
  return found;
}

// Name and module of each span.
std::multiset<std::pair<std::string, std::string>> spans_of(const Folder& folder) {
  auto file = open_process(folder.files(".blocks")[0]);
  std::map<uint32_t, const Region*> known;
  for (const Region& r : file->regions) known[r.id] = &r;
  std::multiset<std::pair<std::string, std::string>> found;
  for (const auto& [location, about] : file->locations)
    for (uint32_t path : all_spans(*file, location).path) {
      const Region* r = known.at(file->path_region[path]);
      found.emplace(r->name, r->module);
    }
  return found;
}

uint64_t counted(const Folder& folder, const std::string& what) {
  const std::string json = open_process(folder.files(".blocks")[0])->end_json[0];
  const size_t at = json.find("\"" + what + "\": ");
  return at == std::string::npos ? 0 : strtoull(json.c_str() + at + what.size() + 4, nullptr, 10);
}

void names() {
  Folder folder;
  start(folder);
  void *one = create_domain("one"), *two = create_domain("two");
  for (void* domain : {one, two, static_cast<void*>(nullptr)}) push(domain, "same"), pop(domain);
  for (const char* text : {"op, seq = 1, op_id = 2, sizes = [[3]]", "op, op_id = 4", "op, sizes = [[5]]", "op"})
    push(nullptr, text), pop(nullptr);
  const nvtx::SchemaEntry entries[] = {{1 << 10, 75, "text"}};
  nvtx::SchemaAttributes schema{};
  schema.fields = 1 << 4 | 1 << 5, schema.type = 1, schema.entries = entries, schema.entry_count = 1;
  const uint64_t id = reinterpret_cast<uint64_t (*)(void*, const nvtx::SchemaAttributes*)>(payload[0])(one, &schema);
  CHECK(id >= nvtx::kFirstDynamicId);
  const char* text = "said by a payload";
  const nvtx::Data data{id, sizeof text, &text};
  using Payload = int (*)(void*, const nvtx::Data*, size_t);
  CHECK(reinterpret_cast<Payload>(payload[3])(one, &data, 1) == 0);
  CHECK(reinterpret_cast<Payload>(payload[4])(one, nullptr, 0) == 0);
  reinterpret_cast<void (*)(void*, const nvtx::Data*, size_t)>(payload[2])(one, &data, 1);
  strobe_stop();
  const auto found = spans_of(folder);
  CHECK(found.count({"same", "one"}) == 1 && found.count({"same", "two"}) == 1 && found.count({"same", ""}) == 1);
  CHECK(found.count({"op", ""}) == 4);
  CHECK(found.count({"said by a payload", "one"}) == 2);
  CHECK(found.size() == 9);
}

void too_many_names() {
  Folder folder;
  start(folder);
  constexpr int kNames = 70000;
  for (int i = 0; i < kNames; i++) {  // domains of one name are one
    void* domain = create_domain("made anew");
    push(domain, "of all"), pop(domain);
  }
  for (int i = 0; i < kNames; i++) push(nullptr, ("unique " + std::to_string(i)).c_str()), pop(nullptr);
  strobe_stop();
  const auto found = spans_of(folder);
  const uint64_t folded = counted(folder, "nvtx_names_folded");
  CHECK(folded > 4000 && folded < 10000 && found.count({"<other NVTX ranges>", ""}) == folded);
  CHECK(found.size() + counted(folder, "records_lost") / 2 == 2 * kNames);
}

void that_end_elsewhere() {
  Folder folder;
  start(folder);
  const int64_t before = monotonic_ns();
  const uint64_t first = start_range("first"), never = start_range("never over"), second = start_range("second");
  const int64_t begun = monotonic_ns();
  CHECK(first && second && first != second);
  usleep(2000);
  const int64_t between = monotonic_ns();
  std::thread([&] { end_range(first), end_range(first); }).join();  // the second time it is over
  const int64_t ended = monotonic_ns();
  end_range(second);
  end_range(start_range("third"));
  strobe_stop();
  end_range(never);
  CHECK(counted(folder, "nvtx_start_end_ranges_not_recorded") == 0);
  CHECK(counted(folder, "nvtx_ranges_never_ended") == 1);
  CHECK(counted(folder, "nvtx_pops_without_push") == 1);
  const auto found = ranges_of(folder.files(".blocks")[0]);
  CHECK(found.size() == 3 && spans_of(folder).size() == 3);
  const Range one = found.find("first")->second, two = found.find("second")->second;
  CHECK(one.location == "NVTX ranges" && two.location == "NVTX ranges (lane 2)");
  CHECK(before <= one.start_ns && one.start_ns <= two.start_ns && two.start_ns <= begun);
  CHECK(between <= one.end_ns && one.end_ns <= ended && ended <= two.end_ns);
  CHECK(found.find("third")->second.location == "NVTX ranges");
}

// Windows: what is open when one ends belongs to none. Children: what they begin is theirs, what their parent began is
// not; one that has nothing but ranges is recorded, too. (TSan takes a thread of a child for that of its parent.)
[[maybe_unused]] void of_windows_and_children() {
  Folder folder;
  start(folder);
  const uint64_t over_windows = start_range("over two windows");
  strobe_mute();
  end_range(start_range("between"));
  strobe_unmute();
  end_range(over_windows);
  end_range(start_range("in the second"));
  const uint64_t of_parent = start_range("of the parent");
  const pid_t pid = fork();
  end_range(of_parent);
  if (pid == 0) {
    end_range(start_range("of the child"));
    (void)!start_range("never over");
    strobe_stop();
    _exit(0);
  }
  CHECK(status_of(pid) == 0);
  strobe_stop();
  std::multiset<std::multiset<std::string>> names;
  for (const std::string& blocks : folder.files(".blocks")) {
    std::multiset<std::string> of_process;
    for (const auto& [name, range] : ranges_of(blocks)) of_process.insert(name);
    names.insert(of_process);
    CHECK(open_process(blocks)->end_json[0].find("\"nvtx_ranges_never_ended\": 1") != std::string::npos);
  }
  CHECK((names == std::multiset<std::multiset<std::string>>{{"in the second", "of the parent"}, {"of the child"}}));
}

// Threads that end ranges while others fork: nobody waits for ever.
[[maybe_unused]] void while_others_fork() {
  Folder folder;
  start(folder);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&done] {
      while (!done) end_range(start_range("over"));
    });
  for (int i = 0; i < 20; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);  // a deadlock ends here
      for (int k = 0; k < 10; k++) end_range(start_range("of a child"));
      strobe_stop();
      _exit(0);
    }
    CHECK(status_of(pid) == 0);
  }
  done = true;
  for (auto& thread : threads) thread.join();
  strobe_stop();
  int children = 0;
  for (const std::string& blocks : folder.files(".blocks")) {
    const auto found = ranges_of(blocks);
    if (found.count("over")) continue;
    CHECK(found.size() == 10 && found.count("of a child") == 10);
    children++;
  }
  CHECK(children == 20);
}

// The core allocates inside of the recorder, and holds its locks there; this program's allocator has ranges.
std::atomic<bool> allocator_has_ranges{false};
std::atomic<uint64_t> allocations{0};

void of_an_allocator() {
  Folder folder;
  start(folder);
  allocator_has_ranges = true;
  void* domain = create_domain("of an allocator");
  for (int i = 0; i < 100; i++) push(domain, ("long enough to be allocated " + std::to_string(i)).c_str()), pop(domain);
  end_range(start_range("over"));
  allocator_has_ranges = false;
  strobe_stop();
  const auto found = spans_of(folder);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(allocations > 100);
#endif
  CHECK(counted(folder, "leaves_unmatched") == 0);
  for (int i = 0; i < 100; i++)
    CHECK(found.count({"long enough to be allocated " + std::to_string(i), "of an allocator"}) == 1);
}

struct Call {
  uint64_t communicator;
  size_t bytes;
};
struct Made {
  uint64_t communicator;
  int32_t devices;
};

uint64_t add_schema(void* domain, const nvtx::SchemaEntry* entries, size_t count) {
  nvtx::SchemaAttributes schema{};
  schema.fields = 1 << 4 | 1 << 5, schema.type = 1, schema.entries = entries, schema.entry_count = count;
  return reinterpret_cast<uint64_t (*)(void*, const nvtx::SchemaAttributes*)>(payload[0])(domain, &schema);
}

struct Row {
  std::string group;
  int64_t sequence, sent;
  std::string span;
  bool operator==(const Row&) const = default;
};

// What torch.distributed asks for is one collective, whatever calls of NCCL it takes; the calls are counted all the
// same.
void of_torch_and_nccl() {
  Folder folder;
  start(folder);
  void* domain = create_domain("NCCL");
  const nvtx::SchemaEntry call_entries[] = {{0, 18, "NCCL communicator ID"}, {0, 22, "Message size [bytes]"}};
  const nvtx::SchemaEntry made_entries[] = {{0, 18, "NCCL communicator ID"}, {0, 5, "No. of devices"}};
  const uint64_t of_calls = add_schema(domain, call_entries, 2), of_made = add_schema(domain, made_entries, 2);
  const auto call = [&](uint64_t communicator, size_t bytes) {
    const Call values{communicator, bytes};
    const nvtx::Data data{of_calls, sizeof values, &values};
    push(domain, "ncclAllReduce", &data), pop(domain);
  };
  call(1, 10);
  strobe_collective asked{};
  asked.collective = strobe_text("all_reduce"), asked.group = strobe_text("of torch");
  asked.about = strobe_text("2"), asked.sequence = 5, asked.root = asked.bucket = asked.peer_rank = STROBE_NOTHING_32;
  asked.sent_bytes = asked.received_bytes = 300;
  asked.region = region("c10d::allreduce_");
  strobe_collective_begin(&asked, 0);
  call(1, 100), call(1, 200);
  strobe_collective_end();
  call(1, 20);
  const Made all{2, 4};  // all ranks of a communicator in this process: which of them calls, nobody says
  const nvtx::Data data{of_made, sizeof all, &all};
  push(domain, "ncclCommInitAll", &data), pop(domain);
  call(2, 30);
  strobe_stop();
  auto file = open_process(folder.files(".blocks")[0]);
  Table table;
  for (const auto& chunk : file->tables["collective_spans"])
    CHECK(decode_table(chunk.payload, chunk.location, chunk.count, table));
  const auto cells = [&](const char* name) {
    for (const auto& [known, column] : table.columns)
      if (known == name) return &column;
    abort();
  };
  std::map<uint32_t, std::string> names;
  for (const Region& r : file->regions) names[r.id] = r.name;
  const Spans spans = all_spans(*file, 0);
  std::vector<Row> rows;
  for (size_t i = 0; i < table.row.size(); i++) {
    const auto* sequence = cells("sequence");
    rows.push_back({std::string(file->texts.at(size_t(cells("group")->value[i]))),
                    sequence->valid[i] ? sequence->value[i] : -1, cells("sent_bytes")->value[i],
                    names[file->path_region[spans.path[size_t(table.row[i])]]]});
  }
  const std::vector<Row> expected = {{"0x0000000000000001", 1, 10, "ncclAllReduce"},
                                     {"of torch", 5, 300, "c10d::allreduce_"},
                                     {"0x0000000000000001", 4, 20, "ncclAllReduce"},
                                     {"0x0000000000000002", -1, 30, "ncclAllReduce"}};
  CHECK(rows == expected);
}

void of_threads() {
  Folder folder;
  start(folder);
  void* domain = create_domain("shared");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([domain] {
      for (int i = 0; i < 2000; i++) {
        push(domain, ("range " + std::to_string(i % 50)).c_str());
        end_range(start_range("over"));
        pop(domain);
      }
    });
  for (auto& thread : threads) thread.join();
  strobe_stop();
  const auto ranges = ranges_of(folder.files(".blocks")[0]);
  CHECK(ranges.size() == 8000 && ranges.count("over") == 8000);
  CHECK(spans_of(folder).size() == 16000);
  CHECK(counted(folder, "nvtx_start_end_ranges_not_recorded") == 0);
}

}  // namespace

// The interposed allocator, in this program only: libstrobe's own calls of malloc come here, too.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  thread_local bool within = false;
  const bool first = allocator_has_ranges && !within;
  if (first) within = true, allocations++, push(nullptr, "malloc");
  void* made = __libc_malloc(size);
  if (first) pop(nullptr), within = false;
  return made;
}
#endif

int main() {
  inject();
  names();
  that_end_elsewhere();
#if !defined(__SANITIZE_THREAD__)
  of_windows_and_children();
#endif
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  while_others_fork();  // GCC's AddressSanitizer does not unlock its allocator in a child: it may hang there
#endif
  of_torch_and_nccl();
  of_threads();
  of_an_allocator();
  too_many_names();  // the last: no new name is known from here on
  return 0;
}
