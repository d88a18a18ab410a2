// Streams: what a device did is told late, follows the iteration that launched it, and survives a kill.
#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/system/clock.h"
#include "kernels/reading/process_file.h"
#include "kernels/reading/table_chunks.h"
#include "tests/check.h"

using namespace strobe;

namespace {

uint32_t kernel_region(const char* name) {
  strobe_region_info info{};
  info.name = name;
  info.paradigm = STROBE_CUDA;
  info.role = STROBE_ROLE_KERNEL;
  return strobe_region(&info);
}

strobe_stream_span kernel(uint32_t region, int64_t start, int64_t end, int64_t launched, uint32_t correlation,
                          uint32_t launch_text = 0) {
  strobe_stream_span span{region, STROBE_ROW_KERNEL, start, end, launched, {}};
  span.values[0] = STROBE_TWO(correlation, launch_text);
  span.values[1] = STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32);
  span.values[2] = span.values[3] = STROBE_NOTHING;
  return span;
}

Table table(const ProcessFile& file, const std::string& name) {
  Table out;
  const auto found = file.tables.find(name);
  if (found == file.tables.end()) return out;
  for (const auto& chunk : found->second) CHECK(decode_table(chunk.payload, chunk.location, chunk.count, out));
  return out;
}

const Table::Column* column(const Table& table, const std::string& name) {
  for (const auto& [known, column] : table.columns)
    if (known == name) return &column;
  return nullptr;
}

// Names, device and kind of the location; times to the ns; what the launch text says, as columns.
void as_told() {
  Folder folder;
  start(folder);
  const uint32_t gemm = kernel_region("gemm"), relu = kernel_region("relu");
  strobe_stream* stream = strobe_stream_open("stream 7", 1, 7);
  CHECK(stream == strobe_stream_open("stream 7", 1, 7) && stream != strobe_stream_open("stream 7", 0, 7));
  const std::string launch =
      "1,3,7,640,2,1,128,1,1,32,4096,0,4096,8192,,65536,-2," + std::to_string(strobe_text("cooperative")) + ",";
  const uint32_t text = strobe_text(launch.c_str());
  const int64_t base = monotonic_ns();
  for (uint32_t i = 0; i < 3; i++) {
    const auto span = kernel(i % 2 ? relu : gemm, base + i * 1000, base + i * 1000 + 400 + i, base - 50, 10 + i, text);
    CHECK(strobe_stream_tell(stream, &span));
  }
  const auto jitter = kernel(gemm, base + 2402 - 80, base + 2500, base - 50, 13, text);
  CHECK(strobe_stream_tell(stream, &jitter));
  // One that overlaps the last one, one that came late, one without a time.
  for (auto [at, end] : {std::pair<int64_t, int64_t>{2100, 2200}, {500, 600}}) {
    const auto span = kernel(relu, base + at, base + end, base - 40, 20);
    CHECK(strobe_stream_tell(stream, &span));
  }
  const auto untimed = kernel(relu, 0, 0, base, 21);
  CHECK(!strobe_stream_tell(stream, &untimed));
  strobe_stop();
  const auto file = open_process(folder.files(".blocks")[0]);
  std::map<std::string, Location> streams;
  for (const auto& [id, location] : file->locations)
    if (location.kind == 1) streams[location.name] = location;
  CHECK(streams.size() == 3 && streams.count("stream 7 (lane 2)") && streams.count("stream 7 (lane 3)"));
  CHECK(streams["stream 7"].device == 1);
  const Spans spans = all_spans(*file, streams["stream 7"].id);
  CHECK((spans.start_ns == std::vector<int64_t>{base, base + 1000, base + 2000, base + 2402}));
  CHECK((spans.duration_ns == std::vector<int64_t>{400, 401, 402, 98}));
  CHECK(all_spans(*file, streams["stream 7 (lane 2)"].id).start_ns.at(0) == base + 2100);
  CHECK(all_spans(*file, streams["stream 7 (lane 3)"].id).start_ns.at(0) == base + 500);
  CHECK(file->end_json[0].find("\"stream_spans_untimed\": 1") != std::string::npos);

  const Table rows = table(*file, "kernel_spans");
  CHECK(rows.row.size() == 6);
  const auto value = [&](const char* name) { return column(rows, name)->value[0]; };
  CHECK(value("correlation") == 10 && value("device") == 1 && value("context") == 3 && value("stream") == 7);
  CHECK(value("grid_x") == 640 && value("grid_y") == 2 && value("block_x") == 128 &&
        value("registers_per_thread") == 32);
  CHECK(value("shared_memory_bytes") == 4096 && value("static_shared_bytes") == 0 && value("priority") == -2);
  CHECK(value("executed_shared_bytes") == 8192 && value("local_bytes") == 65536);
  CHECK(file->texts.at(size_t(value("launch_type"))) == "cooperative");
  for (const char* unknown : {"local_bytes_per_thread", "cache_config", "graph", "queued_ns"})
    CHECK(!column(rows, unknown));
}

// --- a training whose kernels are told late

struct Told {
  std::atomic<int64_t> kernels;
  std::atomic<uint64_t> launched, lost;
};

class Device {  // a thread that tells `late_us` after the launch
 public:
  Device(int64_t late_us, Told* told) : late_ns_(late_us * 1000), told_(told), thread_([this] { run(); }) {}
  void launch(uint32_t region) {
    std::lock_guard lock(mutex_);
    waiting_.push_back({region, monotonic_ns()});
  }
  void finish() {
    done_ = true;
    thread_.join();
    strobe_streams_told(INT64_MAX);
  }

 private:
  struct Launch {
    uint32_t region;
    int64_t ns;
  };
  void run() {
    strobe_stream* stream = strobe_stream_open("stream 7", 0, 7);
    strobe_streams_told(0);
    int64_t end = 0;
    for (bool last = false; !last;) {
      last = done_;
      const int64_t now = monotonic_ns();
      std::unique_lock lock(mutex_);
      while (!waiting_.empty() && (last || waiting_.front().ns + late_ns_ < now)) {
        const Launch launch = waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        const int64_t start = std::max(end, launch.ns + 100);
        end = start + 50;
        const auto span = kernel(launch.region, start, end, launch.ns, uint32_t(told_->kernels.load() + 1));
        // With a sanitizer the thread that empties the rings may be too slow for a small one.
        if (strobe_stream_tell(stream, &span))
          told_->kernels++;
        else
          told_->lost++;
        lock.lock();
      }
      strobe_streams_told(waiting_.empty() ? now : waiting_.front().ns);
      lock.unlock();
      usleep(200);
    }
  }
  const int64_t late_ns_;
  Told* told_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::deque<Launch> waiting_;
  std::thread thread_;
};

constexpr int kSteps = 400, kKernels = 20;

void train(Told* told, Device& device, int steps) {
  strobe_region_info info{};
  info.name = "Optimizer.step#Adam.step";
  info.paradigm = STROBE_TORCH;
  const uint32_t step = strobe_region(&info), add = kernel_region("add");
  strobe_region_info op{};
  op.name = "aten::add";
  op.paradigm = STROBE_TORCH;
  op.role = STROBE_ROLE_OPERATOR;
  const uint32_t aten = strobe_region(&op);
  for (int i = 0; i < steps; i++) {
    for (int k = 0; k < kKernels; k++) {
      strobe_enter(aten);
      device.launch(add);
      told->launched++;
      strobe_leave(aten);
    }
    usleep(300);
    strobe_enter(step);
    strobe_leave(step);
  }
}

uint64_t kept_and_folded(const ProcessFile& file, uint64_t& kept, uint32_t kind = 1) {
  uint64_t all = 0;
  kept = 0;
  for (const auto& [id, location] : file.locations) {
    if (location.kind != kind) continue;
    kept += all_spans(file, id).row.size();
    for (size_t i = 0; i < file.statistics.size(); i++)
      if (file.statistics.key(i).location == id) all += file.statistics.entry(i).count;
  }
  return all + kept;
}

void collected(int64_t late_us, uint32_t ring_bytes) {
  Folder folder;
  auto* told = shared_with_children<Told>();
  start(folder, {.ring_bytes = ring_bytes, .keep = 6});
  {
    Device device(late_us, told);
    train(told, device, kSteps);
    device.finish();
  }
  strobe_stop();
  const auto file = open_process(folder.files(".blocks")[0]);
  CHECK(file->bytes_lost == 0 && told->launched == uint64_t(kSteps * kKernels));
  uint64_t kept = 0;
  CHECK(kept_and_folded(*file, kept) == told->launched - told->lost);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(told->lost == 0);
#endif
  CHECK(kept < told->launched / 2);  // most iterations are statistics
  if (ring_bytes < 1u << 20) return;
  // Kernels in detail are those of the iterations in detail: each that was launched in one, whenever it ran.
  const Table rows = table(*file, "kernel_spans");
  CHECK(rows.row.size() == kept);
  std::map<int64_t, bool> detail;  // by number of the iteration, from the first that was recorded as one
  CHECK(file->iterations.size() > kSteps / 2);
  uint64_t in_detail = 0;
  for (const auto& iteration : file->iterations) in_detail += iteration.detail == structure::kAllDetail;
  const uint64_t before = kSteps - file->iterations.size();  // the detector was not sure yet: all of them stay
  CHECK(kept >= (in_detail + before - 2) * kKernels && kept <= (in_detail + before + 2) * kKernels);
  const Spans spans = all_spans(*file, uint32_t(rows.location[0]));
  CHECK(std::is_sorted(rows.row.begin(), rows.row.end()) && rows.row.back() == int64_t(spans.row.size()) - 1);
}

// Tasks follow the iteration in which they began, or where they end later than it the next one; none is lost.
void tasks_are_collected() {
  Folder folder;
  constexpr uint64_t kTasks = 5;
  std::vector<int64_t> begun;  // of those that end in their iteration
  start(folder, {.keep = 6});
  strobe_region_info info{};
  info.name = "Optimizer.step#Adam.step", info.paradigm = STROBE_TORCH;
  const uint32_t step = strobe_region(&info);
  info.name = "aten::add", info.role = STROBE_ROLE_OPERATOR;
  const uint32_t work = strobe_region(&info), range = region("range"), over = region("over");
  strobe_stream* tasks = strobe_task_open("tasks", 0);
  CHECK(tasks == strobe_task_open("tasks", 0) && tasks != strobe_stream_open("tasks", -1, 0));
  const auto tell = [&](uint32_t region, int64_t start) {
    const strobe_stream_span span{region, 0, start, monotonic_ns(), start, {}};
    CHECK(strobe_stream_tell(tasks, &span));
  };
  int64_t before = 0;
  for (int i = 0; i < kSteps; i++) {
    const int64_t here = monotonic_ns();
    for (uint64_t k = 0; k < kTasks; k++) {
      const int64_t start = monotonic_ns();
      strobe_enter(work), strobe_leave(work);
      tell(range, start), begun.push_back(start);
    }
    if (before) tell(over, before);
    before = here;
    usleep(300);
    strobe_enter(step);
    strobe_leave(step);
  }
  strobe_stop();
  const auto file = open_process(folder.files(".blocks")[0]);
  uint64_t kept = 0;
  CHECK(file->bytes_lost == 0);
  CHECK(kept_and_folded(*file, kept, 2) == kSteps * kTasks + kSteps - 1);
  CHECK(file->iterations.size() > kSteps / 2);
  std::multimap<uint32_t, int64_t> starts;
  for (const auto& [id, location] : file->locations) {
    CHECK(location.kind != 1);
    const Spans spans = all_spans(*file, id);
    for (size_t i = 0; location.kind == 2 && i < spans.row.size(); i++)
      starts.emplace(file->path_region[spans.path[i]], spans.start_ns[i]);
  }
  std::multiset<int64_t> in_detail;
  for (auto [first, last] = starts.equal_range(range); first != last; ++first) in_detail.insert(first->second);
  int64_t first_ns = INT64_MAX, last_ns = 0;
  for (const auto& iteration : file->iterations) {
    const int64_t end_ns = iteration.start_ns + iteration.duration_ns;
    first_ns = std::min(first_ns, iteration.start_ns), last_ns = std::max(last_ns, end_ns);
    for (const int64_t start : begun)
      if (start >= iteration.start_ns && start < end_ns)
        CHECK(in_detail.count(start) == (iteration.detail == structure::kAllDetail));
  }
  CHECK(in_detail.size() < begun.size() / 2);
  for (const int64_t start : begun)
    if (start < first_ns) CHECK(in_detail.count(start) == 1);  // before the loop was known, all is kept
}

[[maybe_unused]] void killed(Told* told, uint32_t keep, int after_us) {
  Folder folder;
  told->kernels = 0, told->launched = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    start(folder, {.keep = keep});
    Device device(20000, told);
    train(told, device, 1 << 30);
  }
  while (told->kernels.load() < 3000) usleep(100);
  usleep(useconds_t(after_us));
  kill(pid, SIGKILL);
  status_of(pid);
  const auto n = uint64_t(told->kernels.load());
  const std::string blocks = folder.files(".blocks")[0];
  for (int pass = 0; pass < 2; pass++) {
    const auto file = open_process(blocks);
    CHECK(file->bytes_lost == 0);
    uint64_t kept = 0;
    const uint64_t all = kept_and_folded(*file, kept);
    CHECK(all >= n && all <= n + 1);
    CHECK(table(*file, "kernel_spans").row.size() >= kept - 1 && table(*file, "kernel_spans").row.size() <= kept);
    recover_process(blocks, blocks.substr(0, blocks.size() - 7) + ".rings");
  }
}

// Rows with a time of their own beside the streams of a device: all of them stay, whatever is folded, through rings
// that are smaller than they; a kill loses none that was told.
void allocate(std::atomic<int64_t>& told, int steps) {
  strobe_region_info info{};
  info.name = "Optimizer.step#Adam.step", info.paradigm = STROBE_TORCH;
  const uint32_t step = strobe_region(&info);
  info.name = "aten::add", info.role = STROBE_ROLE_OPERATOR;
  const uint32_t work = strobe_region(&info);
  const std::string shared = "1,3,," + std::to_string(strobe_text("Device")) + ",";
  const uint32_t text = strobe_text(shared.c_str());
  strobe_stream* memory = strobe_beside_streams_open("memory", 3, 0xfffffff0);
  for (int i = 0; i < steps; i++) {
    for (int k = 0; k < kKernels; k++) {
      strobe_enter(work), strobe_leave(work);
      const int64_t now = monotonic_ns();
      strobe_stream_span row{0, STROBE_ROW_ALLOCATION, now, now, now, {}};
      const int64_t number = told;
      const int64_t values[] = {4096 + number,  k % 2 ? -512 : 512,       number,
                                STROBE_NOTHING, STROBE_TWO(number, text), STROBE_NOTHING};
      std::copy(std::begin(values), std::end(values), row.values);
      CHECK(strobe_stream_tell(memory, &row));
      told++;
    }
    usleep(300);
    strobe_enter(step);
    strobe_leave(step);
  }
}

void check_allocations(const ProcessFile& file, int64_t least, int64_t most) {
  const Table rows = table(file, "allocations");
  const auto n = int64_t(rows.row.size());
  CHECK(file.bytes_lost == 0 && n >= least && n <= most);
  const Location& location = file.locations.at(rows.location[0]);
  CHECK(location.name == "memory" && location.kind == 2 && location.device == 3 && location.spans == 0);
  for (int64_t i = 0; i < n; i++) {
    const auto value = [&](const char* name) { return column(rows, name)->value[size_t(i)]; };
    CHECK(value("total_allocated_bytes") == i && value("address") == 4096 + i && value("correlation") == i);
    CHECK(value("size_bytes") == (i % 2 ? -512 : 512) && value("device_type") == 1 && value("device") == 3);
    CHECK(file.texts.at(size_t(value("memory_kind"))) == "Device");
  }
  for (const char* unknown : {"context", "name", "total_reserved_bytes", "program_counter"})
    CHECK(!column(rows, unknown));
}

void rows_without_spans_stay(uint32_t ring_bytes) {
  Folder folder;
  std::atomic<int64_t> told{0};
  start(folder, {.ring_bytes = ring_bytes, .keep = 6});
  allocate(told, kSteps);
  strobe_stop();
  const auto file = open_process(folder.files(".blocks")[0]);
  check_allocations(*file, kSteps * kKernels, kSteps * kKernels);
  CHECK(file->iterations.size() > kSteps / 2);
}

[[maybe_unused]] void rows_without_spans_survive_a_kill(uint32_t keep, int after_us) {
  Folder folder;
  auto* told = shared_with_children<std::atomic<int64_t>>();
  const pid_t pid = fork();
  if (pid == 0) {
    start(folder, {.keep = keep});
    allocate(*told, 1 << 30);
  }
  while (told->load() < 3000) usleep(100);
  usleep(useconds_t(after_us));
  kill(pid, SIGKILL);
  status_of(pid);
  const std::string blocks = folder.files(".blocks")[0];
  for (int pass = 0; pass < 2; pass++) {
    check_allocations(*open_process(blocks), *told, *told + 1);
    recover_process(blocks, blocks.substr(0, blocks.size() - 7) + ".rings");
  }
}

std::atomic<int> finished{0}, went_on{0};

void is_asked_before_the_end() {
  Folder folder;
  start(folder);
  strobe_streams_turn_with([](int what) {
    if (what == STROBE_STREAMS_GO_ON) {
      CHECK(strobe_active());
      went_on++;
      return;
    }
    CHECK(what == (finished ? STROBE_STREAMS_END : STROBE_STREAMS_REST));
    const int64_t now = monotonic_ns();
    const auto span = kernel(kernel_region("last"), now, now + 5, now, 1);
    CHECK(strobe_stream_tell(strobe_stream_open("stream 0", 0, 0), &span));
    finished++;
  });
  strobe_mute();
  CHECK(finished == 1 && went_on == 0);
  strobe_unmute();
  CHECK(finished == 1 && went_on == 1);
  strobe_stop();
  CHECK(finished == 2 && went_on == 1);
  strobe_streams_turn_with(nullptr);
  const auto file = open_process(folder.files(".blocks")[0]);
  uint64_t kept = 0;
  CHECK(kept_and_folded(*file, kept) == 2 && kept == 2);
}

}  // namespace

int main() {
  as_told();
  is_asked_before_the_end();
  tasks_are_collected();
  rows_without_spans_stay(1 << 20);
  rows_without_spans_stay(64 << 10);
  collected(0, 1 << 20);
  collected(50000, 1 << 20);
  collected(20000, 64 << 10);
#if !defined(__SANITIZE_THREAD__)
  auto* told = shared_with_children<Told>();
  for (uint32_t i = 0; i < cases(10); i++) killed(told, i % 2 ? 6 : 0, int(i) * 3000);
  for (uint32_t i = 0; i < cases(10); i++) rows_without_spans_survive_a_kill(i % 2 ? 6 : 0, int(i) * 3000);
#endif
  return 0;
}
