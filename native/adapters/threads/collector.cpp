// The time of a thread is the sum of its rows: what it ran (its CPU time), what it waited for a processor (as the
// scheduler counts it), what it noted that it waited for, and of what is left what it sleeps in when it is looked at.
#include "adapters/threads/collector.h"

#include <limits.h>
#include <link.h>
#include <sys/prctl.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/sampling/thread_states.h"
#include "adapters/threads/thread_samples.h"
#include "core/system/clock.h"
#include "core/system/threads.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

constexpr uint32_t kRoundUs = 50000;
constexpr int64_t kLongestRowNs = 1000000000;            // of a thread that sleeps
constexpr int64_t kPartNs = 10000000, kMostParts = 100;  // of a wait, which counts as so many samples

struct Followed {
  uint32_t call_stack = 0;              // of its last sample
  Moment seen{};                        // at the last look
  int64_t ran_ns = 0;                   // CPU time that has rows
  int64_t delayed_ns = 0, rest_ns = 0;  // has no row yet: it waited for a processor; it waited for something else,
  State sleeps = kReady;                // which is this one; kReady: not known
};

struct Row {
  uint64_t ticks;
  uint32_t location, call_stack;
  State state;
  int64_t period_ns, cpu_ns;
};

class Collector {
 public:
  bool start() {
    return start_own_thread(
               thread_, 256 << 10,
               [](void* self) -> void* {
                 static_cast<Collector*>(self)->run();
                 return nullptr;
               },
               this) == 0;
  }

  void stop() {
    quit_ = true;
    futex_wake(wake_);
    pthread_join(thread_, nullptr);
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "strobe-samples");
    strobe_hide_thread();
    for (size_t i = 0; i < kStates; i++) state_texts_[i] = strobe_text(kStateNames[i]);
    while (!quit_) {
      const uint32_t seen = wake_.load();
      if (!quit_) futex_wait(wake_, seen, kRoundUs);
      if (before() && !has_signal()) give_way();
      collect(quit_);
    }
    strobe_count("sampler_cpu_ns", uint64_t(clock_ns(CLOCK_THREAD_CPUTIME_ID)));
  }

  void collect(bool last) {
    for (ThreadSamples* t : all_threads()) {
      const bool over = t->over;
      follow(*t, over, last);
      if (!over) continue;
      followed_.erase(t);
      forget(t);
    }
    std::ranges::sort(rows_, {}, &Row::ticks);
    for (const Row& row : rows_) {
      const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(row.location, row.call_stack),
                                                 STROBE_TWO(state_texts_[row.state], STROBE_NOTHING_32),
                                                 STROBE_NOTHING,
                                                 STROBE_TWO(STROBE_NOTHING_32, 0),
                                                 row.period_ns,
                                                 row.cpu_ns};
      strobe_row_at(STROBE_ROW_SAMPLE, row.ticks, values);
    }
    rows_.clear();
  }

  void follow(ThreadSamples& t, bool over, bool last) {
    const auto [at, fresh] = followed_.try_emplace(&t);
    Followed& f = at->second;
    if (fresh) f.seen = t.began, f.ran_ns = t.began.cpu_ns;
    const uint32_t in_wait = t.waits;
    const Moment now = over ? t.ended : moment_of(t.id);
    const int64_t ran = now.cpu_ns - f.seen.cpu_ns, delayed = now.delay_ns - f.seen.delay_ns;
    f.delayed_ns += delayed;
    f.rest_ns += now.ns - f.seen.ns - ran - delayed;
    f.seen = now;
    const size_t first = rows_.size();
    f.rest_ns -= read_notes(t, f);
    if (f.rest_ns < 0 && f.delayed_ns > 0) {  // who gets a lock waits for a processor, too: both is one wait
      const int64_t both = std::min(-f.rest_ns, f.delayed_ns);
      f.rest_ns += both, f.delayed_ns -= both;
    }
    if ((over || last) && now.cpu_ns > f.ran_ns) {
      rows_.push_back({strobe_ticks(), t.location, f.call_stack, kNative, 0, now.cpu_ns - f.ran_ns});
      f.ran_ns = now.cpu_ns;
    }
    for (size_t i = rows_.size(); i-- > first && f.delayed_ns > 0;)
      if (rows_[i].state == kNative) rows_[i].period_ns += std::exchange(f.delayed_ns, 0);
    if (over || last) {
      if (in_wait) f.sleeps = kWaits[in_wait].state;
      if (f.sleeps == kReady) f.sleeps = kWaiting;
      row_of_rest(t, f);
    } else if (in_wait) {  // it will note it itself
    } else if (ran) {
      if (f.sleeps == kReady && f.rest_ns > 0) f.sleeps = state_of_sleeper(t.id, 0, 0);
      if (f.sleeps != kReady) row_of_rest(t, f);
      f.sleeps = kReady;
    } else {
      if (f.sleeps == kReady) f.sleeps = state_of_sleeper(t.id, 0, 0);
      if (f.sleeps != kReady && f.rest_ns >= kLongestRowNs) row_of_rest(t, f);
    }
  }

  void row_of_rest(const ThreadSamples& t, Followed& f) {
    if (f.rest_ns > 0) add_wait({strobe_ticks(), t.location, 0, f.sleeps, f.rest_ns, 0});
    f.rest_ns = std::min<int64_t>(f.rest_ns, 0);
  }

  void add_wait(Row row) {
    const int64_t parts = std::clamp<int64_t>(row.period_ns / kPartNs, 1, kMostParts), whole = row.period_ns;
    for (int64_t i = 0; i < parts; i++) {
      row.period_ns = whole * (i + 1) / parts - whole * i / parts;
      rows_.push_back(row);
    }
  }

  // How long the waits took.
  int64_t read_notes(ThreadSamples& t, Followed& f) {
    int64_t waited = 0;
    uint64_t at = t.tail.load(std::memory_order_relaxed);
    const uint64_t head = t.head.load(std::memory_order_acquire);
    while (at != head) {
      uint64_t words[kNoteWords + kFrames];
      for (uint32_t i = 0; i < kNoteWords; i++) words[i] = t.words[at++ % kWords];
      Note note;
      memcpy(&note, words, sizeof note);
      const uint32_t frames = note.frames & ~kCutShort;
      for (uint32_t i = 0; i < frames; i++) words[kNoteWords + i] = t.words[at++ % kWords];
      Row row{note.ticks, t.location, 0, kWaits[note.wait].state, note.ns, 0};
      row.call_stack = call_stack(note, words + kNoteWords, frames);
      if (note.wait) {
        waited += note.ns;
        add_wait(row);
        continue;
      }
      row.period_ns = row.cpu_ns = note.ns - f.ran_ns;
      f.ran_ns = note.ns, f.call_stack = row.call_stack;
      rows_.push_back(row);
    }
    t.tail.store(at, std::memory_order_release);
    return waited;
  }

  uint32_t call_stack(const Note& note, const uint64_t* functions, uint32_t frames) {
    std::string key(reinterpret_cast<const char*>(functions), frames * sizeof *functions);
    key.append(reinterpret_cast<const char*>(&note.object), sizeof note.object);
    key += {char(note.wait), char(note.frames >> 31)};
    const auto [at, fresh] = texts_.try_emplace(key);
    if (!fresh) return at->second;
    const bool cut = note.frames & kCutShort;
    uint32_t from = frames;  // the outermost: what the system and we ourselves called before the program began
    if (!cut) {
      if (frames > 1 && !is_of_system(functions[frames - 1]) && is_of_system(functions[frames - 2])) from--;
      while (from > 1 && is_of_system(functions[from - 1])) from--;
    }
    std::string lines = cut ? "..." : "";
    for (uint32_t i = from; i-- > 0;)
      if (base_of(functions[i]) != own_base()) lines.append(lines.empty() ? "" : "\n").append(place_of(functions[i]));
    if (note.wait) {
      lines.append("\n").append(kWaits[note.wait].function);
      if (const std::string object = note.object ? place_of(note.object) : ""; object[0] == '/')
        lines.append("(").append(object).append(")");
    }
    return at->second = strobe_text(lines.c_str());
  }

  static void* own_base() { return base_of(reinterpret_cast<uintptr_t>(&start_collector)); }
  static bool is_of_system(uintptr_t address) {
    static void* const system = base_of(reinterpret_cast<uintptr_t>(next<void (*)(int)>("exit")));
    void* const base = base_of(address);
    return base && (base == system || base == own_base());
  }

  std::unordered_map<std::string, uint32_t> texts_;
  std::unordered_map<ThreadSamples*, Followed> followed_;
  std::vector<Row> rows_;
  uint32_t state_texts_[kStates] = {};
  pthread_t thread_{};
  std::atomic<uint32_t> wake_{0};
  std::atomic<bool> quit_{false};
};

Collector* collector = nullptr;

}  // namespace

bool start_collector() {
  collector = new Collector;
  return collector->start();
}

void stop_collector() { collector->stop(); }

}  // namespace strobe::threads
