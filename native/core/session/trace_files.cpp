#include "core/session/trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "core/format/span_statistics.h"
#include "core/system/mapping_guard.h"

namespace strobe {

// Reserved on disk before it is mapped: a store into a hole of a full file system would be a SIGBUS. nullptr: `error`
// is an errno value.
static void* map_reserved(int fd, off_t offset, size_t bytes, int flags, int& error) {
  error = posix_fallocate(fd, offset, off_t(bytes));
  if (error) return nullptr;
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, offset);
  if (map == MAP_FAILED) {
    error = errno;
    return nullptr;
  }
  guard(map, bytes);
  return map;
}

int TraceFiles::open_blocks(const std::string& folder) {
  for (int attempt = 1;; attempt++) {  // a process that exec'ed itself has the same pid again
    std::string path = folder + "/process-" + std::to_string(getpid());
    if (attempt > 1) path.append("-").append(std::to_string(attempt));
    path += ".blocks";
    const int error = blocks_.open_new(path, O_CREAT | O_EXCL | O_RDWR | O_APPEND);
    if (!error) return 0;
    if (error != EEXIST || attempt > 1000) {
      set_error("cannot create " + path + ": " + strerror(error));
      return error;
    }
  }
}

int TraceFiles::open(const std::string& folder, const strobe_options& options, bool quiet) {
  std::lock_guard lock(mutex_);  // a note for the session before may still be on its way
  quiet_ = quiet;
  if (int error = open_blocks(folder)) return error;
  flock(blocks_.fd, LOCK_EX | LOCK_NB);  // held as long as the process lives: readers see whether it still runs
  file_bytes_ = 0;
  part_ = 0, in_parts_ = options.flight_ns > 0;
  lasting_.forget();
  failed_ = false;
  const std::string rings_path = named(".rings");
  int error = rings_.open_new(rings_path, O_CREAT | O_TRUNC | O_RDWR);
  void* map = error ? nullptr : map_reserved(rings_.fd, 0, kRingsHeaderBytes, 0, error);
  if (error) {
    set_error("cannot create " + rings_path + ": " + strerror(error));
    remove();
    return error;
  }
  RingsHeader* header = new (map) RingsHeader{};
  header->magic = kRingsMagic;
  header->version = kFormatVersion;
  header->pid = uint32_t(getpid());
  header->ring_bytes = options.ring_bytes;
  header->min_duration_ns = options.min_duration_ns;
  header->state.store(kRunning);
  header->first_pair = header->last_pair = clock_pair();
  header_ = header;
  return 0;
}

void TraceFiles::remove() {
  if (RingsHeader* header = header_.exchange(nullptr)) {
    unguard(header);
    munmap(header, kRingsHeaderBytes);
  }
  for (HeldFile* file : {&blocks_, &rings_}) {
    if (!file->name.empty()) unlink(file->name.c_str());
    file->release();
    file->name.clear();
  }
}

void TraceFiles::close(ProcessState state, bool complete) {
  if (complete) {
    header()->state.store(state);
    if (!statistics_.name.empty()) unlink(statistics_.name.c_str());
    unlink(rings_.name.c_str());
  }
  replace_by_zeros(header_.exchange(nullptr), kRingsHeaderBytes);  // count() may hold it
  std::lock_guard lock(mutex_);
  release_all();
}

void TraceFiles::release_all() {
  for (HeldFile* held : {&blocks_, &rings_, &statistics_}) held->release(), held->name.clear();
}

void TraceFiles::fail(const char* what, int error) {
  std::lock_guard lock(mutex_);
  fail_locked(what, error);
}

// The program goes on; the recording ends here, and this is announced once.
void TraceFiles::fail_locked(const char* what, int error) {
  if (failed_) return;
  failed_ = true;
  set_error(error ? std::string(what) + ": " + strerror(error) : what);
  if (!active_) return;
  snprintf(header()->failure, sizeof header()->failure, "%.255s", error_);
  header()->failed_ns.store(monotonic_ns());
  header()->state.store(kFailed);
  count("recording_stopped_early", 1);
  // Children's streams may be data of the program; of files that are gone, whoever completes the trace speaks.
  if (quiet_ || blocks_.removed()) return;
  char text[700];
  const int n =
      snprintf(text, sizeof text,
               "strobe: recording stopped, the program goes on: %s. What was recorded until then is kept.\n", error_);
  if (n > 0) (void)!write(2, text, size_t(n) < sizeof text ? size_t(n) : sizeof text - 1);
}

void TraceFiles::fail_to_write(const HeldFile& file, int error) {
  fail_locked(("cannot write " + file.name.substr(0, 250)).c_str(), error);
}

// A ring that lost records on its way must not be read any further, nor may anything be written that was made of it.
bool TraceFiles::rings_are_sound() {
  if (!guard_was_needed()) return true;
  fail_locked(("cannot write " + rings_.name.substr(0, 240) + ": it was cut short, or its disk failed").c_str(), 0);
  return !guard_lost_content();
}

bool TraceFiles::check_rings() {
  if (!guard_was_needed()) return true;
  std::lock_guard lock(mutex_);
  return rings_are_sound();
}

void TraceFiles::append(const std::string& chunks) {
  std::lock_guard lock(mutex_);
  if (writable() && !chunks.empty() && rings_are_sound()) write_down(chunks);
}

void TraceFiles::append_chunk(ChunkKind kind, uint32_t location, uint32_t count, std::string_view payload) {
  std::string chunk;
  strobe::append_chunk(chunk, kind, location, count, payload);
  append(chunk);
}

void TraceFiles::append_in_spite_of_failure(const std::string& chunks) {
  std::lock_guard lock(mutex_);
  write_down(chunks);
}

void TraceFiles::write_down(const std::string& bytes) {
  if (!blocks_.ours()) return fail_to_write(blocks_, errno);
  if (blocks_.removed()) return fail_to_write(blocks_, ENOENT);
  if (const int error = write_all(blocks_.fd, bytes)) {
    if (ftruncate(blocks_.fd, off_t(file_bytes_)) != 0) {
    }  // a torn chunk is cut by its checksum anyway
    return fail_to_write(blocks_, error);
  }
  file_bytes_ += bytes.size();
  if (in_parts_) lasting_.note(bytes);
}

// The newest part always has the name of the block file: no moment is without one.
void TraceFiles::begin_part() {
  std::lock_guard lock(mutex_);
  if (!writable() || !rings_are_sound()) return;
  if (const std::string fill = padding(file_bytes_); !fill.empty()) write_down(fill);
  if (failed_) return;
  char number[16];
  snprintf(number, sizeof number, ".%06u", part_);
  const std::string full = blocks_.name + number, fresh = named(".next");
  const std::string begin = lasting_.begin_part(++part_, monotonic_ns());
  HeldFile next;
  int error = next.open_new(fresh, O_CREAT | O_TRUNC | O_RDWR | O_APPEND);
  if (error) return fail_locked(("cannot create " + fresh.substr(0, 250)).c_str(), error);
  flock(next.fd, LOCK_EX | LOCK_NB);
  error = write_all(next.fd, begin);
  if (!error && link(blocks_.name.c_str(), full.c_str()) != 0) error = errno;
  if (!error && rename(fresh.c_str(), blocks_.name.c_str()) != 0) error = errno;
  if (error) {
    unlink(fresh.c_str());
    next.release();
    return fail_to_write(blocks_, error);
  }
  next.name = blocks_.name;
  blocks_.release();
  blocks_ = next;
  file_bytes_ = begin.size();
}

void TraceFiles::write_snapshot(const std::string& bytes, uint64_t sequence) {
  std::lock_guard lock(mutex_);
  if (!writable() || !rings_are_sound()) return;
  int error = 0;
  if (statistics_.name.empty())
    error = statistics_.open_new(named(".statistics"), O_CREAT | O_TRUNC | O_RDWR);
  else if (!statistics_.ours())
    error = errno;
  if (bytes.empty()) error = EFBIG;
  if (!error) error = write_all(statistics_.fd, bytes, off_t(sequence % 2 * kSnapshotStride));
  if (error) fail_locked(("cannot write the statistics beside " + blocks_.name.substr(0, 200)).c_str(), error);
}

void TraceFiles::open_statistics_early() {
  std::lock_guard lock(mutex_);
  if (writable() && statistics_.name.empty()) statistics_.open_new(named(".statistics"), O_CREAT | O_TRUNC | O_RDWR);
}

void* TraceFiles::map_ring(size_t part, size_t bytes) {
  int error = 0;
  void* map = nullptr;
  if (rings_.ours())
    map = map_reserved(rings_.fd, off_t(kRingsHeaderBytes + part * bytes), bytes, MAP_POPULATE, error);
  else
    error = errno;
  if (!map) fail(("cannot grow " + rings_.name.substr(0, 250)).c_str(), error);
  return map;
}

void TraceFiles::count(const char* what, uint64_t n) {
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
  const uint32_t known = header->counter_count.load();
  if (add(known) || known >= sizeof header->counters / sizeof header->counters[0]) return;
  strncpy(header->counters[known].name, what, sizeof header->counters[known].name - 1);
  header->counters[known].value.store(n);
  header->counter_count.store(known + 1);
}

std::string TraceFiles::beside(const char* suffix) {
  std::lock_guard lock(mutex_);
  return active_ && !blocks_.name.empty() ? named(suffix) : std::string();
}

void TraceFiles::forked() {
  forget_parent();
  parent_header_ = header_.exchange(nullptr);
  release_all();
  active_ = false;
}

void TraceFiles::count_fork_without_files() {
  if (!parent_header_) return;
  guard(parent_header_, kRingsHeaderBytes);
  header_ = parent_header_;
  count("forks_not_recorded", 1);
  header_ = nullptr;
  forget_parent();
}

void TraceFiles::forget_parent() {
  if (!parent_header_) return;
  unguard(parent_header_);
  munmap(parent_header_, kRingsHeaderBytes);
  parent_header_ = nullptr;
}

}  // namespace strobe
