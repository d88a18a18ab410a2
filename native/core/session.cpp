#include "core/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "core/guard.h"
#include "core/own_memory.h"

namespace strobe {

Session& session() {
  static Session* one = new Session;
  return *one;
}

namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;

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

int Session::start(const strobe_options& options) {
  pthread_once(&once, [] {
    clock_setup();
    pthread_atfork([] { session().before_fork(); }, [] { session().after_fork_in_parent(); },
                   [] { session().after_fork_in_child(); });
  });
  std::lock_guard control(control_);
  if (active()) {
    snprintf(error_, sizeof error_, "this process is being recorded already, into %.300s", folder_.c_str());
    return EBUSY;
  }
  if (options.folder) {  // nullptr: restart in a forked child, with the parent's options
    options_ = options;
    folder_ = options.folder;
    description_ = options.description ? options.description : "";
    counters_ = options.counters ? options.counters : "";
    node_clock_.ask(options.clock_server ? options.clock_server : "");
    options_.folder = options_.description = options_.counters = options_.clock_server = nullptr;
    if (!options_.ring_bytes) options_.ring_bytes = kDefaultRingBytes;
    if (!options_.drain_period_us) options_.drain_period_us = 10000;
    if (!options_.metrics_period_ms) options_.metrics_period_ms = 200;
    child_ = false;
  }
  guard_nothing();
  // What another thread still writes for the session before is written before the files of this one are there.
  {
    const std::scoped_lock tables(regions_.mutex(), texts_.mutex(), samples_mutex_);
  }
  if (int error = open_files()) return error;
  paths_ = std::make_unique<PathTable>();
  collector_.reset();
  live_.clear();
  const bool budget = options_.max_bytes || options_.max_overhead > 0;
  if (options_.keep || budget || options_.min_duration_ns) {
    const uint32_t keep = options_.keep == UINT32_MAX ? 0 : options_.keep ? options_.keep : Collector::kAll;
    collector_ = std::make_unique<Collector>(keep, options_.min_duration_ns, regions_, *paths_, [this] { commit(); });
  }
  const bool no_functions = child_ && throttle_.given_up();  // the parent took the hooks out
  if (!child_) throttle_.forget();
  throttle_.begin(options_.throttle_calls, int64_t(options_.throttle_ns));
  if (no_functions) throttle_.give_up();
  metrics_ = std::make_unique<ProcessMetrics>(counters_);
  thread_metrics_.clear();
  shed_ = 0, records_seen_ = 0, spent_ns_ = 0;
  hook_costs(hook_times_, hook_ns_);
  next_budget_ns_ = next_folder_ns_ = monotonic_ns();
  node_clock_.begin();
  next_overhead_ns_ = next_budget_ns_ + 1000000000;
  {
    std::lock_guard lock(slots_mutex_);
    next_location_ = 0;
    early_locations_.clear();
  }
  unmatched_ = cut_ = 0;
  started_ns_ = monotonic_ns();
  recording_since_ns_ = 0;
  was_muted_ = false;
  next_sample_ns_ = started_ns_;
  next_save_ns_ = started_ns_ + 5000000000ll;
  if (put_ns_ == 0) put_ns_ = calibrate_put();
  std::string chunks;
  append_chunk(chunks, kProcessChunk, 0, 1, process_json());
  if (!process_name_.empty()) append_chunk(chunks, kNoteChunk, 0, 1, process_name_);
  // Until the session is active nothing that is made writes itself: what these tables hold now must be all that they
  // hold then.
  const std::scoped_lock tables(regions_.mutex(), texts_.mutex(), samples_mutex_);
  uint32_t regions = 0;
  std::string payload = regions_.all(regions);
  append_chunk(chunks, kRegionsChunk, 0, regions, payload);
  if (uint32_t texts = 0; !(payload = texts_.all(texts)).empty()) append_chunk(chunks, kTextsChunk, 0, texts, payload);
  const auto& infos = ProcessMetrics::infos();
  const auto define = [&chunks](uint32_t metric, std::string_view name, std::string_view unit) {
    Writer w;
    w.text(name), w.text(unit), w.u32(0xFFFFFFFF);
    append_chunk(chunks, kMetricChunk, metric, 1, w.bytes);
  };
  for (uint32_t i = 0; i < infos.size(); i++)
    if (metrics_->chosen(infos[i])) define(i, infos[i].name, infos[i].unit);
  for (uint32_t i = 0; i < own_metrics_.size(); i++)
    define(uint32_t(infos.size()) + i, own_metrics_[i].first, own_metrics_[i].second);
  append(chunks);
  if (failed_) {  // a full disk, at the very start
    unguard(header());
    munmap(header(), kRingsHeaderBytes);
    header_ = nullptr;
    remove_files();
    return ENOSPC;
  }
  paused_ = forks_.load();
  if (int error = paused_ ? 0 : start_drainer()) {
    snprintf(error_, sizeof error_, "cannot start the recorder's thread: %s", strerror(error));
    remove_files();
    return error;
  }
  if (no_functions) count("budget_no_functions", 1);
  forget_parent();
  generation_.fetch_add(1);
  state_.store(kActive, std::memory_order_release);
  return 0;
}

void Session::stop_producers() {
  std::lock_guard lock(slots_mutex_);
  for (auto& slot : slots_) {
    if (slot->owner) slot->owner->limit.store(0);
    if (slot->row_owner) slot->row_owner->limit.store(0);
  }
}

void Session::stop(int exit_code) {
  std::lock_guard control(control_);
  if (!active()) return;
  state_.store(kStopped);
  stop_producers();
  if (!paused_) stop_drainer();
  paused_ = false;
  measure_clock();
  if (muted_.exchange(false)) count("unrecorded_ms", uint64_t((monotonic_ns() - muted_since_ns_) / 1000000));
  if (collector_) round(false);  // threads that have ended make room in its tables
  round(true);
  if (!failed_) {
    std::string chunks;
    if (const RingHeader* totals = totals_)
      append_totals(chunks, totals->location, totals_entries(totals), totals->capacity);
    std::lock_guard lock(slots_mutex_);
    for (const auto& slot : slots_)
      if (const RingHeader& part = *slot->header; part.magic == kLinesMagic && part.state.load() == kRingActive)
        append_lines(chunks, part.location, reinterpret_cast<const strobe_line*>(slot->data), part.head.load(),
                     clock_line(header()->first_pair, clock_pair()));
    append_chunk(chunks, kEndChunk, 0, 1, end_json(exit_code));
    append(chunks);
  }
  const bool rings_are_gone = guard_lost_content();
  if (failed_ && rings_are_gone) {  // who recovers the rest would find nothing: the file says itself how it ended
    std::string chunk;
    append_chunk(chunk, kEndChunk, 0, 1, end_json(exit_code));
    std::lock_guard lock(file_mutex_);
    write_down(chunk);
  }
  totals_ = nullptr;
  lines_ = nullptr;
  strobe_lines_epoch++;
  std::lock_guard lock(slots_mutex_);
  // A thread that was between its look at `limit` and its store may still write into its ring: private zero pages take
  // the place of the mapping, so that such a store hits nothing.
  size_t ring_bytes = kPage + options_.ring_bytes;
  for (auto& slot : slots_) {
    mmap(slot->header, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
         0);
    unguard(slot->header);
  }
  slots_.clear();
  if (!failed_ || rings_are_gone) {
    header()->state.store(exit_code >= 0 ? kExited : kClosed);
    if (!statistics_.name.empty()) unlink(statistics_.name.c_str());
    unlink(rings_.name.c_str());
  }
  // The same for the header: strobe_count may hold it.
  void* header_page = header_.exchange(nullptr);
  mmap(header_page, kRingsHeaderBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
       -1, 0);
  unguard(header_page);
  std::lock_guard file(file_mutex_);
  for (HeldFile* held : {&blocks_, &rings_, &statistics_}) held->release(), held->name.clear();
}

void Session::stop_at_exit() {
  if (!stops_at_exit_.exchange(true)) atexit(strobe_stop);
}

void Session::before_fork() {
  windows_.lock();
  streams_mutex_.lock();
  control_.lock();
  adapters_mutex_.lock();
  slots_mutex_.lock();
  regions_.mutex().lock();
  texts_.mutex().lock();
  samples_mutex_.lock();
  file_mutex_.lock();
  counters_mutex_.lock();
  throttle_.mutex().lock();
  lock_own_memory();
  busy_before_fork_ = producer.busy;
  producer.busy = true;  // what the program's own handlers record now would wait for these locks
}

void Session::after_fork_in_parent() {
  producer.busy = busy_before_fork_;
  unlock_own_memory();
  throttle_.mutex().unlock();
  counters_mutex_.unlock();
  file_mutex_.unlock();
  samples_mutex_.unlock();
  texts_.mutex().unlock();
  regions_.mutex().unlock();
  slots_mutex_.unlock();
  adapters_mutex_.unlock();
  control_.unlock();
  streams_mutex_.unlock();
  windows_.unlock();
}

void Session::after_fork_in_child() {
  after_fork_in_parent();
  forks_ = false;
  if (!active()) return;
  // The child records into files of its own, opened when its first record comes: most children exec at once and never
  // need any.
  state_.store(kForked);
  producer.limit.store(0);
  producer.header = nullptr;
  producer.lost_depth = 0;
  row_producer.limit.store(0);
  row_producer.header = nullptr;
  totals_ = nullptr;
  lines_ = nullptr;
  strobe_lines_epoch++;
  size_t ring_bytes = kPage + options_.ring_bytes;
  guard_nothing();
  // What the drainer was changing while the process forked may be half changed here: it is left, not destroyed.
  for (auto& slot : slots_) {
    munmap(slot->header, ring_bytes);
    (void)slot.release();
  }
  slots_.clear();
  const std::vector<uint32_t> throttled = throttle_.throttled();
  const bool no_functions = throttle_.given_up();
  new (&throttle_) Throttle;
  for (uint32_t region : throttled) throttle_.note(region);  // they are not recorded here either
  if (no_functions) throttle_.give_up();
  (void)paths_.release();
  if (metrics_) metrics_->forked();
  (void)metrics_.release();
  (void)collector_.release();
  live_.clear();
  forget_parent();
  parent_header_ = header();
  header_ = nullptr;
  for (HeldFile* held : {&blocks_, &rings_, &statistics_}) held->release(), held->name.clear();
  child_ = true;
  process_name_.clear();
  paused_ = false;
}

}  // namespace strobe

// The C API.

using strobe::Inside;
using strobe::session;

extern "C" {

int strobe_start(const strobe_options* options) {
  const Inside inside;
  const int failed = session().start(*options);
  if (!failed) session().turn_streams(STROBE_STREAMS_GO_ON);
  return failed;
}
void strobe_stop(void) {
  const Inside inside;
  session().turn_streams(STROBE_STREAMS_END);
  session().stop(-1);
}
int strobe_active(void) { return session().recording(); }
void strobe_mute(void) {
  const Inside inside;
  session().turn_streams(STROBE_STREAMS_REST);
  session().mute();
}
void strobe_unmute(void) {
  const Inside inside;
  session().unmute();
  session().turn_streams(STROBE_STREAMS_GO_ON);
}
const char* strobe_error(void) { return session().error(); }
void strobe_pause(void) {
  const Inside inside;
  session().fork_begins();
}
void strobe_resume(void) { session().fork_ends(); }
void strobe_before_user_changes(void) {
  if (strobe::producer.busy) return;
  const Inside inside;
  session().open_all_files();
}
void strobe_note_exit(int exit_code) {
  const Inside inside;
  session().turn_streams(STROBE_STREAMS_EXIT);
  session().stop(exit_code & 0xFF);
}
uint32_t strobe_region(const strobe_region_info* info) {
  const Inside inside;
  return session().regions().intern(*info, [](std::string_view payload) { session().save_regions(payload, 1); });
}
void strobe_enter(uint32_t region) { strobe::put(strobe::kEnter, region); }
void strobe_leave(uint32_t region) { strobe::put(strobe::kLeave, region); }
void strobe_name_thread(const char* name) { session().name_thread(name); }
void strobe_count(const char* what, uint64_t n) { session().count(what, n); }
void strobe_stop_at_exit(void) { session().stop_at_exit(); }
int strobe_stops_at_exit(void) { return session().stops_at_exit(); }
uint64_t strobe_ticks(void) { return strobe::ticks(); }
void strobe_enter_at(uint32_t region, uint64_t ticks) {
  strobe::put_at(strobe::kEnter, region, [ticks] { return ticks; });
}
void strobe_switch_stack(uint32_t stack) { strobe::put(strobe::kSwitch, stack & (strobe::kRegionLimit - 1)); }
const uint8_t* strobe_throttle_flags(void) { return reinterpret_cast<const uint8_t*>(session().throttle().flags()); }
int strobe_functions_given_up(void) { return session().throttle().given_up(); }
void strobe_hook_cost(const uint64_t* times, double ns) { session().hook_costs(times, ns); }
void strobe_note_throttled(uint32_t region) {
  const Inside inside;
  if (session().throttle().note(region)) session().count("functions_throttled", 1);
}
void strobe_name_process(const char* name) {
  const Inside inside;
  session().name_process(name);
}
uint32_t strobe_text(const char* utf8) { return utf8 && *utf8 ? session().text(utf8) : 0; }
void strobe_row(uint32_t kind, const int64_t* values) { strobe_row_at(kind, 0, values); }
void strobe_row_at(uint32_t kind, uint64_t ticks, const int64_t* values) {
  strobe::RowProducer& r = strobe::row_producer;
  if (__builtin_expect(r.head >= r.limit.load(std::memory_order_relaxed), 0))
    return strobe::put_row_slowly(kind, ticks, values);
  strobe::write_row(r, kind, ticks ? ticks : strobe::ticks(), strobe::producer.head, values);
}
uint32_t strobe_location(uint64_t thread_id, const char* name) { return session().location_of(thread_id, name); }
void strobe_location_over(uint64_t thread_id) { session().location_over(thread_id); }
void strobe_hide_thread(void) { strobe::producer.hidden = true; }
void strobe_total(const strobe_total_key* key, const strobe_total_sums* more) { session().total(*key, *more); }
uint32_t strobe_metric(const char* name, const char* unit) {
  const Inside inside;
  return session().metric(name, unit);
}
void strobe_sample(uint32_t metric, double value) { session().sample(metric, value); }
uint32_t strobe_lines_epoch = 1;
strobe_line* strobe_lines(const char* file, const char* function, uint32_t function_line, uint32_t first_line,
                          uint32_t count) {
  return session().lines(file, function, function_line, first_line, count);
}
void strobe_lines_open_with(strobe_open_lines ask) { strobe::open_lines.store(ask); }
void strobe_note_rank(int rank, int size) {
  const Inside inside;
  session().note_rank(rank, size);
}
}
