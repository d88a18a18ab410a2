#include "core/session.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace strobe {

thread_local Producer producer __attribute__((tls_model("initial-exec")));

Session& session() {
  static Session* one = new Session;
  return *one;
}

namespace {

pthread_key_t thread_key;
pthread_once_t once = PTHREAD_ONCE_INIT;

void set_up_process() {
  clock_setup();
  pthread_key_create(&thread_key, [](void* owner) { session().thread_ended(static_cast<Producer*>(owner)); });
  pthread_atfork([] { session().before_fork(); }, [] { session().after_fork_in_parent(); },
                 [] { session().after_fork_in_child(); });
}

uint64_t thread_id() { return uint64_t(syscall(SYS_gettid)); }

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, uint32_t timeout_us) {
  timespec t = {time_t(timeout_us / 1000000), long(timeout_us % 1000000) * 1000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &t, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// ns of one put() on this machine, for the recorder's own cost estimate: the same work on a buffer of our own.
double calibrate_put() {
  uint64_t buffer[256];
  std::atomic<uint64_t> head{0};
  double best = 1e9;
  for (int pass = 0; pass < 5; pass++) {
    int64_t begin = monotonic_ns();
    for (uint64_t i = 0; i < 256; i++) {
      buffer[i & 255] = make_record(kEnter, 2, ticks());
      head.store(i, std::memory_order_release);
    }
    best = fmin(best, double(monotonic_ns() - begin) / 256);
    asm volatile("" : : "r"(buffer) : "memory");
  }
  return best;
}

}  // namespace

void put_slowly(RecordKind kind, uint32_t region) {
  Producer& p = producer;
  if (p.busy) return;
  p.busy = true;
  int saved = errno;
  session().slow_put(kind, region);
  errno = saved;
  p.busy = false;
}

// ---- files
// -------------------------------------------------------------------------------------------------------------------

int Session::HeldFile::open_new(const std::string& path, int flags) {
  int low = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (low < 0) return errno;
  // Far from the numbers that the program's own files get.
  fd = fcntl(low, F_DUPFD_CLOEXEC, 900);
  if (fd >= 0)
    close(low);
  else
    fd = low;
  name = path;
  struct stat info;
  if (fstat(fd, &info) == 0) device = info.st_dev, inode = info.st_ino;
  return 0;
}

bool Session::HeldFile::ours() {
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) return true;
  // The program closed our descriptor (daemons close all), and the number may be a file of its own by now.
  fd = open(name.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) return true;
  if (fd >= 0) close(fd);
  fd = -1;
  errno = ENOENT;
  return false;
}

void Session::HeldFile::release() {
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) close(fd);
  fd = -1;
}

void Session::fail(const char* what, int error) {
  // Called with file_mutex_ held or before anything runs. The program goes on; the recording ends here, and says so
  // once.
  if (failed_) return;
  failed_ = true;
  snprintf(error_, sizeof error_, "%s: %s", what, strerror(error));
  if (active()) {
    char text[700];
    int n =
        snprintf(text, sizeof text,
                 "strobe: recording stopped, the program goes on: %s. What was recorded until then is kept.\n", error_);
    if (n > 0) (void)!write(2, text, size_t(n) < sizeof text ? size_t(n) : sizeof text - 1);
    header()->state.store(kFailed);
    count("recording_stopped_early", 1);
  }
}

void Session::append(const std::string& bytes) {
  std::lock_guard lock(file_mutex_);
  if (failed_ || blocks_.name.empty() || bytes.empty()) return;
  if (!blocks_.ours()) {
    char what[300];
    snprintf(what, sizeof what, "cannot write %.250s", blocks_.name.c_str());
    return fail(what, errno);
  }
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = write(blocks_.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = n < 0 ? errno : ENOSPC;
      if (ftruncate(blocks_.fd, off_t(file_bytes_)) != 0) {
      }  // a torn chunk is cut by its checksum anyway
      char what[300];
      snprintf(what, sizeof what, "cannot write %.250s", blocks_.name.c_str());
      return fail(what, error);
    }
    done += size_t(n);
  }
  file_bytes_ += bytes.size();
}

int Session::open_files() {
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
  header()->magic = kRingsMagic;
  header()->version = kFormatVersion;
  header()->pid = uint32_t(getpid());
  header()->ring_bytes = options_.ring_bytes;
  header()->state.store(kRunning);
  header()->first_pair = header()->last_pair = clock_pair();
  return 0;
}

std::string Session::process_json() const {
  char text[512];
  snprintf(text, sizeof text,
           "{\"pid\": %d, \"parent_pid\": %d, \"started_ns\": %lld, \"forked\": %s, \"put_ns\": %.2f, \"clock\": "
           "\"%s\", \"description\": ",
           getpid(), getppid(), (long long)started_ns_, child_ ? "true" : "false", put_ns_,
           ticks_are_tsc ? "tsc" : "monotonic");
  return text + (description_.empty() ? std::string("{}") : description_) + "}";
}

std::string Session::end_json(int exit_code) const {
  char text[256];
  snprintf(text, sizeof text, "{\"end_state\": \"%s\", \"exit_code\": %d, \"ended_ns\": %lld, \"counters\": {",
           exit_code >= 0 ? "exited" : "closed", exit_code, (long long)monotonic_ns());
  std::string out = text;
  auto add = [&](const char* name, uint64_t value) {
    snprintf(text, sizeof text, "%s\"%s\": %llu", out.back() == '{' ? "" : ", ", name, (unsigned long long)value);
    out += text;
  };
  add("own_cpu_ns", uint64_t(header()->own_cpu_ns.load()));
  uint64_t lost = 0, unmatched = unmatched_, cut = cut_;
  for (const auto& slot : slots_) {
    lost += slot->header->lost.load();
    if (slot->builder) unmatched += slot->builder->unmatched, cut += slot->builder->cut;
  }
  add("records_lost", lost);
  add("leaves_unmatched", unmatched);
  add("spans_cut", cut);
  add("paths_folded", paths_->folded());
  for (uint32_t i = 0; i < header()->counter_count.load(); i++)
    add(header()->counters[i].name, header()->counters[i].value.load());
  return out + "}}";
}

// ---- start, stop, fork
// -------------------------------------------------------------------------------------------------------

int Session::start(const strobe_options& options) {
  pthread_once(&once, set_up_process);
  std::lock_guard control(control_);
  if (active()) {
    snprintf(error_, sizeof error_, "this process is being recorded already, into %.300s", folder_.c_str());
    return EBUSY;
  }
  if (options.folder) {  // nullptr: restart in a forked child, with the parent's options
    options_ = options;
    folder_ = options.folder;
    description_ = options.description ? options.description : "";
    options_.folder = nullptr, options_.description = nullptr;
    if (!options_.ring_bytes) options_.ring_bytes = kDefaultRingBytes;
    if (!options_.drain_period_us) options_.drain_period_us = 10000;
    if (!options_.metrics_period_ms) options_.metrics_period_ms = 200;
    child_ = false;
  }
  if (int error = open_files()) return error;
  paths_ = std::make_unique<PathTable>();
  metrics_ = std::make_unique<ProcessMetrics>();
  next_location_ = 0;
  unmatched_ = cut_ = 0;
  started_ns_ = monotonic_ns();
  next_sample_ns_ = started_ns_;
  next_save_ns_ = started_ns_ + 5000000000ll;
  if (put_ns_ == 0) put_ns_ = calibrate_put();
  std::string chunks;
  append_chunk(chunks, kProcessChunk, 0, 1, process_json());
  uint32_t regions = 0;
  std::string payload = regions_.all(regions);
  append_chunk(chunks, kRegionsChunk, 0, regions, payload);
  const auto& infos = ProcessMetrics::infos();
  for (uint32_t i = 0; i < infos.size(); i++) {
    Writer w;
    w.text(infos[i].name), w.text(infos[i].unit), w.u32(0xFFFFFFFF);
    append_chunk(chunks, kMetricChunk, i, 1, w.bytes);
  }
  append(chunks);
  if (failed_) {  // a full disk, at the very start
    munmap(header(), kRingsHeaderBytes);
    header_ = nullptr;
    remove_files();
    return ENOSPC;
  }
  if (int error = start_drainer()) {
    snprintf(error_, sizeof error_, "cannot start the recorder's thread: %s", strerror(error));
    remove_files();
    return error;
  }
  generation_.fetch_add(1);
  state_.store(kActive, std::memory_order_release);
  return 0;
}

void Session::remove_files() {
  for (HeldFile* file : {&blocks_, &rings_}) {
    if (!file->name.empty()) unlink(file->name.c_str());
    file->release();
    file->name.clear();
  }
}

int Session::start_drainer() {
  quit_ = false;
  drainer_id_ = 0;
  earlier_cpu_ns_ = header()->own_cpu_ns.load();  // of a drainer that rested during a fork
  // The program's signals must never land on our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  int error = pthread_create(&drainer_, &attributes, drainer_main, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

void Session::stop_drainer() {
  quit_ = true;
  futex_wake(wake_);
  pthread_join(drainer_, nullptr);
}

void Session::pause() {
  std::lock_guard control(control_);
  if (!active() || paused_) return;
  resume_after_ns_ = INT64_MAX;
  paused_ = true;
  stop_producers();  // the next record of any thread comes to slow_put, which resumes
  stop_drainer();
  // A joined thread is counted in /proc/self/stat for a moment longer.
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u", drainer_id_.load());
  for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++) sched_yield();
}

void Session::resume() {
  std::lock_guard control(control_);
  if (!active() || !paused_) return;
  paused_ = false;
  if (int error = start_drainer()) {
    std::lock_guard lock(file_mutex_);
    fail("cannot start the recorder's thread again after a fork", error);
  }
}

void Session::stop_producers() {
  std::lock_guard lock(slots_mutex_);
  for (auto& slot : slots_)
    if (slot->owner) slot->owner->limit.store(0);
}

void Session::stop(int exit_code) {
  std::lock_guard control(control_);
  if (!active()) return;
  state_.store(kStopped);
  stop_producers();
  if (!paused_) stop_drainer();
  paused_ = false;
  round(true);
  if (!failed_) {
    std::string chunks;
    append_chunk(chunks, kEndChunk, 0, 1, end_json(exit_code));
    append(chunks);
  }
  std::lock_guard lock(slots_mutex_);
  // A thread that was between its look at `limit` and its store may still write into its ring: private zero pages take
  // the place of the mapping, so that such a store hits nothing.
  size_t ring_bytes = kPage + options_.ring_bytes;
  for (auto& slot : slots_) {
    mmap(slot->header, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
         0);
  }
  slots_.clear();
  if (!failed_) {
    header()->state.store(exit_code >= 0 ? kExited : kClosed);
    unlink(rings_.name.c_str());
  }
  // The same for the header: strobe_count may hold it.
  void* header_page = header_.exchange(nullptr);
  mmap(header_page, kRingsHeaderBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
       -1, 0);
  std::lock_guard file(file_mutex_);
  blocks_.release(), rings_.release();
  blocks_.name.clear(), rings_.name.clear();
}

void Session::before_fork() {
  control_.lock();
  slots_mutex_.lock();
  regions_.mutex().lock();
  file_mutex_.lock();
}

void Session::after_fork_in_parent() {
  file_mutex_.unlock();
  regions_.mutex().unlock();
  slots_mutex_.unlock();
  control_.unlock();
}

void Session::after_fork_in_child() {
  after_fork_in_parent();
  if (!active()) return;
  // The child records into files of its own, opened when its first record comes: most children exec at once and never
  // need any.
  state_.store(kForked);
  producer.limit.store(0);
  producer.header = nullptr;
  producer.lost_depth = 0;
  size_t ring_bytes = kPage + options_.ring_bytes;
  for (auto& slot : slots_) munmap(slot->header, ring_bytes);
  slots_.clear();
  munmap(header(), kRingsHeaderBytes);
  header_ = nullptr;
  blocks_.release(), rings_.release();
  blocks_.name.clear(), rings_.name.clear();
  child_ = true;
  paused_ = false;
}

// ---- the producer's slow path
// ------------------------------------------------------------------------------------------------

void Session::write_location(uint32_t location, uint64_t id, const char* name) {
  Writer w;
  w.u64(id), w.u8(0), w.text(name);
  std::string chunk;
  append_chunk(chunk, kLocationChunk, location, 1, w.bytes);
  append(chunk);
}

Slot* Session::free_slot() {
  for (auto& slot : slots_)
    if (slot->header->state.load() == kRingFree) return slot.get();
  // Blocks are reserved before they are mapped: a store into a hole of a full file system would be a SIGBUS.
  size_t ring_bytes = kPage + options_.ring_bytes;
  off_t offset = off_t(kRingsHeaderBytes + slots_.size() * ring_bytes);
  int error = rings_.ours() ? posix_fallocate(rings_.fd, offset, off_t(ring_bytes)) : errno;
  void* map = MAP_FAILED;
  if (!error) {
    map = mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, rings_.fd, offset);
    if (map == MAP_FAILED) error = errno;
  }
  if (error) {
    std::lock_guard lock(file_mutex_);
    char what[300];
    snprintf(what, sizeof what, "cannot grow %.250s", rings_.name.c_str());
    fail(what, error);
    return nullptr;
  }
  auto slot = std::make_unique<Slot>();
  slot->header = new (map) RingHeader{};
  slot->data = reinterpret_cast<uint64_t*>(static_cast<char*>(map) + kPage);
  slot->header->magic = kRingMagic;
  slot->header->capacity = options_.ring_bytes / 8;
  slots_.push_back(std::move(slot));
  header()->slots.store(uint32_t(slots_.size()));
  return slots_.back().get();
}

bool Session::new_ring(Producer& p) {
  std::lock_guard lock(slots_mutex_);
  Slot* slot = failed_ ? nullptr : free_slot();
  if (!slot) return false;
  uint32_t location = next_location_++;
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (thread_id() == uint64_t(getpid())) snprintf(name, sizeof name, "main thread");
  write_location(location, thread_id(), p.name ? p.name : name);
  slot->header->location = location;
  slot->header->thread_id = thread_id();
  slot->header->head.store(0), slot->header->tail.store(0);
  slot->header->state.store(kRingActive);
  slot->builder = std::make_unique<LocationBuilder>(location, *paths_);
  slot->builder->forked = child_;
  slot->decoder = {};
  slot->read = 0;
  slot->owner = &p;
  p.data = slot->data;
  p.mask = slot->header->capacity - 1;
  p.head = 0;
  p.epoch = ~uint64_t(0);
  p.header = slot->header;
  p.generation = generation_.load();
  p.lost_depth = 0;
  pthread_setspecific(thread_key, &p);
  return true;
}

void Session::slow_put(RecordKind kind, uint32_t region) {
  Producer& p = producer;
  if (state_.load() == kForked) {
    // First record in a forked child. If its files cannot be made the child runs unrecorded.
    if (start(strobe_options{}) != 0) state_.store(kStopped);
  }
  if (!active()) return;
  if (paused_ && monotonic_ns() >= resume_after_ns_) resume();
  if ((!p.header || p.generation != generation_.load()) && !new_ring(p)) return;
  RingHeader& ring = *p.header;
  if (p.lost_depth > 0) {
    p.lost_depth += kind == kEnter ? 1 : -1;
    ring.lost.fetch_add(1, std::memory_order_relaxed);
    if (p.lost_depth > 0) return;
  } else {
    const uint64_t capacity = ring.capacity;
    uint64_t used = p.head - ring.tail.load(std::memory_order_acquire);
    if (used > capacity / 2) {
      if (paused_) resume();
      futex_wake(wake_);
    }
    // Full: give the drainer time before anything is lost. It needs neither the GIL nor any lock that this thread could
    // hold.
    for (int64_t until = 0; used + 2 >= capacity && active() && !failed_;
         used = p.head - ring.tail.load(std::memory_order_acquire)) {
      int64_t now = monotonic_ns();
      if (!until) until = now + 500000000;
      if (now > until) break;
      futex_wake(wake_);
      sched_yield();
    }
    if (used + 2 >= capacity) {
      ring.lost.fetch_add(1, std::memory_order_relaxed);
      if (kind == kEnter) p.lost_depth = 1, p.limit.store(0);
      return;
    }
    uint64_t t = ticks();
    if ((t >> kTimeBits) != p.epoch) {
      p.epoch = t >> kTimeBits;
      p.data[p.head & p.mask] = (uint64_t(kEpoch) << 62) | p.epoch;
      p.head++;
    }
    p.data[p.head & p.mask] = make_record(kind, region, t);
    p.head++;
    ring.head.store(p.head, std::memory_order_release);
  }
  // Look again after a quarter of the ring, so that the drainer is woken long before it is full.
  uint64_t limit = ring.tail.load(std::memory_order_acquire) + ring.capacity - 2;
  uint64_t quarter = p.head + ring.capacity / 4;
  p.limit.store(quarter < limit ? quarter : limit);
  if (!active() || failed_ || paused_) p.limit.store(0);
}

void Session::name_thread(const char* name) {
  Producer& p = producer;
  free(p.name);
  p.name = strdup(name);  // for the ring that comes with the thread's first record
  std::lock_guard lock(slots_mutex_);
  if (active() && p.header && p.generation == generation_.load())
    write_location(p.header->location, p.header->thread_id, name);
}

void Session::thread_ended(Producer* owner) {
  std::lock_guard lock(slots_mutex_);
  for (auto& slot : slots_)
    if (slot->owner == owner) {
      slot->owner = nullptr;
      slot->header->state.store(kRingEnded);
    }
  owner->limit.store(0);
  owner->header = nullptr;
  free(owner->name);
  owner->name = nullptr;
  owner->busy = true;  // a hook that fires later in this thread's end finds no ring and makes none
}

void Session::count(const char* what, uint64_t n) {
  RingsHeader* header = header_.load();
  if (!header) return;
  uint32_t known = header->counter_count.load();
  for (uint32_t i = 0; i < known; i++)
    if (!strncmp(header->counters[i].name, what, sizeof header->counters[i].name - 1)) {
      header->counters[i].value.fetch_add(n);
      return;
    }
  static std::mutex adding;
  std::lock_guard lock(adding);
  if (known >= sizeof header->counters / sizeof header->counters[0]) return;
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

// ---- the drainer
// -------------------------------------------------------------------------------------------------------------

void* Session::drainer_main(void* self) {
  pthread_setname_np(pthread_self(), "strobe");
  static_cast<Session*>(self)->drainer_id_ = uint32_t(thread_id());
  static_cast<Session*>(self)->drain();
  static_cast<Session*>(self)->note_own_cpu();
  return nullptr;
}

void Session::drain() {
  // While nothing is recorded the drainer sleeps longer, up to 8 periods; a thread that fills a quarter of its ring
  // wakes it.
  uint32_t period_us = options_.drain_period_us;
  while (!quit_) {
    uint32_t seen = wake_.load(std::memory_order_acquire);
    futex_wait(wake_, seen, period_us);
    if (quit_) return;
    period_us = round(false) ? options_.drain_period_us : std::min(period_us * 2, options_.drain_period_us * 8);
    int64_t now = monotonic_ns();
    if (options_.metrics_period_ms != UINT32_MAX && now >= next_sample_ns_) {
      next_sample_ns_ = now + int64_t(options_.metrics_period_ms) * 1000000;
      sample_metrics(now);
    }
    if (now >= next_save_ns_) {
      next_save_ns_ = now + 5000000000ll;
      save_samples();
    }
  }
}

bool Session::round(bool last) {
  struct Work {
    Slot* slot;
    uint64_t head;
    bool ended;
  };
  std::vector<Work> work;
  {
    std::lock_guard lock(slots_mutex_);
    for (auto& slot : slots_) {
      uint32_t state = slot->header->state.load(std::memory_order_acquire);
      if (state == kRingFree) continue;
      uint64_t head = slot->header->head.load(std::memory_order_acquire);
      bool ended = state == kRingEnded || last;
      if (head != slot->read || ended) work.push_back({slot.get(), head, ended});
    }
  }
  // Heads first, then the pair: every record up to a head is older than the pair.
  ClockPair now = clock_pair();
  ClockLine line = clock_line(header()->last_pair, now);
  std::string out;
  for (const Work& w : work) {
    Slot& slot = *w.slot;
    const uint64_t mask = slot.header->capacity - 1;
    auto at_ns = [&](uint64_t t) { return line.at(t < now.ticks ? t : now.ticks); };
    auto seal = [&] {
      out.clear();
      slot.builder->seal(out, slot.read, slot.decoder.epoch);
      append(out);
      // Only now may the thread overwrite these records. After a failed write they stay where recovery finds them.
      if (!failed_) slot.header->tail.store(slot.read, std::memory_order_release);
    };
    while (slot.read < w.head) {
      slot.decoder.feed(slot.data[slot.read & mask], *slot.builder, at_ns);
      slot.read++;
      if (slot.builder->full()) seal();
    }
    if (w.ended || slot.read - slot.header->tail.load() > slot.header->capacity / 2) {
      if (slot.builder->dirty()) seal();
    }
    if (w.ended && !last && !failed_ && slot.header->head.load() == slot.read) {
      std::lock_guard lock(slots_mutex_);
      unmatched_ += slot.builder->unmatched, cut_ += slot.builder->cut;
      slot.builder.reset();
      slot.header->state.store(kRingFree);
    }
  }
  header()->last_pair = now;
  if (last) save_samples();
  return !work.empty();
}

void Session::note_own_cpu() {
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  header()->own_cpu_ns.store(earlier_cpu_ns_ + int64_t(cpu.tv_sec) * 1000000000 + cpu.tv_nsec);
}

void Session::sample_metrics(int64_t now) {
  note_own_cpu();
  std::vector<std::pair<uint32_t, double>> values;
  metrics_->sample(now, values);
  for (const auto& [metric, value] : values) {
    if (header()->staged_count.load() >= kStagedSamples) save_samples();
    uint32_t at = header()->staged_count.load();
    header()->staged[at] = {metric, 0, now, value};
    header()->staged_count.store(at + 1, std::memory_order_release);
  }
}

void Session::save_samples() {
  uint32_t n = header()->staged_count.load();
  if (!n) return;
  Writer w;
  for (uint32_t i = 0; i < n; i++) {
    const MetricSample& s = header()->staged[i];
    uint64_t bits;
    memcpy(&bits, &s.value, 8);
    w.u32(s.metric), w.u64(uint64_t(s.time_ns)), w.u64(bits);
  }
  std::string chunk;
  append_chunk(chunk, kSamplesChunk, 0, n, w.bytes);
  append(chunk);
  if (!failed_) header()->staged_count.store(0);
}

}  // namespace strobe

// ---- C API
// -------------------------------------------------------------------------------------------------------------------

using strobe::session;

extern "C" {

int strobe_start(const strobe_options* options) { return session().start(*options); }
void strobe_stop(void) { session().stop(-1); }
int strobe_active(void) { return session().active(); }
const char* strobe_error(void) { return session().error(); }
void strobe_pause(void) { session().pause(); }
void strobe_resume(void) { session().resume_in(5000000); }
void strobe_note_exit(int exit_code) { session().stop(exit_code & 0xFF); }
uint32_t strobe_region(const strobe_region_info* info) {
  return session().regions().intern(*info, [](std::string_view payload) { session().save_regions(payload, 1); });
}
void strobe_enter(uint32_t region) { strobe::put(strobe::kEnter, region); }
void strobe_leave(uint32_t region) { strobe::put(strobe::kLeave, region); }
void strobe_name_thread(const char* name) { session().name_thread(name); }
void strobe_count(const char* what, uint64_t n) { session().count(what, n); }
}
