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
#include <new>
#include <utility>

#include "adapters/sampling/native_stacks.h"
#include "core/system/clock.h"
#include "core/system/threads.h"
#include "include/strobe.h"

namespace strobe::threads {

int (*find_object)(void*, FoundObject*) = nullptr;
thread_local ThreadSamples* mine __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local volatile uint32_t interruptions __attribute__((tls_model("initial-exec"))) = 0;
std::atomic<bool> frames_registered{false};

namespace {

decltype(&_Unwind_Backtrace) unwind;
decltype(&_Unwind_GetIP) address_of;
decltype(&_Unwind_GetRegionStart) function_of;

std::mutex mutex;                     // of the two below
std::vector<ThreadSamples*>& all() {  // begin() may come before the initialisers of this file
  static auto* threads = new std::vector<ThreadSamples*>;
  return *threads;
}
std::atomic<bool> sampling{false};
struct sigaction replaced;
pthread_key_t key;

struct Stack {
  explicit Stack(uintptr_t address, uintptr_t outer = 0) : from(address), until(outer) {}
  const uintptr_t from, until;  // the innermost address, and a function that ends the stack; 0: to its end
  uint32_t frames = 0;
  bool found = false, cut = false;
  uintptr_t functions[kFrames];
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& stack = *static_cast<Stack*>(argument);
  const uintptr_t address = address_of(context);
  if (!address) return _URC_END_OF_STACK;
  if (!stack.found && address != stack.from) return _URC_NO_REASON;  // our own frames
  stack.found = true;
  stack.cut = stack.frames == kFrames;
  if (stack.cut) return _URC_END_OF_STACK;
  const uintptr_t function = function_of(context);
  if (function && function == stack.until) return _URC_END_OF_STACK;
  stack.functions[stack.frames++] = function ? function : address;
  return _URC_NO_REASON;
}

void take(Stack& stack) {
  if (!frames_registered) unwind(visit, &stack);
  if (!stack.frames) stack.functions[stack.frames++] = stack.from;
}

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
Stack answer(0);

void give_answer(uintptr_t from) {
  const uint64_t me = 4 * thread_id();
  uint64_t expected = me + kAsked;
  if (!asked.compare_exchange_strong(expected, me + kAnswers)) return;  // it came too late
  new (&answer) Stack(from, answer_until);
  take(answer);
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
  note(*t, kRuns, int64_t(cpu.tv_sec) * 1000000000 + cpu.tv_nsec, 0, interrupted_at(context));
  errno = error;
}

void end_thread(void* samples) {
  auto* t = static_cast<ThreadSamples*>(samples);
  mine = nullptr;
  t->ended = moment_of(t->id);
  char name[sizeof t->name] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (strcmp(name, t->name) != 0) strobe_name_thread(name);
  strobe_location_over(t->id);
  std::lock_guard lock(mutex);
  if (std::exchange(t->armed, false)) timer_delete(t->timer);
  t->over = true;
}

// Not our own definition.
int real_sigaction(const struct sigaction* to, struct sigaction* from) {
  static const auto real = next<decltype(&sigaction)>("sigaction");
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
  uint32_t frames = answer.frames;
  while (frames && base_of(answer.functions[frames - 1]) == base_of(until)) frames--;
  std::copy_n(answer.functions, frames, functions);
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

void note(ThreadSamples& t, Wait wait, int64_t ns, uintptr_t object, uintptr_t from) {
  t.busy.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Stack stack(from);
  take(stack);
  const uint64_t head = t.head.load(std::memory_order_relaxed), words = kNoteWords + stack.frames;
  if (head + words - t.tail.load(std::memory_order_acquire) <= kWords) {
    const Note made{stack.frames | (stack.cut ? kCutShort : 0), wait, strobe_ticks(), ns, object};
    uint64_t head_words[kNoteWords];
    memcpy(head_words, &made, sizeof made);
    for (uint32_t i = 0; i < kNoteWords; i++) t.words[(head + i) % kWords] = head_words[i];
    for (uint32_t i = 0; i < stack.frames; i++) t.words[(head + kNoteWords + i) % kWords] = stack.functions[i];
    t.head.store(head + words, std::memory_order_release);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t.busy.store(false, std::memory_order_relaxed);
}

Moment moment_of(uint64_t thread) {
  Moment now{clock_ns(CLOCK_MONOTONIC), cpu_ns(clock_of_thread(thread)), 0};
  now.delay_ns = atoll(strchr((small_file(thread, "schedstat") + " 0").c_str(), ' '));
  return now;
}

bool prepare() {
  find_object = reinterpret_cast<decltype(find_object)>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  void* library = find_object ? dlopen("libgcc_s.so.1", RTLD_NOW) : nullptr;
  if (!library) return false;
  unwind = reinterpret_cast<decltype(unwind)>(dlsym(library, "_Unwind_Backtrace"));
  address_of = reinterpret_cast<decltype(address_of)>(dlsym(library, "_Unwind_GetIP"));
  function_of = reinterpret_cast<decltype(function_of)>(dlsym(library, "_Unwind_GetRegionStart"));
  if (!unwind || !address_of || !function_of || pthread_key_create(&key, end_thread)) return false;
  Stack warm(0);
  unwind(visit, &warm);  // what it does once is not for a handler
  take_signal();
  return true;
}

void begin_thread(int64_t period_ns) {
  void* memory = mmap(nullptr, sizeof(ThreadSamples), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* t = static_cast<ThreadSamples*>(memory);
  t->id = thread_id();
  t->began = moment_of(t->id);
  pthread_getname_np(pthread_self(), t->name, sizeof t->name);
  t->location = strobe_location(t->id, t->name);
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
