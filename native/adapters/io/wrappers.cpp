// wrappers.cpp - libstrobe_io.so: calls that open, read, write and close files, interposed by LD_PRELOAD.
//
// The program comes first. Every call goes to the C library's own function, so that it stays a cancellation point, and
// errno is what that left. Nothing here allocates from the program's malloc or waits for a lock that the calling thread
// may hold: a file's name becomes a text in memory of the recorder, with signals blocked; a handler that interrupts the
// recorder is not recorded. What runs between vfork and exec shares this memory with its parent, and is left alone.
//
// Every argument is an integer or a pointer, which one register holds (x86-64, AArch64); variadic ones, too.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "adapters/io/io_calls.h"
#include "core/system/threads.h"
#include "include/strobe.h"

// Set by vfork (below) before there is a child: both see it.
extern "C" __attribute__((visibility("hidden"), tls_model("initial-exec"))) thread_local char strobe_io_vforked;
thread_local char strobe_io_vforked = 0;

namespace strobe::io {

namespace {

using Word = intptr_t;
constexpr int kNone = -1, kByPath = -2;

enum Kind : uint8_t {
  kOpen,
  kOpenAt,
  kRead,
  kWrite,
  kSync,
  kSeek,
  kMap,
  kClose,
  kFile,  // the same of the C library's streams
  kFileOpen,
  kFileRead,
  kFileReadChecked,
  kFileWrite,
  kFileClose,
  kFileReopen,
  kReplace,  // nothing is recorded of this one and those below
  kForgetDirectory,
  kForgetRange,
};
// As io_spans has them.
constexpr const char* kOperations[kReplace] = {"open",  "open", "read", "write", "flush", "seek",  "map", "close",
                                               "flush", "open", "read", "read",  "write", "close", "open"};

enum Call : int {
#define IO_CALL(symbol, ...) k_##symbol,
  IO_CALLS(IO_CALL)
#undef IO_CALL
      kCalls
};

struct Description {
  const char *symbol, *function;
  Kind kind;
  int system_call;
};
constexpr Description kAll[kCalls] = {
#define IO_CALL(symbol, function, kind, number) {#symbol, #function, kind, number},
    IO_CALLS(IO_CALL)
#undef IO_CALL
};

using Function = Word (*)(Word, Word, Word, Word, Word, Word);
std::atomic<Function> real[kCalls];
uint32_t operations[kReplace];  // texts
uint32_t regions[kCalls];       // 0 before `begin`: nothing is recorded
std::atomic<pid_t> own_pid{0};
uintptr_t core_begin = 0, core_end = 0;  // libstrobe.so: what it reads and writes is not the program's

// --- names of files

constexpr uint32_t kUnknown = 0, kOwn = UINT32_MAX;  // kOwn: a file of the trace
constexpr int kDescriptors = 1 << 16;
std::atomic<uint32_t> text_of_descriptor[kDescriptors];

// Programs that open ever more files would fill the tables of the recorder. After so many names files are known by
// their folder, then not at all.
constexpr uint32_t kMostNames = 2048, kNameSlots = 4 * kMostNames;
std::atomic<uint64_t> name_hashes[kNameSlots];
std::atomic<uint32_t> names{0};

bool has_room(const char* name, uint32_t most) {
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
  for (const char* at = name; *at; at++) hash = (hash ^ uint8_t(*at)) * 0x100000001B3ull;
  hash |= 1;
  for (uint32_t i = 0; i < kNameSlots; i++) {
    auto& slot = name_hashes[(hash + i) % kNameSlots];
    uint64_t there = slot.load(std::memory_order_relaxed);
    if (!there && names.load(std::memory_order_relaxed) >= most) return false;
    if (!there && slot.compare_exchange_strong(there, hash)) {
      names.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (there == hash) return true;
  }
  return false;
}

// `name` is changed.
uint32_t text_of(char* name) {
  const char* folder = strobe_folder();
  const size_t length = strlen(folder);
  if (length && !strncmp(name, folder, length) && (name[length] == '/' || !name[length])) return kOwn;
  if (*name != '/') {  // socket:[4711], anon_inode:[eventfd]
    if (char* number = strstr(name, ":["); number && number[2] >= '0' && number[2] <= '9') *number = 0;
    return strobe_text(name);
  }
  if (has_room(name, kMostNames)) return strobe_text(name);
  strcpy(strrchr(name, '/') + 1, "*");
  return strobe_text(has_room(name, 2 * kMostNames) ? name : "<other files>");
}

uint32_t text_of_path(const char* path) {
  const WithoutSignals whole;
  char name[1024];
  *stpncpy(name, path, sizeof name - 3) = 0;
  return text_of(name);
}

// The kernel's name, once for each descriptor: absolute, without links.
uint32_t learn(int descriptor) {
  const WithoutSignals whole;
  char link[32] = "/proc/self/fd/", digits[12], name[1024];
  char *to = link + strlen(link), *digit = digits;
  for (int left = descriptor; digit == digits || left; left /= 10) *digit++ = char('0' + left % 10);
  while (digit > digits) *to++ = *--digit;
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, name, sizeof name - 3);
  if (length <= 0) return kUnknown;
  name[length] = 0;
  const uint32_t text = text_of(name);
  if (descriptor < kDescriptors) text_of_descriptor[descriptor].store(text, std::memory_order_relaxed);
  return text;
}

uint32_t file_of(int descriptor) {
  if (descriptor < 0) return kUnknown;
  const uint32_t known =
      descriptor < kDescriptors ? text_of_descriptor[descriptor].load(std::memory_order_relaxed) : kUnknown;
  return known ? known : learn(descriptor);
}

void forget(Word descriptor) {
  if (descriptor >= 0 && descriptor < kDescriptors) text_of_descriptor[descriptor].store(kUnknown);
}

// --- one call

// The C library's function.
Function find(int call) {
  if (auto found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, kAll[call].symbol))) {
    real[call].store(found, std::memory_order_release);
    return found;
  }
  return nullptr;
}

Word pass(int call, Word a, Word b, Word c, Word d, Word e, Word f) {
  if (Function function = real[call].load(std::memory_order_acquire); __builtin_expect(function != nullptr, 1))
    return function(a, b, c, d, e, f);
  const int number = kAll[call].system_call;
  if (number == kByPath) return syscall(SYS_openat, AT_FDCWD, a, b, c);
  if (number != kNone) return syscall(number, a, b, c, d, e, f);
  if (Function function = find(call)) return function(a, b, c, d, e, f);
  errno = ENOSYS;
  return -1;
}

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

// Whether this is the child of a vfork. Its parent goes on when the child has called exec or _exit.
bool in_child_of_vfork() {
  if (__builtin_expect(!strobe_io_vforked, 1)) return false;
  if (syscall(SYS_getpid) != own_pid.load(std::memory_order_relaxed)) return true;
  strobe_io_vforked = 0;
  return false;
}

// What the recorder writes itself is not a cancellation point of the program's thread. errno stays the program's.
class Aside {
 public:
  Aside() : errno_(errno) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Aside() {
    pthread_setcancelstate(before_, nullptr);
    errno = errno_;
  }
  Aside(const Aside&) = delete;

 private:
  const int errno_;
  int before_;
};

int descriptor_of(FILE* stream) { return stream ? fileno(stream) : -1; }

// The descriptor that a call is about before it is made; -1: none, or not yet known.
int descriptor_of(Kind kind, Word a, Word d, Word e) {
  switch (kind) {
    case kRead:
    case kWrite:
    case kSync:
    case kSeek:
    case kClose:
      return int(a);
    case kMap:
      return d & MAP_ANONYMOUS ? -1 : int(e);
    case kFile:
    case kFileClose:
      return descriptor_of(reinterpret_cast<FILE*>(a));
    case kFileRead:
    case kFileWrite:
      return descriptor_of(reinterpret_cast<FILE*>(d));
    case kFileReadChecked:
      return descriptor_of(reinterpret_cast<FILE*>(e));
    default:
      return -1;
  }
}

void forget_what_it_closes(Kind kind, Word a, Word b, Word c) {
  if (kind == kClose) forget(a);
  if (kind == kFileClose && a) forget(descriptor_of(reinterpret_cast<FILE*>(a)));
  if (kind == kFileReopen && c) forget(descriptor_of(reinterpret_cast<FILE*>(c)));
  if (kind == kReplace && a != b) forget(b);
  if (kind == kForgetDirectory && a) forget(dirfd(reinterpret_cast<DIR*>(a)));
  if (kind == kForgetRange)  // unsigned numbers
    for (Word each = Word(uint32_t(a)); each <= std::min(Word(uint32_t(b)), Word(kDescriptors - 1)); each++)
      forget(each);
}

// The bytes that a call moved, from its result; STROBE_NOTHING: it failed, or moves none.
int64_t moved_by(Kind kind, Word result, Word size) {
  if (kind == kFileRead || kind == kFileWrite || kind == kFileReadChecked) return result * size;
  return (kind == kRead || kind == kWrite) && result >= 0 ? int64_t(result) : STROBE_NOTHING;
}

// The bytes that it was to move; STROBE_NOTHING: not known.
int64_t asked_of(const Description& of, Word b, Word c, Word d) {
  if (of.kind == kRead || of.kind == kWrite) return strchr(of.function, 'v') ? STROBE_NOTHING : c;  // readv has a list
  if (of.kind == kFileRead || of.kind == kFileWrite) return b * c;
  return of.kind == kFileReadChecked ? c * d : STROBE_NOTHING;
}

// The file of a call that has opened a descriptor, or has failed to: then by the name that it was given.
uint32_t opened(int descriptor, const char* path, int error) {
  if (descriptor >= 0) return learn(descriptor);
  return path && error != EFAULT ? text_of_path(path) : kUnknown;
}

Word call(int number, const void* caller, Word a, Word b, Word c, Word d, Word e, Word f) {
  const Kind kind = kAll[number].kind;
  const auto from = reinterpret_cast<uintptr_t>(caller);
  if (!regions[number] || in_child_of_vfork()) return pass(number, a, b, c, d, e, f);
  const bool opens = kind == kOpen || kind == kOpenAt || kind == kFileOpen || kind == kFileReopen;
  int descriptor = descriptor_of(kind, a, d, e);
  uint32_t file = kUnknown;
  const bool wanted = kind < kReplace && (opens || descriptor >= 0) && !(from >= core_begin && from < core_end);
  const int state = wanted ? strobe_recorded_here() : STROBE_NOT_RECORDED;
  // Most forked children close files and call exec: these get no files of the trace.
  const bool recorded = state == STROBE_RECORDED || (state == STROBE_IN_CHILD && kind != kClose);
  if (recorded && !opens) {
    const Aside aside;
    file = file_of(descriptor);
  }
  // Before the call: after it the number may be another file's.
  forget_what_it_closes(kind, a, b, c);
  if (!recorded || file == kOwn) return pass(number, a, b, c, d, e, f);
  {
    const Aside aside;
    strobe_enter(regions[number]);
  }
  const int64_t began = now_ns();
  const Word result = pass(number, a, b, c, d, e, f);
  const uint64_t ns = uint64_t(now_ns() - began);
  const Aside aside;
  if (opens) {
    const bool stream = kind == kFileOpen || kind == kFileReopen;
    descriptor = stream ? descriptor_of(reinterpret_cast<FILE*>(result)) : int(result);
    file = opened(descriptor, reinterpret_cast<const char*>(kind == kOpenAt ? b : a), errno);
  }
  if (file == kOwn) {
    strobe_leave(regions[number]);
    return result;
  }
  const int64_t moved = moved_by(kind, result, kind == kFileReadChecked ? c : b);
  const int64_t values[STROBE_ROW_VALUES] = {
      STROBE_THREE(operations[kind], file, descriptor >= 0 ? descriptor : STROBE_NOTHING_21), moved,
      asked_of(kAll[number], b, c, d), kind == kSeek && result >= 0 ? result : STROBE_NOTHING};
  strobe_row(STROBE_ROW_IO, values);
  strobe_leave(regions[number]);
  const uint64_t bytes = moved > 0 ? uint64_t(moved) : 0;
  const bool writes = kind == kWrite || kind == kFileWrite;
  const strobe_total_key key{regions[number], file, STROBE_NOTHING_32, STROBE_TOTAL_OF_FILE};
  const strobe_total_sums sums{1, writes ? bytes : 0, writes ? 0 : bytes, ns};
  strobe_total(&key, &sums);
  return result;
}

// --- the begin

void begin() {
  for (int number = 0; number < kCalls; number++) find(number);
  own_pid = getpid();
  pthread_atfork(nullptr, nullptr, [] { own_pid = pid_t(syscall(SYS_getpid)); });
  Dl_info core{};
  dladdr(reinterpret_cast<void*>(strobe_active), &core);
  core_begin = reinterpret_cast<uintptr_t>(core.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void*) {
        for (int i = 0; object->dlpi_addr == core_begin && i < object->dlpi_phnum; i++)
          if (const auto& part = object->dlpi_phdr[i]; part.p_type == PT_LOAD)
            core_end = core_begin + part.p_vaddr + part.p_memsz;
        return 0;
      },
      nullptr);
  strobe_use_own_memory();
  // A Python begins its session itself, with all that it records.
  if (!dlsym(RTLD_DEFAULT, "Py_BytesMain")) strobe_begin();
  for (int kind = 0; kind < kReplace; kind++) operations[kind] = strobe_text(kOperations[kind]);
  for (int number = 0; number < kCalls; number++) {
    strobe_region_info info{};
    info.name = kAll[number].function;
    info.paradigm = STROBE_POSIX;
    info.role = STROBE_ROLE_IO;
    regions[number] = strobe_region(&info);
  }
}

__attribute__((constructor)) void load() { begin(); }

}  // namespace

}  // namespace strobe::io

// Under the C library's names. The names here are others: its headers declare these functions with their real types.
#define IO_CALL(symbol, ...)                                                                            \
  extern "C" STROBE_API intptr_t strobe_io_##symbol(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,   \
                                                    intptr_t) __asm__(#symbol);                         \
  intptr_t strobe_io_##symbol(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f) { \
    return strobe::io::call(strobe::io::k_##symbol, __builtin_return_address(0), a, b, c, d, e, f);     \
  }
IO_CALLS(IO_CALL)
#undef IO_CALL

// vfork returns twice, on one stack: nothing of ours may be on it, so this jumps. __vfork is the C library's other
// name.
#if defined(__x86_64__)
__asm__(R"(
  .globl vfork
  .type vfork, @function
vfork:
  endbr64
  movq strobe_io_vforked@gottpoff(%rip), %rax
  movb $1, %fs:(%rax)
  jmp __vfork@PLT
  .size vfork, .-vfork
)");
#elif defined(__aarch64__)
__asm__(R"(
  .globl vfork
  .type vfork, %function
vfork:
  hint #34
  mrs x16, tpidr_el0
  adrp x17, :gottprel:strobe_io_vforked
  ldr x17, [x17, #:gottprel_lo12:strobe_io_vforked]
  mov w15, #1
  strb w15, [x16, x17]
  b __vfork
  .size vfork, .-vfork
)");
#endif
