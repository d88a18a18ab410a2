// The drainer: one thread a process that pairs records, seals blocks, and samples the process metrics.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/session.h"
#include "core/system_calls.h"

namespace strobe {

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
