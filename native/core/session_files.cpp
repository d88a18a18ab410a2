// What a session writes: its files, the chunks that describe it, and the counters that outlive it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/guard.h"
#include "core/json_text.h"
#include "core/session.h"

namespace strobe {

void Session::fail(const char* what, int error) {
  // Called with file_mutex_ held or before anything runs. The program goes on; the recording ends here, and says so
  // once.
  if (failed_) return;
  failed_ = true;
  if (error)
    snprintf(error_, sizeof error_, "%s: %s", what, strerror(error));
  else
    snprintf(error_, sizeof error_, "%s", what);
  if (!active()) return;
  snprintf(header()->failure, sizeof header()->failure, "%.255s", error_);
  header()->failed_ns.store(monotonic_ns());
  header()->state.store(kFailed);
  count("recording_stopped_early", 1);
  // Children's streams may be data of the program; of files that are gone, whoever completes the trace speaks.
  if (!child_ && !options_.silent && !blocks_.removed()) {
    char text[700];
    int n =
        snprintf(text, sizeof text,
                 "strobe: recording stopped, the program goes on: %s. What was recorded until then is kept.\n", error_);
    if (n > 0) (void)!write(2, text, size_t(n) < sizeof text ? size_t(n) : sizeof text - 1);
  }
}

// A ring that lost records on its way must not be read any further, nor may anything be written that was made of it.
bool Session::rings_are_sound() {
  if (!guard_was_needed()) return true;
  char what[320];
  snprintf(what, sizeof what, "cannot write %.240s: it was cut short, or its disk failed", rings_.name.c_str());
  fail(what, 0);
  return !guard_lost_content();
}

void Session::append(const std::string& bytes) {
  std::lock_guard lock(file_mutex_);
  if (failed_ || blocks_.name.empty() || bytes.empty() || !rings_are_sound()) return;
  write_down(bytes);
}

void Session::write_down(const std::string& bytes) {
  char what[300];
  snprintf(what, sizeof what, "cannot write %.250s", blocks_.name.c_str());
  if (!blocks_.ours()) return fail(what, errno);
  if (blocks_.removed()) return fail(what, ENOENT);
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = write(blocks_.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = n < 0 ? errno : ENOSPC;
      if (ftruncate(blocks_.fd, off_t(file_bytes_)) != 0) {
      }  // a torn chunk is cut by its checksum anyway
      return fail(what, error);
    }
    done += size_t(n);
  }
  file_bytes_ += bytes.size();
}

void Session::write_snapshot(const std::string& bytes, uint64_t sequence) {
  std::lock_guard lock(file_mutex_);
  if (failed_ || blocks_.name.empty() || !rings_are_sound()) return;
  int error = 0;
  if (statistics_.name.empty()) {
    error = open_statistics();
  } else if (!statistics_.ours()) {
    error = errno;
  }
  if (bytes.empty()) error = EFBIG;
  size_t done = 0;
  while (!error && done < bytes.size()) {
    ssize_t n =
        pwrite(statistics_.fd, bytes.data() + done, bytes.size() - done, off_t(sequence % 2 * kSnapshotStride + done));
    if (n > 0)
      done += size_t(n);
    else if (n == 0 || errno != EINTR)
      error = n == 0 ? ENOSPC : errno;
  }
  if (!error) return;
  char what[300];
  snprintf(what, sizeof what, "cannot write the statistics beside %.200s", blocks_.name.c_str());
  fail(what, error);
}

int Session::open_statistics() {
  std::string path = blocks_.name;
  path.replace(path.rfind(".blocks"), std::string::npos, ".statistics");
  return statistics_.open_new(path, O_CREAT | O_TRUNC | O_RDWR);
}

// The program is about to become a user who may not make files in the trace folder: what it needs there is made now.
void Session::open_all_files() {
  make_recordable(producer);
  std::lock_guard lock(file_mutex_);
  if (active() && !failed_ && collector_ && statistics_.name.empty()) open_statistics();
}

// A forked child that gets no files has nothing of its own in the trace: its parent's part of it says so.
void Session::forked_without_files() {
  std::lock_guard control(control_);
  if (state_.exchange(kStopped) != kForked || !parent_header_) return;
  guard(parent_header_, kRingsHeaderBytes);
  header_ = parent_header_;
  count("forks_not_recorded", 1);
  header_ = nullptr;
  forget_parent();
}

void Session::forget_parent() {
  if (!parent_header_) return;
  unguard(parent_header_);
  munmap(parent_header_, kRingsHeaderBytes);
  parent_header_ = nullptr;
}

int Session::open_files() {
  std::lock_guard lock(file_mutex_);  // a note for the session before may still be on its way
  char name[64];
  std::string rings_path;
  for (int attempt = 1;; attempt++) {  // a process that exec'ed itself has the same pid again
    if (attempt == 1)
      snprintf(name, sizeof name, "/process-%d", getpid());
    else
      snprintf(name, sizeof name, "/process-%d-%d", getpid(), attempt);
    std::string blocks_path = folder_ + name + ".blocks";
    rings_path = folder_ + name + ".rings";
    int error = blocks_.open_new(blocks_path, O_CREAT | O_EXCL | O_RDWR | O_APPEND);
    if (!error) break;
    if (error != EEXIST || attempt > 1000) {
      snprintf(error_, sizeof error_, "cannot create %.300s: %s", blocks_path.c_str(), strerror(error));
      return error;
    }
  }
  flock(blocks_.fd, LOCK_EX | LOCK_NB);  // held as long as the process lives: readers see whether it still runs
  file_bytes_ = 0;
  failed_ = false;
  int error = rings_.open_new(rings_path, O_CREAT | O_TRUNC | O_RDWR);
  if (!error) error = posix_fallocate(rings_.fd, 0, kRingsHeaderBytes);
  void* map = MAP_FAILED;
  if (!error) {
    map = mmap(nullptr, kRingsHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, rings_.fd, 0);
    if (map == MAP_FAILED) error = errno;
  }
  if (error) {
    snprintf(error_, sizeof error_, "cannot create %.300s: %s", rings_path.c_str(), strerror(error));
    remove_files();
    return error;
  }
  header_ = new (map) RingsHeader{};
  guard(map, kRingsHeaderBytes);
  header()->magic = kRingsMagic;
  header()->version = kFormatVersion;
  header()->pid = uint32_t(getpid());
  header()->ring_bytes = options_.ring_bytes;
  header()->min_duration_ns = options_.min_duration_ns;
  header()->state.store(kRunning);
  header()->first_pair = header()->last_pair = clock_pair();
  return 0;
}

std::string Session::process_json() const {
  char text[640];
  const WallClock wall = wall_clock();
  snprintf(text, sizeof text,
           "{\"pid\": %d, \"parent_pid\": %d, \"started_ns\": %lld, \"forked\": %s, \"put_ns\": %.2f, \"clock\": "
           "\"%s\", \"node\": \"%.120s\", \"wall\": [%lld, %lld, %lld], \"description\": ",
           getpid(), getppid(), (long long)started_ns_, child_ ? "true" : "false", put_ns_,
           ticks_are_tsc ? "tsc" : "monotonic", node_name().c_str(), (long long)wall.monotonic_ns,
           (long long)wall.unix_ns, (long long)wall.error_ns);
  return text + (description_.empty() ? std::string("{}") : description_) + "}";
}

static std::string json_text(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

std::string Session::end_json(int exit_code) {
  char text[256];
  snprintf(text, sizeof text, "{\"end_state\": \"%s\", \"exit_code\": %d, \"ended_ns\": %lld, \"counters\": {",
           exit_code >= 0 ? "exited" : "closed", exit_code, (long long)monotonic_ns());
  std::string out = text;
  auto add = [&](const char* name, uint64_t value) {
    snprintf(text, sizeof text, "%s\"%s\": %llu", out.back() == '{' ? "" : ", ", name, (unsigned long long)value);
    out += text;
  };
  add("own_cpu_ns", uint64_t(header()->own_cpu_ns.load()));
  if (const double ns = hook_cost_ns(); ns >= 1) add("hook_cost_ns", uint64_t(ns));
  uint64_t lost = 0, rows_lost = 0, unmatched = unmatched_, cut = cut_;
  for (const auto& slot : slots_) {
    (slot->of_spans() ? lost : rows_lost) += slot->header->lost.load();
    if (slot->builder) unmatched += slot->builder->unmatched, cut += slot->builder->cut;
  }
  add("records_lost", lost);
  if (rows_lost) add("rows_lost", rows_lost);
  add("leaves_unmatched", unmatched);
  add("spans_cut", cut);
  add("paths_folded", paths_->folded());
  if (collector_) add("statistics_folded", collector_->statistics_folded());
  if (options_.min_duration_ns) add("short_spans", collector_->short_spans());
  for (uint32_t region : throttle_.throttled()) {
    const std::string name = "throttled_after: " + regions_.place_of(region);
    out +=
        std::string(out.back() == '{' ? "" : ", ") + json_text(name) + ": " + std::to_string(throttle_.calls(region));
  }
  for (uint32_t i = 0; i < header()->counter_count.load(); i++)
    add(header()->counters[i].name, header()->counters[i].value.load());
  out += '}';
  if (failed_) {
    out += ", \"failure\": " + json_text(error_);
    out += ", \"failed_ns\": " + std::to_string(header()->failed_ns.load());
  }
  return out + '}';
}

void Session::remove_files() {
  for (HeldFile* file : {&blocks_, &rings_}) {
    if (!file->name.empty()) unlink(file->name.c_str());
    file->release();
    file->name.clear();
  }
}

void Session::count(const char* what, uint64_t n) {
  RingsHeader* header = header_.load();
  if (!header) return;
  auto add = [&](uint32_t known) {
    for (uint32_t i = 0; i < known; i++)
      if (!strncmp(header->counters[i].name, what, sizeof header->counters[i].name - 1)) {
        header->counters[i].value.fetch_add(n);
        return true;
      }
    return false;
  };
  if (add(header->counter_count.load())) return;
  const Inside inside;
  std::lock_guard lock(counters_mutex_);
  uint32_t known = header->counter_count.load();
  if (add(known) || known >= sizeof header->counters / sizeof header->counters[0]) return;
  strncpy(header->counters[known].name, what, sizeof header->counters[known].name - 1);
  header->counters[known].value.store(n);
  header->counter_count.store(known + 1);
}

void Session::save_regions(std::string_view payload, uint32_t n) {
  if (!active()) return;
  std::string chunk;
  append_chunk(chunk, kRegionsChunk, 0, n, payload);
  append(chunk);
}

void Session::note(std::string_view json) {
  std::string chunk;
  append_chunk(chunk, kNoteChunk, 0, 1, json);
  append(chunk);
}

std::string Session::file_beside(const char* suffix) {
  std::lock_guard lock(file_mutex_);
  if (!active() || blocks_.name.empty()) return {};
  return blocks_.name.substr(0, blocks_.name.rfind(".blocks")) + suffix;
}

void Session::note_rank(int rank, int size) {
  if (!active()) return;
  char json[64];
  int n = snprintf(json, sizeof json, "{\"rank\": %d, \"ranks\": %d}", rank, size);
  note(std::string_view(json, size_t(n)));
}

void Session::name_process(const char* name) {
  std::string json = "{\"name\": ";
  append_json_text(json, std::string_view(name).substr(0, 200));
  std::lock_guard control(control_);
  process_name_ = json + "}";  // a forked child has no file before its first record
  if (active()) note(process_name_);
}

}  // namespace strobe
