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

// How often threads are looked at: as often as the clocks of common kernels tick, but for 1 % of a core at most.
constexpr int64_t kRoundUs = 10000, kLongestRoundUs = 50000, kRoundPerCost = 100;
constexpr int64_t kLongestRowNs = 1000000000;            // of a thread that sleeps
constexpr int64_t kPartNs = 10000000, kMostParts = 100;  // of a wait, which counts as so many samples

struct Followed {
  uint32_t call_stack = 0;              // of its last sample
  Moment seen{};                        // at the last look
  int64_t ran_ns = 0;                   // CPU time that has rows
  int64_t delayed_ns = 0, rest_ns = 0;  // has no row yet: it waited for a processor; it waited for something else,
  State sleeps = kReady;                // which is this one; kReady: not known
  std::string child;                    // a line for the child process beside which it slept; "": none
  strobe_stream* waits = nullptr;       // a location for long ones
};

struct Row {
  uint64_t ticks;
  uint32_t location, call_stack;
  State state;
  int64_t period_ns, cpu_ns;
};

// Of the children of a thread and theirs, the program that has computed longest: a shell starts what was asked of it.
struct Child {
  unsigned long ticks = 0;
  std::string name;
};
void find_busiest(const std::string& task, Child& busiest, int depth = 0) {
  char text[4096], path[64];
  if (depth > 4 || read_small((task + "/children").c_str(), text, sizeof text) <= 0) return;
  for (char *rest = nullptr, *pid = strtok_r(text, " ", &rest); pid; pid = strtok_r(nullptr, " ", &rest)) {
    char facts[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (read_small(path, facts, sizeof facts) <= 0) continue;
    const char *begin = strchr(facts, '('), *end = strrchr(facts, ')');  // proc_pid_stat(5): fields 2, 14 and 15
    unsigned long user = 0, system = 0;
    if (!begin || !end || sscanf(end, ") %*c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %lu %lu", &user, &system) != 2) continue;
    if (busiest.name.empty() || user + system >= busiest.ticks) busiest = {user + system, {begin + 1, end}};
    snprintf(path, sizeof path, "/proc/%s/task/%s", pid, pid);
    find_busiest(path, busiest, depth + 1);
  }
}

// Of a call stack: as samples have it, by function; and as waits have it, by call, 0 if it is not the program that
// waits.
struct Texts {
  uint32_t functions, calls, region;
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
    for (size_t i = 0; i < std::size(kWaits); i++) wait_texts_[i] = strobe_text(kWaits[i].wait_state);
    for (int64_t cost_us = 0; !quit_;) {
      const uint32_t seen = wake_.load();
      if (!quit_) futex_wait(wake_, seen, uint32_t(std::clamp(kRoundPerCost * cost_us, kRoundUs, kLongestRoundUs)));
      if (before() && !has_signal()) give_way();
      const int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      collect(quit_);
      cost_us = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1000;
    }
    strobe_count("sampler_cpu_ns", uint64_t(clock_ns(CLOCK_THREAD_CPUTIME_ID)));
  }

  void collect(bool last) {
    const std::vector<ThreadSamples*> threads = all_threads();
    for (const ThreadSamples* t : threads) locations_[uint32_t(t->id)] = t->location;
    for (ThreadSamples* t : threads) {
      const bool over = t->over;
      if (const uint64_t lost = t->lost_waits.exchange(0)) strobe_count("thread_waits_lost", lost);
      follow(*t, over, last);
      if (over || last) add_creation(*t, over);
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
    f.rest_ns -= read_notes(t, f, last && !over);
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
      if (in_wait == kChild) note_child(t, f);
    } else if (ran) {
      if (f.sleeps == kReady && f.rest_ns > 0) f.sleeps = state_of_sleeper(t.id, 0, 0);
      if (f.sleeps != kReady) row_of_rest(t, f);
      f.sleeps = kReady;
    } else {
      if (f.sleeps == kReady) f.sleeps = state_of_sleeper(t.id, 0, 0), f.child.clear();
      if (f.sleeps == kWaiting || f.sleeps == kSocket) note_child(t, f);
      if (f.sleeps != kReady && f.rest_ns >= kLongestRowNs) row_of_rest(t, f);
    }
  }

  static void note_child(const ThreadSamples& t, Followed& f) {
    Child busiest;
    find_busiest("/proc/self/task/" + std::to_string(t.id), busiest);
    if (!busiest.name.empty()) f.child = "<child process " + busiest.name + ">";
  }

  void row_of_rest(const ThreadSamples& t, Followed& f) {
    const uint32_t stack = f.sleeps == kWaiting || f.sleeps == kSocket ? strobe_text(f.child.c_str()) : 0;
    if (f.rest_ns > 0) add_sampled_wait({strobe_ticks(), t.location, stack, f.sleeps, f.rest_ns, 0});
    f.rest_ns = std::min<int64_t>(f.rest_ns, 0);
  }

  void add_sampled_wait(Row row) {
    const int64_t parts = std::clamp<int64_t>(row.period_ns / kPartNs, 1, kMostParts), whole = row.period_ns;
    for (int64_t i = 0; i < parts; i++) {
      row.period_ns = whole * (i + 1) / parts - whole * i / parts;
      rows_.push_back(row);
    }
  }

  // How long the waits took. `last`: what the thread has not written down by now it never will.
  int64_t read_notes(ThreadSamples& t, Followed& f, bool last) {
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
      const Texts texts = texts_of(note.of, words + kNoteWords, frames, note.frames & kCutShort, f.child);
      if (note.of.wait) {
        waited += note.sum.wait_ns;
        add_sampled_wait({note.ticks, t.location, texts.functions, kWaits[note.of.wait].state, note.sum.wait_ns, 0});
        add_wait(t, f, texts, note.of, note.sum);
        continue;
      }
      rows_.push_back(
          {note.ticks, t.location, texts.functions, kNative, note.cpu_ns - f.ran_ns, note.cpu_ns - f.ran_ns});
      f.ran_ns = note.cpu_ns, f.call_stack = texts.functions;
    }
    t.tail.store(at, std::memory_order_release);
    for (const KindOfWait& kind : t.kinds) {
      if (!last || !kind.sum.waits) continue;
      const uint32_t frames = kind.stack.frames & ~kCutShort;
      std::vector<uint64_t> addresses(kind.stack.addresses, kind.stack.addresses + frames);
      add_wait(t, f, texts_of(kind.key, addresses.data(), frames, kind.stack.frames & kCutShort, f.child), kind.key,
               kind.sum);
    }
    return waited;
  }

  void add_wait(const ThreadSamples& t, Followed& f, const Texts& texts, const Waited& of, const WaitSum& sum) {
    if (!texts.calls || !*kWaits[of.wait].wait_state) return;
    const auto cause = locations_.find(of.cause);
    const int64_t values[STROBE_ROW_VALUES] = {
        STROBE_TWO(t.location, texts.calls),
        STROBE_TWO(wait_texts_[of.wait], cause == locations_.end() ? uint32_t(STROBE_NOTHING_32) : cause->second),
        STROBE_TWO(sum.waits, 0), sum.wait_ns, sum.max_ns};
    strobe_row_at(STROBE_ROW_THREAD_WAIT, sum.ticks, values);
    if (sum.max_ns < kLongWaitNs) return;
    if (!f.waits) f.waits = strobe_task_open((name_of(t.id) + " waits").c_str(), t.id);
    const strobe_stream_span span{texts.region, 0, sum.begin_ns, sum.begin_ns + sum.wait_ns, sum.begin_ns, {}};
    strobe_stream_tell(f.waits, &span);
  }

  void add_creation(const ThreadSamples& t, bool over) {
    const auto creator = locations_.find(t.created.creator);
    if (creator == locations_.end() || is_of_runtime(t.created.function)) return;
    const uint32_t runs = strobe_text(std::string("@").append(place_of(t.created.function)).c_str());
    const int64_t values[STROBE_ROW_VALUES] = {
        STROBE_TWO(creator->second, runs), STROBE_TWO(strobe_text("thread_create"), t.location), STROBE_TWO(1, 0),
        t.began.ns - t.created.ns, over ? t.ended.ns - t.created.ns : STROBE_NOTHING};
    strobe_row_at(STROBE_ROW_THREAD_WAIT, t.created.ticks, values);
  }

  static uint32_t region_of(const Waited& of, uintptr_t caller) {
    const std::string place = place_of(caller), site = place.substr(place.rfind('/') + 1);
    strobe_region_info info{};
    info.name = kWaits[of.wait].function, info.file = site.c_str();
    info.paradigm = STROBE_PTHREAD, info.role = STROBE_ROLE_WAIT;
    const size_t plus = place.rfind('+');
    if (plus != std::string::npos)
      strobe_note_call_site(info.file, place.substr(0, plus).c_str(), strtoull(&place[plus + 1], nullptr, 16));
    return strobe_region(&info);
  }

  Texts texts_of(const Waited& of, uint64_t* addresses, uint32_t frames, bool cut, const std::string& child) {
    std::string key(reinterpret_cast<const char*>(addresses), frames * sizeof *addresses);
    key.append(reinterpret_cast<const char*>(&of.object), sizeof of.object);
    key += {char(of.wait), char(cut)};
    if (of.wait == kChild) key += child;
    const auto [at, fresh] = texts_.try_emplace(key);
    if (!fresh) return at->second;
    if (of.wait) {
      if (!is_of_runtime(addresses[0]))
        at->second.calls = call_stack(of, addresses, frames, cut, "@"), at->second.region = region_of(of, addresses[0]);
      for (uint32_t i = 0; i < frames; i++)
        if (const auto begin = uintptr_t(function_around(reinterpret_cast<void*>(addresses[i])))) addresses[i] = begin;
    }
    at->second.functions = call_stack(of, addresses, frames, cut, "", of.wait == kChild ? child : "");
    return at->second;
  }

  uint32_t call_stack(const Waited& of, const uint64_t* functions, uint32_t frames, bool cut, const char* mark,
                      const std::string& child = "") {
    uint32_t from = frames;  // the outermost: what the system and we ourselves called before the program began
    if (!cut) {
      if (frames > 1 && !is_of_system(functions[frames - 1]) && is_of_system(functions[frames - 2])) from--;
      while (from > 1 && is_of_system(functions[from - 1])) from--;
    }
    std::string lines = cut ? "..." : "";
    for (uint32_t i = from; i-- > 0;)
      if (base_of(functions[i]) != own_base())
        lines.append(lines.empty() ? "" : "\n").append(mark).append(place_of(functions[i]));
    if (of.wait) {
      lines.append("\n").append(kWaits[of.wait].function);
      if (const std::string object = of.object ? place_of(of.object) : ""; object[0] == '/')
        lines.append("(").append(object).append(")");
      if (!child.empty()) lines.append("\n").append(child);
    }
    return strobe_text(lines.c_str());
  }

  // Of us, or of OpenMP, whose waits are known from itself.
  static bool is_of_runtime(uintptr_t address) {
    const std::string place = place_of(address);
    return place.find("/libstrobe") != std::string::npos || place.find("/libiomp") != std::string::npos ||
           place.find("/libomp") != std::string::npos || place.find("/libgomp") != std::string::npos;
  }

  static void* own_base() { return base_of(reinterpret_cast<uintptr_t>(&start_collector)); }
  static bool is_of_system(uintptr_t address) {
    static void* const system = base_of(reinterpret_cast<uintptr_t>(next<void (*)(int)>("exit")));
    void* const base = base_of(address);
    return base && (base == system || base == own_base());
  }

  std::unordered_map<std::string, Texts> texts_;
  std::unordered_map<uint32_t, uint32_t> locations_;  // of threads, by their number in the system
  std::unordered_map<ThreadSamples*, Followed> followed_;
  std::vector<Row> rows_;
  uint32_t state_texts_[kStates] = {}, wait_texts_[std::size(kWaits)] = {};
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
