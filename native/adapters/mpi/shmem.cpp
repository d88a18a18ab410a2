// shmem.cpp - OpenSHMEM: its functions interposed by name, as those of MPI are. PEs are ranks; the PEs of an active set
// are a communicator, and so are all of them. One-sided communication, collectives and locks have the rows that those
// of MPI have.
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "adapters/mpi/call_paths.h"
#include "adapters/mpi/call_recording.h"
#include "adapters/mpi/call_regions.h"
#include "adapters/mpi/transfer_rows.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

// "p" before a name: of the profiling interface, which a library that was loaded by dlopen has, too.
void* real_of(int call, const void* caller) {
  static std::atomic<void*> known[kCalls - kMpiCalls];
  std::atomic<void*>& real = known[call - kMpiCalls];
  if (void* found = real.load(std::memory_order_relaxed)) return found;
  const char* name = description(call).name;
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) found = find_function((std::string("p") + name).c_str(), caller);
  real.store(found, std::memory_order_relaxed);
  return found;
}

int ask(const char* name) {
  auto function = reinterpret_cast<int (*)()>(find_function(name, reinterpret_cast<void*>(ask)));
  return function ? function() : 0;
}

const Communicator& active_set(int first, int log_stride, int count) {
  static const int own = ask("shmem_my_pe");
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<int, int, int>, const Communicator*>;
  std::lock_guard lock(mutex);
  const Communicator*& found = known[{first, log_stride, count}];
  if (found) return *found;
  auto* made = new Communicator;
  std::vector<int> members(size_t(count < 0 ? 0 : count), 0);
  for (size_t i = 0; i < members.size(); i++) members[i] = first + int(i << log_stride);
  made->name = "PEs " + std::to_string(first) + " to " + std::to_string(members.empty() ? first : members.back());
  if (log_stride) (made->name += " by ") += std::to_string(1 << log_stride);
  made->rank = (own - first) >> log_stride;
  made->size = made->peers = count;
  made->world = std::make_shared<const std::vector<int>>(std::move(members));
  return *(found = made);
}

const Communicator& all_pes() {
  static const Communicator& all = active_set(0, 0, ask("shmem_n_pes"));
  return all;
}

// The same number on all PEs: a lock in an object lies at the same place of it, one in the symmetric heap (nearly
// always) at the same address.
int32_t number_of_lock(Word lock) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(lock), &info)) lock -= Word(info.dli_fbase);
  return int32_t((uint64_t(lock) * 0x9E3779B97F4A7C15ull) >> 33);
}

// One call, from before it is made (or, if `began` is known, after) to after it.
class Recording {
 public:
  [[gnu::noinline]] Recording(int number, const Word* words, const void* caller, const void* frame, uint64_t began = 0)
      : number_(number), call_(description(number)), words_(words) {
    inside = true;
    const Arguments& at = call_.arguments;
    if (at.traffic != Traffic::none)
      communicator_ = at.of < 0 ? &all_pes() : &active_set(word(at.of), word(at.of + 1), word(at.of + 2));
    Peers peers;
    if (at.to >= 0) peers.to = word(at.to) - communicator_->rank;
    region_ = region_of(number, call_.name, call_.role, peers, call_path(caller, frame));
    began ? strobe_enter_at(region_, began) : strobe_enter(region_);
    began_ = began ? began : strobe_ticks();
    if (call_.kind == kAbort) strobe_note_exit(word(0));
  }
  [[gnu::noinline]] ~Recording() {
    const uint64_t ticks = strobe_ticks() - began_;
    if (call_.kind == kInit) strobe_note_rank(ask("shmem_my_pe"), ask("shmem_n_pes"));
    const Facts facts = facts_of_call();
    write_call(facts, began_, ticks);
    if (is_of_epoch(facts.traffic)) write_epoch(facts, {kNone}, number_of_lock(words_[0]), began_, ticks);
    strobe_leave(region_);
    inside = false;
  }
  Recording(const Recording&) = delete;

 private:
  int word(int at) const { return int(words_[at]); }

  Facts facts_of_call() const {
    const Arguments& at = call_.arguments;
    Facts facts;
    facts.traffic = at.traffic, facts.call = uint16_t(number_), facts.communicator = communicator_;
    if (at.to >= 0) facts.to = word(at.to);
    if (at.root >= 0) facts.root = word(at.root);
    const int64_t n = at.count < 0 ? 1 : words_[at.count], all = at.to >= 0 || !communicator_ ? 1 : communicator_->size;
    const bool others = at.root >= 0 && facts.root != communicator_->rank;
    facts.sent = others ? 0 : n * all * at.type;
    facts.received = at.in_type < 0 ? kUnknown : n * (at.root >= 0 ? 1 : all) * at.in_type;
    return facts;
  }

  const int number_;
  const Description& call_;
  const Word* const words_;
  const Communicator* communicator_ = nullptr;
  uint32_t region_ = 0;
  uint64_t began_ = 0;
};

template <class T>
Word as_word(T value) {
  return Word(value);  // of a floating-point value nobody asks
}

// Calls the real function, and records it. `caller` and `frame`: of the wrapper.
template <class Result, class... Values>
[[gnu::noinline]] Result call(int number, const void* caller, const void* frame, Values... values) {
  const auto real = reinterpret_cast<Result (*)(Values...)>(real_of(number, caller));
  if (!real) return Result();
  const Kind kind = description(number).kind;
  if (kind == kInit) {
    strobe_begin();
    if (strobe_active()) strobe_stop_at_exit();
  }
  if (inside || !strobe_active()) return real(values...);
  const Word words[] = {as_word(values)..., 0};
  if constexpr (std::is_same_v<Result, Word>) {
    if (kind == kTest) {  // a poll: recorded if it gets the lock
      const uint64_t began = strobe_ticks();
      const Result result = real(values...);
      if (int(result) == 0) Recording made(number, words, caller, frame, began);
      return result;
    }
  }
  Recording recording(number, words, caller, frame);
  return real(values...);
}

}  // namespace

}  // namespace strobe::mpi

using strobe::mpi::Word;

#define UNPACKED(...) __VA_OPT__(, ) __VA_ARGS__
#define SHMEM_CALL(result, name, parameters, arguments, ...)                            \
  extern "C" STROBE_API result name parameters {                                        \
    return strobe::mpi::call<result>(strobe::mpi::k##name, __builtin_return_address(0), \
                                     __builtin_frame_address(0) UNPACKED arguments);    \
  }
SHMEM_CALLS(SHMEM_CALL)
