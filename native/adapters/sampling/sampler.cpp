#include "adapters/sampling/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "adapters/sampling/native_stacks.h"
#include "adapters/sampling/python_stacks.h"
#include "adapters/sampling/thread_states.h"
#include "core/system/clock.h"
#include "core/system/descriptors.h"
#include "core/system/threads.h"

namespace strobe {

namespace {

constexpr int kLooks = 5;                                // at a call that may be of C code, before it counts as such
constexpr int kBlockedField = 32, kProcessorField = 39;  // of /proc/*/stat
constexpr int kMostUnseen = 4;
constexpr unsigned kRunsNs = 20000;          // what a thread may run between two looks that take its processor
constexpr uint64_t kMostBetweenLooks = 256;  // samples between two looks at the libraries that are loaded
constexpr size_t kMapsBytes = 1 << 20;
constexpr int64_t kNativeNs = 10000000;      // between two looks at what threads without Python do, at least ...
constexpr int64_t kNativeSamples = 3;        // ... and as long as so many samples
constexpr size_t kListEvery = 8;             // samples between two looks at the list of threads, or as many as threads
constexpr int kResting = 16;                 // looks in a row at a thread that did nothing
constexpr uint64_t kRestingEvery = 4;        // samples between two looks at such a thread
constexpr int64_t kWaitingRowNs = 50000000;  // a thread that does nothing gets a row as seldom as that

// A library that may compute for the program: of an installed package (MPI's does not), an extension module that is
// none of the standard library's, or the program's own, which ctypes calls.
bool is_of_package(std::string_view path) {
  const auto has = [&](std::string_view part) { return path.find(part) != path.npos; };
  if (!path.starts_with("/") || has("/strobe/") || has("/mpi4py/")) return false;
  if (has("/lib-dynload/")) return has("/_ctypes.");
  return has("-packages/") || has(".cpython-3") || has(".abi3.so") || (!has("/lib") && has(".so"));
}

// What has been accounted for of a thread.
struct Account {
  uint64_t id;
  int64_t cpu, since_ns;
};

struct Thread {
  uint64_t id = 0;
  clockid_t clock = 0;
  uint32_t location = 0;
  bool listed = true;
  State state = kWaiting;
  State sleeps = kWaiting;        // in what, when it was looked for
  int64_t cpu = 0, since_ns = 0;  // as of its last row
  int64_t last_cpu = -1;          // at the last look
  int64_t seen_cpu = -1, last_look_ns = 0;
  int unseen = 0;           // looks in a row at which it had run, and did not
  int resting = 0;          // looks in a row before which it had not run
  uint32_t call_stack = 0;  // text
  int32_t line = 0;
  PythonStack stack;
  KnownCodes known;
  bool imports = false;        // one of its code objects is a part of the interpreter's import ...
  size_t shown_from = 0;       // ... of which the outermost is the innermost that is shown
  uint32_t text_of_known = 0;  // the call stack of what is shown, without C functions; 0: not made yet
  bool answers = false;        // it has shown its C code: it does not block the signal for that
};

class Sampler {
 public:
  // `accounts`: of the sampler before, where this one goes on.
  Sampler(const frame_layout& layout, uintptr_t interpreter, int64_t period_ns, unsigned delay_ms,
          std::vector<Account> accounts)
      : layout_(layout),
        interpreter_(interpreter),
        period_ns_(period_ns),
        delay_ms_(delay_ms),
        accounts_(std::move(accounts)),
        stacks_(layout_, memory_) {}

  int start() {
    if (!memory_.open()) return errno;
    return start_own_thread(
        thread_, 256 << 10,
        [](void* self) -> void* {
          static_cast<Sampler*>(self)->run();
          return nullptr;
        },
        this);
  }

  std::vector<Account> stop() {
    quit_ = true;
    futex_wake(wake_);
    pthread_join(thread_, nullptr);
    wait_until_gone(thread_id_);
    std::vector<Account> accounts;
    for (const auto& [at, thread] : threads_) accounts.push_back({thread->id, thread->cpu, thread->since_ns});
    return accounts;
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "strobe-samples");
    prctl(PR_SET_TIMERSLACK, 1);
    thread_id_ = uint32_t(thread_id());
    strobe_hide_thread();
    if (sched_getaffinity(0, sizeof processors_, &processors_) != 0) CPU_ZERO(&processors_);
    for (size_t i = 0; i < kStates; i++) state_text_[i] = strobe_text(kStateNames[i]);
    if (const uint32_t seen = wake_.load(); delay_ms_ && !quit_) futex_wait(wake_, seen, delay_ms_ * 1000);
    uint64_t random = uint64_t(monotonic_ns()) | 1;
    int64_t next = monotonic_ns(), counted_ns = next, own_cpu = 0;
    for (uint64_t n = 0, list_at = 0; !quit_; n++) {
      const int64_t now = monotonic_ns();
      if (layout_.look) layout_.look();
      waited_ = false;
      if (n == list_at) {
        if (!list(now)) break;
        list_at = n + std::max(kListEvery, threads_.size());
      }
      for (auto at = threads_.begin(); at != threads_.end();) {
        if (at->second->listed && at->second->resting >= kResting && (n + at->second->id) % kRestingEvery) {
          ++at;
        } else if (look(at->first, *at->second, now)) {
          ++at;
        } else {
          strobe_location_over(at->second->id);
          at = threads_.erase(at);
        }
      }
      if (now - counted_native_ns_ >= std::max(kNativeNs, kNativeSamples * period_ns_)) count_native_threads();
      look_for_packages(n);
      if (now - counted_ns > 1000000000) {
        counted_ns = now;
        const int64_t cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        strobe_count("sampler_cpu_ns", uint64_t(cpu - own_cpu));
        own_cpu = cpu;
      }
      // Not quite regular, so that no rhythm of the program hides from it. What was missed is not made up for: each
      // sample stands for the time since the one before.
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      next += period_ns_ / 2 + int64_t(random % uint64_t(period_ns_));
      const int64_t after = monotonic_ns();
      if (next < after) next = after + period_ns_ / 2;
      const uint32_t seen = wake_.load();
      if (!quit_) futex_wait(wake_, seen, uint32_t((next - after) / 1000));
    }
    const int64_t now = monotonic_ns();
    for (auto& [at, thread] : threads_)
      if (thread->seen_cpu >= 0) row(*thread, now, thread->seen_cpu);
    strobe_count("sampler_cpu_ns", uint64_t(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - own_cpu));
  }

  // Whether packages with C code have been loaded: libraries come and are not unloaded. From the kernel: the linker's
  // own list is behind a lock, which a child forked meanwhile would never get.
  void look_for_packages(uint64_t n) {
    if (packages_ || n < next_look_) return;
    next_look_ = n + std::min<uint64_t>(std::max<uint64_t>(n, 1), kMostBetweenLooks);
    const std::string maps = read_parts("/proc/self/maps", kMapsBytes);
    std::string_view left(maps);
    while (!left.empty() && !packages_) {
      const std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(line.size() + 1, left.size()));
      if (const size_t path = line.find('/'); path != line.npos) packages_ = is_of_package(line.substr(path));
    }
  }

  // Whether threads that know no Python have computed since the last time, half of it or more. A thread that waits for
  // another one then mostly waits for them: for a pool of XLA, of a data frame's engine. The system counts the time of
  // a process by its clock's ticks, so that a few samples are one reading.
  void count_native_threads() {
    const int64_t now = monotonic_ns(), all = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    native_compute_ = all_cpu_ && 2 * (all - all_cpu_ - python_cpu_) > now - counted_native_ns_;
    all_cpu_ = all, python_cpu_ = 0, counted_native_ns_ = now;
  }

  State of_sleep(State sleeps) const {
    return native_compute_ && (sleeps == kLock || sleeps == kWaiting) ? kThreads : sleeps;
  }

  // Which threads there are. False: the program has closed our file.
  bool list(int64_t now) {
    if (!memory_.ours()) {
      strobe_count("sampling_stopped_file_closed", 1);
      return false;
    }
    const bool whole = stacks_.threads(interpreter_, found_);
    if (whole)
      for (auto& [at, thread] : threads_) thread->listed = false;
    // Oldest first: a new thread has the number of the one that made it until it begins.
    seen_ids_.clear();
    for (auto each = found_.rbegin(); each != found_.rend(); ++each) {
      const auto [at, id] = *each;
      if (!seen_ids_.insert(id).second) continue;
      auto& thread = threads_[at];
      if (thread && thread->id == id) {
        thread->listed = true;
        continue;
      }
      if (thread) strobe_location_over(thread->id);
      thread = std::make_unique<Thread>();
      thread->id = id;
      thread->clock = clock_of_thread(id);
      thread->location = strobe_location(id, name_of(id).c_str());
      thread->cpu = std::max<int64_t>(cpu_ns(thread->clock), 0);
      thread->since_ns = now;
      for (const Account& account : accounts_)
        if (account.id == id) thread->cpu = account.cpu, thread->since_ns = account.since_ns;
    }
    if (whole) accounts_.clear();
    return true;
  }

  State asleep(uint64_t id) const { return state_of_sleeper(id, layout_.gil, layout_.gil_bytes); }

  static int64_t field_of(uint64_t id, int number) {
    const std::string facts = small_file(id, "stat");
    const size_t named = facts.rfind(')');
    const char* at = named == facts.npos ? nullptr : facts.c_str() + named;
    for (int field = 2; at && field < number; field++) at = strchr(at + 1, ' ');
    return at ? atoll(at) : -1;
  }

  // Whoever samples a thread by taking its processor never sees it run: where all processors are busy, the system wakes
  // this thread mostly on the one that it slept on beside the program. From now on it takes any other one.
  void keep_off(uint64_t id) {
    if (CPU_COUNT(&processors_) < 2) return;
    const auto processor = int(field_of(id, kProcessorField));
    if (processor < 0 || processor == avoided_ || !CPU_ISSET(processor, &processors_)) return;
    cpu_set_t others = processors_;
    CPU_CLR(processor, &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0) avoided_ = processor;
  }

  bool look(uintptr_t at, Thread& t, int64_t now) {
    const int64_t cpu = cpu_ns(t.clock);
    if (cpu < 0 || !t.listed) {
      if (t.seen_cpu >= 0) row(t, now, t.seen_cpu);
      return false;
    }
    if (t.last_cpu >= 0) python_cpu_ += cpu - t.last_cpu;
    t.last_cpu = cpu;
    if (cpu == t.seen_cpu) {  // has done nothing since
      t.resting += t.resting < kResting;
      if (ran(t.state)) t.sleeps = asleep(t.id);
      const State state = of_sleep(t.sleeps);
      if (state != t.state || now - t.since_ns >= kWaitingRowNs) {
        t.state = state;
        row(t, now, t.cpu);
      }
      t.last_look_ns = now;
      return true;
    }
    if (t.last_look_ns > t.since_ns) row(t, t.last_look_ns, t.cpu);  // what it waited until then
    t.seen_cpu = cpu, t.resting = 0;
    const PythonFrame inner = t.stack.frames.empty() ? PythonFrame{} : t.stack.frames[0];
    const uintptr_t instruction = t.stack.instruction;
    if (!read(at, t, cpu)) {
      // Its stack changed three times meanwhile: that is what the interpreter does.
      strobe_count("samples_not_read", 1);
      t.call_stack = 0, t.line = 0, t.state = kPython;
    }
    if (t.stack.moved || cpu_ns(t.clock) > cpu) {  // it runs at this moment
      t.unseen = 0;
      row(t, now, cpu);
      return true;
    }
    // It ran since, and does not now: what it did then is not to be seen. Its CPU time counts for the next look that
    // sees it run. Where we take its processor whenever we look (a machine with a single one), it counts for where it
    // was stopped: in C code, if that is the very place where it was the last time.
    const State state = t.sleeps = asleep(t.id);
    if (state == kReady) keep_off(t.id);
    if ((state != kReady && state != kGil) || ++t.unseen <= kMostUnseen) {
      t.state = of_sleep(state);
      row(t, now, t.cpu);
      return true;
    }
    // Without a frame of Python there is nothing but C code.
    const bool bare = t.stack.frames.empty();
    bool same = bare || (t.stack.frames[0] == inner && t.stack.instruction == instruction);
    if (t.state == kNative && !same && state == kReady && !waited_) {
      waited_ = true;
      same = stays(t, cpu);
    }
    if (t.state == kNative && !same) t.state = kPython;
    row(t, now, cpu);
    return true;
  }

  // Whether a thread whose processor we take is at the same place when it has run a little more.
  bool stays(const Thread& t, int64_t cpu) {
    const timespec little{0, kRunsNs};
    for (int i = 0; i < 3; i++) {
      nanosleep(&little, nullptr);
      if (cpu_ns(t.clock) - cpu >= kRunsNs / 2) return stacks_.still_there(t.stack);
    }
    return false;
  }

  // Which functions of C code a thread is in. One that sleeps is left alone, and one at a time may wait for a
  // processor. `cpu`: of the look. Who went on as soon as it had a processor again was stopped beside its C code.
  uint32_t native_functions(Thread& t, int64_t cpu) {
    if (!native_ || t.state != kNative) return 0;
    const bool ran = cpu_ns(t.clock) > cpu;
    if (!ran && (asleep(t.id) != kReady || std::exchange(waited_, true))) return 0;
    if (!t.answers && field_of(t.id, kBlockedField) >> (SIGPROF - 1) & 1) return 0;
    const uint32_t n = native_->of(t.id, interpret_, functions_);
    t.answers = n > 0;
    if (t.stack.frames.empty() || stacks_.still_there(t.stack)) return n;
    if (!ran) t.state = kPython;
    return 0;
  }

  bool read(uintptr_t at, Thread& t, int64_t cpu) {
    if (!stacks_.read(interpreter_, at, t.stack)) return false;
    t.state = kNative;
    t.call_stack = 0, t.line = 0;
    if (t.stack.frames.empty()) {  // between Python's beginning and the thread's, or in C code that called PyEval_...
      t.known = {};
      look_at_codes(t);
      set_call_stack(t, native_functions(t, cpu));
      return true;
    }
    bool inside = !t.stack.moved;
    for (int i = 0; inside && i < kLooks; i++) inside = stacks_.still_there(t.stack);
    t.state = t.stack.collects ? kCollecting : inside ? kNative : kPython;
    const CodesRead codes_read = stacks_.codes(t.stack, t.known);
    if (codes_read != CodesRead::kAsBefore) look_at_codes(t);
    if (codes_read == CodesRead::kNot) return false;
    if (t.state == kNative && stacks_.is_own(t.stack, *t.known.codes[0], packages_)) t.state = kPython;
    const uint32_t functions = native_functions(t, cpu);
    t.line = t.imports ? 0 : stacks_.line(t.stack);
    set_call_stack(t, t.imports ? 0 : functions);
    return true;
  }

  // What runs because of an import counts as the import: its calls are not recorded either, and its stacks are many.
  void look_at_codes(Thread& t) {
    const auto& codes = t.known.codes;
    const auto import = std::find_if(codes.rbegin(), codes.rend(), [](const Code* code) { return code->imports; });
    t.imports = import != codes.rend();
    t.shown_from = t.imports ? size_t(codes.rend() - import) - 1 : 0;
    t.text_of_known = 0;
  }

  // Of what is shown of its code objects, and so many `functions_` of C code below them.
  void set_call_stack(Thread& t, uint32_t functions) {
    const bool python_only = functions == 0;
    if (python_only && t.text_of_known) {
      t.call_stack = t.text_of_known;
      return;
    }
    const std::span codes = std::span(t.known.codes).subspan(t.shown_from);
    if (codes.empty() && python_only) return;
    key_.clear();
    for (const Code* code : codes) key_.append(reinterpret_cast<const char*>(&code->number), 4);
    key_.append(reinterpret_cast<const char*>(functions_), functions * sizeof *functions_);
    key_.push_back(char(t.stack.cut));
    const auto [at_key, fresh] = texts_.try_emplace(key_);
    uint32_t& text = at_key->second;
    if (fresh) text_bytes_ += key_.size() + kBytesOfKey;
    if (!text) {
      std::string lines = t.stack.cut ? "..." : "";
      for (size_t i = codes.size(); i-- > 0;) lines += (lines.empty() ? "" : "\n") + codes[i]->label;
      for (char place[PATH_MAX]; functions-- > 0;) {
        native_->place(functions_[functions], place, sizeof place);
        lines.append(lines.empty() ? "" : "\n").append(place);
      }
      text = strobe_text(lines.c_str());
    }
    t.call_stack = text;
    if (python_only) t.text_of_known = text;
    if (text_bytes_ > kMostTextBytes) texts_.clear(), text_bytes_ = 0;
  }

  void row(Thread& t, int64_t now, int64_t cpu) {
    const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(t.location, t.call_stack),
                                               STROBE_TWO(state_text_[t.state], STROBE_NOTHING_32),
                                               STROBE_NOTHING,
                                               STROBE_TWO(t.line ? t.line : STROBE_NOTHING_32, 0),
                                               now - t.since_ns,
                                               cpu - t.cpu};
    if (now > t.since_ns) strobe_row(STROBE_ROW_SAMPLE, values);
    t.since_ns = now, t.cpu = cpu;
  }

  static constexpr size_t kMostTextBytes = 8u << 20, kBytesOfKey = 64;
  const frame_layout layout_;
  const uintptr_t interpreter_;
  const int64_t period_ns_;
  const unsigned delay_ms_;
  std::vector<Account> accounts_;
  ForeignMemory memory_;
  PythonStacks stacks_;
  std::map<uintptr_t, std::unique_ptr<Thread>> threads_;
  std::vector<std::pair<uintptr_t, uint64_t>> found_;
  std::set<uint64_t> seen_ids_;
  cpu_set_t processors_{};                                        // that this thread may take
  int avoided_ = -1;                                              // the one of them that it keeps off
  int64_t all_cpu_ = 0, python_cpu_ = 0, counted_native_ns_ = 0;  // since then: of all threads but this, of Python's
  bool native_compute_ = false;
  uint64_t next_look_ = 0;  // at libraries, in samples
  bool packages_ = false;
  bool waited_ = false;                              // in this sample, for a thread to run a little
  std::unordered_map<std::string, uint32_t> texts_;  // by numbers of code objects
  std::string key_;
  const NativeStacks* const native_ = getenv("STROBE_THREADS_IN_PYTHON")
                                          ? static_cast<NativeStacks*>(dlsym(RTLD_DEFAULT, "strobe_native_stacks"))
                                          : nullptr;
  const uintptr_t interpret_ = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"));
  uintptr_t functions_[kNativeFrames];
  size_t text_bytes_ = 0;
  uint32_t state_text_[kStates] = {};
  pthread_t thread_{};
  std::atomic<uint32_t> thread_id_{0};
  std::atomic<uint32_t> wake_{0};
  std::atomic<bool> quit_{false};
};

std::mutex running_mutex;
Sampler* running = nullptr;
std::vector<Account> interrupted;  // what the sampler left that a fork interrupted
pthread_once_t once = PTHREAD_ONCE_INIT;

}  // namespace

}  // namespace strobe

extern "C" {

int strobe_sampler_start(const frame_layout* layout, void* interpreter, double samples_per_s, unsigned delay_ms) {
  using namespace strobe;
  // The thread is not there in a forked child: what it held is left as it is.
  pthread_once(&once, [] {
    pthread_atfork([] { running_mutex.lock(); }, [] { running_mutex.unlock(); },
                   [] { running = nullptr, interrupted.clear(), running_mutex.unlock(); });
  });
  std::lock_guard lock(running_mutex);
  if (running) return 0;
  auto sampler = std::make_unique<Sampler>(*layout, uintptr_t(interpreter), int64_t(1e9 / samples_per_s), delay_ms,
                                           std::exchange(interrupted, {}));
  if (const int error = sampler->start()) return error;
  running = sampler.release();
  return 0;
}

void strobe_sampler_stop(int goes_on) {
  using namespace strobe;
  std::lock_guard lock(running_mutex);
  std::vector<Account> accounts;
  if (running) accounts = running->stop();
  delete running;
  running = nullptr;
  if (!goes_on)
    interrupted.clear();
  else if (!accounts.empty())
    interrupted = std::move(accounts);
}
}
