#include "core/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "core/format/json_text.h"
#include "core/session/repeated_facts.h"
#include "core/system/mapping_guard.h"
#include "core/system/own_memory.h"
#include "core/system/threads.h"

namespace strobe {

Session& session() {
  static Session* one = new Session;
  return *one;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

void Session::set_state(State state) {
  files_.set_active(state == kActive);
  state_.store(state, std::memory_order_release);
}

int Session::start(const strobe_options& options) {
  pthread_once(&once, [] {
    clock_setup();
    pthread_atfork([] { session().before_fork(); }, [] { session().after_fork_in_parent(); },
                   [] { session().after_fork_in_child(); });
  });
  std::lock_guard control(control_);
  if (active()) {
    files_.set_error("this process is being recorded already, into " + folder_);
    return EBUSY;
  }
  if (options.folder) {  // nullptr: restart in a forked child, with the parent's options
    options_ = options;
    folder_ = options.folder;
    description_ = options.description ? options.description : "";
    counters_ = options.counters ? options.counters : "";
    drainer_.set_clock_server(options.clock_server ? options.clock_server : "");
    options_.folder = options_.description = options_.counters = options_.clock_server = nullptr;
    if (!options_.ring_bytes) options_.ring_bytes = kDefaultRingBytes;
    if (!options_.drain_period_us) options_.drain_period_us = 10000;
    child_ = false;
  }
  guard_nothing();
  // What another thread still writes for the session before is written before the files of this one are there.
  {
    const std::scoped_lock tables(regions_.mutex(), texts_.mutex(), samples_.mutex());
  }
  if (int error = files_.open(folder_, options_, child_ || options_.silent)) return error;
  const bool no_functions = child_ && throttle_.given_up();  // the parent took the hooks out
  if (!child_) throttle_.forget();
  throttle_.begin(options_.throttle_calls, int64_t(options_.throttle_ns));
  if (no_functions) throttle_.give_up();
  cost_.begin();
  samples_.begin(counters_);
  slots_.begin(options_.ring_bytes);
  drainer_.begin(options_, folder_);
  started_ns_ = monotonic_ns();
  recording_since_ns_ = 0;
  was_muted_ = false;
  // Until the session is active nothing that is made writes itself: what these tables hold now must be all that they
  // hold then.
  const std::scoped_lock tables(regions_.mutex(), texts_.mutex(), samples_.mutex());
  write_beginning();
  if (files_.failed()) {  // a full disk, at the very start
    files_.remove();
    return ENOSPC;
  }
  paused_ = forks_.load();
  if (int error = paused_ ? 0 : drainer_.start()) {
    files_.set_error(std::string("cannot start the recorder's thread: ") + strerror(error));
    files_.remove();
    return error;
  }
  if (no_functions) files_.count("budget_no_functions", 1);
  files_.forget_parent();
  generation_.fetch_add(1);
  set_state(kActive);
  return 0;
}

void Session::write_beginning() {
  std::string chunks;
  const std::string process = process_json();
  append_chunk(chunks, kProcessChunk, 0, 1, process);
  begin_facts(process, folder_);
  if (!process_name_.empty()) append_chunk(chunks, kNoteChunk, 0, 1, process_name_);
  regions_.append_all(chunks);
  uint32_t count = 0;
  if (const std::string payload = texts_.all(count); !payload.empty())
    append_chunk(chunks, kTextsChunk, 0, count, payload);
  samples_.append_definitions(chunks);
  append_facts(chunks);  // at some distance of the process chunk
  files_.append(chunks);
}

std::string Session::process_json() const {
  char text[640];
  const WallClock wall = wall_clock();
  snprintf(text, sizeof text,
           "{\"pid\": %d, \"parent_pid\": %d, \"started_ns\": %lld, \"forked\": %s, \"put_ns\": %.2f, \"clock\": "
           "\"%s\", \"node\": \"%.120s\", \"wall\": [%lld, %lld, %lld], \"description\": ",
           getpid(), getppid(), (long long)started_ns_, child_ ? "true" : "false", cost_.put_ns(),
           ticks_are_tsc ? "tsc" : "monotonic", node_name().c_str(), (long long)wall.monotonic_ns,
           (long long)wall.unix_ns, (long long)wall.error_ns);
  return text + (description_.empty() ? std::string("{}") : description_) + "}";
}

std::string Session::end_chunk(int exit_code) {
  RingsHeader& header = *files_.header();
  char text[256];
  snprintf(text, sizeof text, "{\"end_state\": \"%s\", \"exit_code\": %d, \"ended_ns\": %lld, \"counters\": {",
           exit_code >= 0 ? "exited" : "closed", exit_code, (long long)monotonic_ns());
  std::string json = text;
  const auto add = [&json](std::string_view name, uint64_t value) {
    if (json.back() != '{') json += ", ";
    append_json_text(json, name);
    json += ": " + std::to_string(value);
  };
  add("own_cpu_ns", uint64_t(header.own_cpu_ns.load()));
  if (const double ns = cost_.of_hooks_ns(); ns >= 1) add("hook_cost_ns", uint64_t(ns));
  for (const auto& [name, value] : drainer_.counters()) add(name, value);
  for (uint32_t region : throttle_.throttled())
    add("throttled_after: " + regions_.place_of(region), throttle_.calls(region));
  for (uint32_t i = 0; i < header.counter_count.load(); i++)
    add(header.counters[i].name, header.counters[i].value.load());
  json += '}';
  if (files_.failed()) {
    json += ", \"failure\": ";
    append_json_text(json, error());
    json += ", \"failed_ns\": " + std::to_string(header.failed_ns.load());
  }
  std::string chunk;
  append_chunk(chunk, kEndChunk, 0, 1, json + '}');
  return chunk;
}

void Session::stop(int exit_code) {
  std::lock_guard control(control_);
  if (!active()) return;
  set_state(kStopped);
  slots_.stop_producers();
  if (!paused_) drainer_.stop();
  paused_ = false;
  drainer_.measure_clock();
  if (muted_.exchange(false)) count_unrecorded();
  if (drainer_.folds()) drainer_.round(false);  // threads that have ended make room in its tables
  drainer_.round(true);
  std::lock_guard lock(slots_.mutex());
  if (!files_.failed()) {
    std::string chunks;
    if (const RingHeader* totals = totals_)
      append_totals(chunks, totals->location, totals_entries(totals), totals->capacity);
    for (const auto& slot : slots_.all())
      if (const RingHeader& part = *slot->header; part.magic == kLinesMagic && part.state.load() == kRingActive)
        append_lines(chunks, part.location, reinterpret_cast<const strobe_line*>(slot->data), part.head.load(),
                     clock_line(files_.header()->first_pair, clock_pair()));
    for (const auto& slot : slots_.all())
      if (slot->builder) append_span_count(chunks, slot->builder->location(), slot->builder->spans());
    append_facts(chunks);
    files_.append(chunks + end_chunk(exit_code));
  }
  const bool rings_are_gone = guard_lost_content();
  // Who recovers the rest would find nothing: the file itself has how it ended.
  if (files_.failed() && rings_are_gone) files_.append_in_spite_of_failure(end_chunk(exit_code));
  forget_parts();
  slots_.unmap();
  files_.close(exit_code >= 0 ? kExited : kClosed, !files_.failed() || rings_are_gone);
}

// The parts of the rings file that all threads share are gone with it.
void Session::forget_parts() {
  totals_ = nullptr;
  lines_ = nullptr;
  strobe_lines_epoch++;
}

void Session::stop_at_exit() {
  if (!stops_at_exit_.exchange(true)) atexit(strobe_stop);
}

void Session::open_all_files() {
  make_recordable(producer);
  if (active() && drainer_.folds()) files_.open_statistics_early();
}

void Session::note_rank(int rank, int size) {
  note_rank_fact(rank, size);
  if (active()) note("{\"rank\": " + std::to_string(rank) + ", \"ranks\": " + std::to_string(size) + "}");
}

void Session::note_call_site(const char* site, const char* object, uint64_t address) {
  std::string json = "{\"call_site\": [";
  append_json_text(json, site);
  append_json_text(json += ", ", object);
  char number[32];
  snprintf(number, sizeof number, ", \"0x%llx\"]}", static_cast<unsigned long long>(address));
  if (active()) note(json + number);
}

void Session::name_process(const char* name) {
  std::string json = "{\"name\": ";
  append_json_text(json, std::string_view(name).substr(0, 200));
  std::lock_guard control(control_);
  process_name_ = json + "}";  // a forked child has no file before its first record
  if (active()) note(process_name_);
}

void Session::sample(uint32_t metric, double value) {
  if (metric == UINT32_MAX || muted_) return;
  const Inside inside;
  if (state_.load() == kForked) make_recordable(producer);
  if (active()) samples_.add(metric, monotonic_ns(), value);
}

// --- rests and recording windows

void Session::pause() {
  std::lock_guard control(control_);
  if (!active() || paused_) return;
  paused_ = true;
  slots_.stop_producers();  // the next record of any thread comes to slow_put, which resumes
  drainer_.stop();
  drainer_.wait_until_gone();
}

void Session::resume() {
  const WithoutSignals whole;
  std::lock_guard control(control_);
  if (!active() || !paused_ || muted_) return;
  paused_ = false;
  if (int error = drainer_.start()) files_.fail("cannot start the recorder's thread again after a fork", error);
}

void Session::mute() {
  std::lock_guard windows(windows_);
  if (muted_.exchange(true)) return;
  window_++;
  muted_since_ns_ = monotonic_ns();
  was_muted_ = true;
  pause();  // from now on every record comes to slow_put, which drops it
  std::lock_guard control(control_);
  if (active()) drainer_.end_open_spans();
}

void Session::unmute() {
  std::lock_guard windows(windows_);
  if (!muted_) return;
  {
    std::lock_guard control(control_);
    if (active()) {
      // What a thread wrote that had looked at its limit before it was taken away.
      drainer_.end_open_spans();
      count_unrecorded();
      drainer_.measure_metrics_now(monotonic_ns());
    }
    recording_since_ns_ = monotonic_ns();
    muted_ = false;
  }
  resume();
}

void Session::count_unrecorded() { count("unrecorded_ms", uint64_t((monotonic_ns() - muted_since_ns_) / 1000000)); }

// --- forks

// In the order in which they are taken where one thread holds several.
std::array<std::mutex*, 11> Session::mutexes() {
  return {&windows_,       &streams_mutex_,          &control_,         &adapters_mutex_,
          &slots_.mutex(), &regions_.mutex(),        &texts_.mutex(),   &samples_.mutex(),
          &files_.mutex(), &files_.counters_mutex(), &throttle_.mutex()};
}

void Session::before_fork() {
  for (std::mutex* each : mutexes()) each->lock();
  lock_own_memory();
  busy_before_fork_ = producer.busy;
  producer.busy = true;  // what the program's own handlers record now would wait for these locks
}

void Session::after_fork_in_parent() {
  producer.busy = busy_before_fork_;
  unlock_own_memory();
  const auto taken = mutexes();
  for (auto each = taken.rbegin(); each != taken.rend(); ++each) (*each)->unlock();
}

void Session::after_fork_in_child() {
  after_fork_in_parent();
  forks_ = false;
  if (!active()) return;
  // The child records into files of its own, opened when its first record comes: most children exec at once and never
  // need any.
  set_state(kForked);
  producer.limit.store(0);
  producer.header = nullptr;
  producer.lost_depth = 0;
  row_producer.limit.store(0);
  row_producer.header = nullptr;
  forget_parts();
  guard_nothing();
  slots_.forked();
  const std::vector<uint32_t> throttled = throttle_.throttled();
  const bool no_functions = throttle_.given_up();
  new (&throttle_) Throttle;
  for (uint32_t region : throttled) throttle_.note(region);  // they are not recorded here either
  if (no_functions) throttle_.give_up();
  samples_.forked();
  drainer_.forked();
  files_.forked();
  child_ = true;
  process_name_.clear();
  paused_ = false;
}

// A forked child that gets no files has nothing of its own in the trace: its parent's part of it counts that.
void Session::forked_without_files() {
  std::lock_guard control(control_);
  if (state_.exchange(kStopped) == kForked) files_.count_fork_without_files();
}

}  // namespace strobe
