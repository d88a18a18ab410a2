// A timer of each thread's CPU time sends it SIGPROF, so that a thread that sleeps is left alone. The handler unwinds
// by the tables of the compiler with the system's libgcc, which takes no lock where glibc has _dl_find_object.
#include "adapters/threads/thread_samples.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "adapters/sampling/native_stacks.h"
#include "core/system/clock.h"
#include "core/system/threads.h"
#include "include/strobe.h"

namespace strobe::threads {

int (*find_object)(void*, FoundObject*) = nullptr;
void* (*function_around)(void*) = nullptr;
thread_local ThreadSamples* mine __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local volatile uint32_t interruptions __attribute__((tls_model("initial-exec"))) = 0;
std::atomic<bool> frames_registered{false};
bool (*inside_mpi)() = nullptr;

namespace {

decltype(&_Unwind_Backtrace) unwind;
decltype(&_Unwind_GetIP) address_of;
decltype(&_Unwind_GetRegionStart) function_of;
decltype(&_Unwind_GetCFA) frame_of;

std::mutex mutex;                     // of the two below
std::vector<ThreadSamples*>& all() {  // begin() may come before the initialisers of this file
  static auto* threads = new std::vector<ThreadSamples*>;
  return *threads;
}
std::atomic<bool> sampling{false};
struct sigaction replaced;
pthread_key_t key;

struct Walk {
  Stack& stack;
  const uintptr_t from;        // an address in the innermost function
  const ThreadSamples* waits;  // nullptr: a sample
  const uintptr_t until;       // a function that ends the stack; 0: to its end
  bool found = false, cut = false;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Stack& stack = walk.stack;
  const uintptr_t address = address_of(context);
  if (!address) return _URC_END_OF_STACK;
  if (!walk.found && address != walk.from) return _URC_NO_REASON;  // our own frames
  walk.found = true;
  walk.cut = stack.frames == kFrames;
  if (walk.cut) return _URC_END_OF_STACK;
  const uintptr_t begin = function_of(context), function = walk.waits ? address - 1 : begin;
  if (begin && begin == walk.until) return _URC_END_OF_STACK;
  const auto* place = reinterpret_cast<const uintptr_t*>(frame_of(context)) - 1;  // on x86
  const auto at = reinterpret_cast<uintptr_t>(place);
  const bool known = walk.waits && at >= walk.waits->stack_begin && at < walk.waits->stack_end && *place == address;
  stack.places[stack.frames] = known ? place : nullptr;
  stack.addresses[stack.frames++] = function ? function : address;
  return _URC_NO_REASON;
}

void take(Stack& stack, uintptr_t from, const ThreadSamples* waits, uintptr_t until = 0) {
  Walk walk{stack, from, waits, until};
  stack.frames = 0;
  if (!frames_registered) unwind(visit, &walk);
  if (!stack.frames) stack.places[0] = nullptr, stack.addresses[stack.frames++] = from;
  if (walk.cut) stack.frames |= kCutShort;
}

// Whether the thread is where the stack is of: every return address lies where it lay. That is faster than to unwind.
bool is_here(const Stack& stack) {
  for (uint32_t i = 1; i < (stack.frames & ~kCutShort); i++)
    if (stack.places[i] && *stack.places[i] != stack.addresses[i] + 1) return false;
  return true;
}

// False: there is no room.
bool put(ThreadSamples& t, const Stack& stack, const Note& note) {
  const uint64_t head = t.head.load(std::memory_order_relaxed), frames = stack.frames & ~kCutShort;
  if (head + kNoteWords + frames - t.tail.load(std::memory_order_acquire) > kWords) return false;
  uint64_t words[kNoteWords];
  memcpy(words, &note, sizeof note);
  for (uint32_t i = 0; i < kNoteWords; i++) t.words[(head + i) % kWords] = words[i];
  for (uint32_t i = 0; i < frames; i++) t.words[(head + kNoteWords + i) % kWords] = stack.addresses[i];
  t.head.store(head + kNoteWords + frames, std::memory_order_release);
  return true;
}

auto writer(ThreadSamples& t, const KindOfWait& kind) {
  return [&](const WaitSum& sum) { return put(t, kind.stack, {kind.key, kind.stack.frames, strobe_ticks(), 0, sum}); };
}

// What a thread writes down while this lasts is whole for the handler of a signal.
class Busy {
 public:
  explicit Busy(ThreadSamples& t) : t_(t) { set(true); }
  ~Busy() { set(false); }

 private:
  void set(bool busy) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_.busy.store(busy, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ThreadSamples& t_;
};

uintptr_t interrupted_at(void* context) {
  const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return uintptr_t(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return uintptr_t(machine.pc);
#endif
}

// What another thread asks one for: its call stack. One at a time.
constexpr uint64_t kNobody = 0, kAsked = 1, kAnswers = 2, kAnswered = 3;  // and 4 times the thread
std::atomic<uint64_t> asked{kNobody};
uintptr_t answer_until;
Stack answer;

void give_answer(uintptr_t from) {
  const uint64_t me = 4 * thread_id();
  uint64_t expected = me + kAsked;
  if (!asked.compare_exchange_strong(expected, me + kAnswers)) return;  // it came too late
  take(answer, from, nullptr, answer_until);
  asked = me + kAnswered;  // and nothing is woken: that would cost more than all else here
}

void on_timer(int, siginfo_t* info, void* context) {
  if (info->si_code == SI_QUEUE && info->si_ptr == &asked) {
    const int error = errno;
    interruptions = interruptions + 1;
    give_answer(interrupted_at(context));
    errno = error;
  }
  ThreadSamples* t = mine;
  if (!t || info->si_code != SI_TIMER) return;
  interruptions = interruptions + 1;
  if (t->busy.load(std::memory_order_relaxed)) return;  // its time is part of the next sample
  const int error = errno;
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  Stack stack;
  take(stack, interrupted_at(context), nullptr);
  put(*t, stack, {{}, stack.frames, strobe_ticks(), int64_t(cpu.tv_sec) * 1000000000 + cpu.tv_nsec, {}});
  errno = error;
}

void end_thread(void* samples) {
  auto* t = static_cast<ThreadSamples*>(samples);
  mine = nullptr;
  flush_waits(*t);
  t->ended = moment_of(t->id);
  char name[sizeof t->name] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (strcmp(name, t->name) != 0) strobe_name_thread_as_system(name);
  strobe_location_over(t->id);
  std::lock_guard lock(mutex);
  if (std::exchange(t->armed, false)) timer_delete(t->timer);
  t->over = true;
}

// Not our own definition.
int real_sigaction(const struct sigaction* to, struct sigaction* from) {
  STROBE_FOUND(real, next<decltype(&sigaction)>("sigaction"));
  return real(SIGPROF, to, from);
}

void arm(ThreadSamples& t, int64_t period_ns) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = pid_t(t.id);
  t.armed = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &t.timer) == 0;
  const timespec period{time_t(period_ns / 1000000000), long(period_ns % 1000000000)};
  const itimerspec times{period, period};
  if (t.armed) timer_settime(t.timer, 0, &times, nullptr);
}

void take_signal() {
  // Only where nobody uses it: not if the program was started with it ignored, or a library has taken it.
  struct sigaction ours{}, now;
  ours.sa_sigaction = on_timer;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&ours.sa_mask);
  if (real_sigaction(&ours, &now) != 0) return;
  sampling = now.sa_sigaction == on_timer || now.sa_handler == SIG_DFL;  // it was the parent's, or nobody's
  if (!sampling) real_sigaction(&now, nullptr);
  if (now.sa_sigaction != on_timer) replaced = now;
}

constexpr int64_t kPatienceNs = 20000000;  // a thread that is ready waits so long for a busy processor
constexpr timespec kBetweenLooks{0, 20000};
std::atomic<bool> in_child{false};

uint32_t stack_of(uint64_t thread, uintptr_t until, uintptr_t functions[kNativeFrames]) {
  std::lock_guard lock(mutex);
  static const bool prepared = prepare() && pthread_atfork(nullptr, nullptr, forked) == 0;
  if (!prepared) return 0;
  if (in_child.exchange(false)) take_signal();
  if (!has_signal() || asked % 4 == kAnswers) return 0;
  answer_until = until;
  asked = 4 * thread + kAsked;
  siginfo_t info{};
  info.si_signo = SIGPROF;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_ptr = &asked;
  bool waits = syscall(SYS_rt_tgsigqueueinfo, getpid(), pid_t(thread), SIGPROF, &info) == 0;
  for (const int64_t begin = clock_ns(CLOCK_MONOTONIC); waits && asked % 4 != kAnswered;) {
    nanosleep(&kBetweenLooks, nullptr);
    waits = clock_ns(CLOCK_MONOTONIC) - begin < kPatienceNs;
  }
  uint64_t expected = 4 * thread + kAsked;
  if (asked.compare_exchange_strong(expected, kNobody) || expected % 4 == kAnswers) return 0;
  uint32_t frames = answer.frames & ~kCutShort;
  while (frames && base_of(answer.addresses[frames - 1]) == base_of(until)) frames--;
  std::copy_n(answer.addresses, frames, functions);
  return frames;
}

void write_place(uintptr_t function, char* text, size_t size) {
  snprintf(text, size, "%s", place_of(function).c_str());
}

}  // namespace

std::string place_of(uintptr_t address) {
  FoundObject found{};
  if (find_object(reinterpret_cast<void*>(address), &found) != 0) return "<unknown code>";
  char path[PATH_MAX], offset[32];
  const char* name = found.map->l_name;
  if (!*name) {
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0, name = path;
  } else if (*name != '/' && realpath(name, path)) {
    name = path;
  }
  snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(address - found.map->l_addr));
  return name + std::string(offset);
}

void add_wait(ThreadSamples& t, const Waited& of, uint64_t ticks, int64_t begin_ns, int64_t ns) {
  if (t.busy) return;  // a handler of the program's waits, and has interrupted us here
  const Busy busy(t);
  const uint64_t hash = of.object ^ of.from * 31 ^ of.frame * 17 ^ uint64_t(of.cause) << 32 ^ of.wait;
  KindOfWait& kind = t.kinds[hash * 0x9E3779B97F4A7C15ull >> 56];
  if (kind.key != of || !is_here(kind.stack)) {
    kind.sum.flush(writer(t, kind));
    t.lost_waits += std::exchange(kind.sum.waits, 0);
    kind.key = of;
    take(kind.stack, of.from, &t);
  }
  kind.sum.add(ticks, begin_ns, ns, writer(t, kind));
}

void flush_waits(ThreadSamples& t) {
  const Busy busy(t);
  for (KindOfWait& kind : t.kinds) kind.sum.flush(writer(t, kind));
}

uint32_t thread_of(pthread_t thread, bool over) {
  std::lock_guard lock(mutex);
  const auto is = [&](const ThreadSamples* t) { return t->self == thread && t->over == over; };
  const auto newest = std::find_if(all().rbegin(), all().rend(), is);
  return newest == all().rend() ? 0 : uint32_t((*newest)->id);
}

Moment moment_of(uint64_t thread) {
  const Moment now{clock_ns(CLOCK_MONOTONIC), cpu_ns(clock_of_thread(thread)), 0};
  return {now.ns, now.cpu_ns, delay_ns(thread)};
}

bool prepare() {
  find_object = reinterpret_cast<decltype(find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  void* library = find_object ? dlopen("libgcc_s.so.1", RTLD_NOW) : nullptr;
  if (!library) return false;
  unwind = reinterpret_cast<decltype(unwind)>(dlsym(library, "_Unwind_Backtrace"));
  function_around = reinterpret_cast<decltype(function_around)>(dlsym(library, "_Unwind_FindEnclosingFunction"));
  frame_of = reinterpret_cast<decltype(frame_of)>(dlsym(library, "_Unwind_GetCFA"));
  address_of = reinterpret_cast<decltype(address_of)>(dlsym(library, "_Unwind_GetIP"));
  function_of = reinterpret_cast<decltype(function_of)>(dlsym(library, "_Unwind_GetRegionStart"));
  if (!unwind || !address_of || !function_of || !frame_of || !function_around) return false;
  if (pthread_key_create(&key, end_thread)) return false;
  Stack stack;
  take(stack, 0, nullptr);  // what it does once is not for a handler
  take_signal();
  return true;
}

void begin_thread(int64_t period_ns, const Creation& created) {
  void* memory = mmap(nullptr, sizeof(ThreadSamples), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* t = static_cast<ThreadSamples*>(memory);
  t->id = thread_id();
  t->created = created;
  t->began = moment_of(t->id);
  pthread_getname_np(pthread_self(), t->name, sizeof t->name);
  t->location = strobe_location(t->id, t->name);
  t->self = pthread_self();
  pthread_attr_t attributes;
  void* stack;
  size_t bytes;
  if (pthread_getattr_np(t->self, &attributes) == 0) {
    if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0)
      t->stack_begin = reinterpret_cast<uintptr_t>(stack), t->stack_end = t->stack_begin + bytes;
    pthread_attr_destroy(&attributes);
  }
  pthread_setspecific(key, t);
  mine = t;
  std::lock_guard lock(mutex);
  all().push_back(t);
  if (sampling) arm(*t, period_ns);
}

void give_way() {
  if (!sampling.exchange(false)) return;  // first: in a forked child nobody gives the lock back
  std::lock_guard lock(mutex);
  for (ThreadSamples* t : all())
    if (std::exchange(t->armed, false)) timer_delete(t->timer);
  struct sigaction now;
  if (real_sigaction(nullptr, &now) == 0 && now.sa_sigaction == on_timer) {
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;  // discards signals of ours that are still on their way
    real_sigaction(&ignored, nullptr);
    real_sigaction(&replaced, nullptr);
  }
}

bool has_signal() {
  struct sigaction now;
  return sampling && real_sigaction(nullptr, &now) == 0 && now.sa_sigaction == on_timer;
}

struct sigaction* before() { return sampling ? &replaced : nullptr; }

void forked() { sampling = false, in_child = true, mine = nullptr, asked = kNobody; }

std::vector<ThreadSamples*> all_threads() {
  std::lock_guard lock(mutex);
  return all();
}

void forget(ThreadSamples* t) {
  std::lock_guard lock(mutex);
  std::erase(all(), t);
  munmap(t, sizeof *t);
}

}  // namespace strobe::threads

const strobe::NativeStacks strobe::strobe_native_stacks = {strobe::threads::stack_of, strobe::threads::write_place};
