#include "adapters/torch_collectives.h"

#include <dlfcn.h>
#include <pthread.h>

#include <utility>
#include <vector>

#include "core/session/session.h"
#include "core/system/clock.h"

// As c10/util/ThreadLocalDebugInfo.h has them, without its header: a class with a virtual destructor and nothing else,
// and one whose insides are never looked at.
namespace c10 {
class DebugInfoBase {
 public:
  DebugInfoBase() = default;
  virtual ~DebugInfoBase() = default;
};
class ThreadLocalDebugInfo;
}  // namespace c10

namespace strobe {

std::atomic<bool> collectives_on{false};

struct CollectiveFacts : c10::DebugInfoBase, std::enable_shared_from_this<CollectiveFacts> {
  CollectiveFacts(const strobe_collective& call, bool later) : call(call), later(later) {}
  ~CollectiveFacts() override {
    if (later && !taken.load()) strobe_count("collectives_without_row", 1);
  }
  const strobe_collective call;
  const bool later;
  const int64_t asked_ns = monotonic_ns();
  const pthread_t asked_by = pthread_self();
  int64_t began_ns = 0;
  std::atomic<bool> taken{false};
};

namespace {

// Kinds of debug information are addresses of a name since PyTorch 2.13, and numbers before; the last number is one
// that PyTorch uses only in tests of its own.
struct Name {
  size_t size;
  const char* text;
};
constexpr char kText[] = "STROBE_COLLECTIVE";
const Name kName{sizeof kText - 1, kText};
constexpr uintptr_t kNumber = 6;

using Current = std::shared_ptr<c10::ThreadLocalDebugInfo> (*)();
using Force = void (*)(std::shared_ptr<c10::ThreadLocalDebugInfo>);
using Push = void (*)(uintptr_t, std::shared_ptr<c10::DebugInfoBase>);
using Get = c10::DebugInfoBase* (*)(uintptr_t);
struct Torch {
  uintptr_t kind = 0;
  Current current = nullptr;
  Force force = nullptr;
  Push push = nullptr;
  Get get = nullptr;
} torch;

struct Asked {
  std::shared_ptr<CollectiveFacts> facts;
  std::shared_ptr<c10::ThreadLocalDebugInfo> before;
  bool observed;  // PyTorch's observer has made the span
};
// A pointer: static TLS is short (itt.cpp).
thread_local std::unique_ptr<std::vector<Asked>> asked;

void write(const CollectiveFacts& facts, int64_t pending_ns, int64_t ns) {
  const strobe_collective& call = facts.call;
  const int64_t values[STROBE_ROW_VALUES] = {
      STROBE_THREE(call.collective, call.dtype, call.group),
      STROBE_THREE(call.group_ranks, short_number(call.root), short_number(call.bucket)),
      STROBE_TWO(call.sequence, call.about),
      call.sent_bytes,
      call.received_bytes,
      pending_ns,
  };
  strobe_row(STROBE_ROW_GROUP_COLLECTIVE, values);
  const strobe_total_key key{call.region, call.group, call.peer_rank, -1};
  const strobe_total_sums sums{1, uint64_t(call.sent_bytes), uint64_t(call.received_bytes), uint64_t(ns)};
  strobe_total(&key, &sums);
}

}  // namespace

bool asks_for_collective() { return asked && !asked->empty(); }

std::shared_ptr<CollectiveFacts> take_collective() {
  if (!torch.get) return nullptr;
  auto* found = static_cast<CollectiveFacts*>(torch.get(torch.kind));
  if (!found || found->taken.exchange(true)) return nullptr;
  found->began_ns = monotonic_ns();
  return found->shared_from_this();
}

void collective_over(const CollectiveFacts& facts) {
  const int64_t now = monotonic_ns();
  // What ends where it was asked for has only been handed on, to a GPU or to the network.
  const bool elsewhere = !pthread_equal(facts.asked_by, pthread_self());
  write(facts, elsewhere ? now - facts.asked_ns : STROBE_NOTHING, now - facts.began_ns);
}

}  // namespace strobe

using namespace strobe;

const char* strobe_collectives_start(const char* libc10) {
  if (!torch.get) {
    void* library = dlopen(libc10, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return "libc10.so";
    Torch found;
    const auto find = [&](const char* name) { return dlsym(library, name); };
    found.kind = find("_ZN3c1013DebugInfoKind11TEST_INFO_2E") ? reinterpret_cast<uintptr_t>(&kName) : kNumber;
    found.current = reinterpret_cast<Current>(find("_ZN3c1020ThreadLocalDebugInfo7currentEv"));
    found.force =
        reinterpret_cast<Force>(find("_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E"));
    found.push = reinterpret_cast<Push>(
        find("_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE"));
    found.get = reinterpret_cast<Get>(find("_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE"));
    if (!found.current || !found.force || !found.push || !found.get) return "c10::ThreadLocalDebugInfo";
    torch = found;
  }
  collectives_on.store(true);
  return nullptr;
}

void strobe_collectives_stop(void) { collectives_on.store(false); }

void strobe_collective_begin(const strobe_collective* facts, int later) {
  if (!asked) asked = std::make_unique<std::vector<Asked>>();
  // Gloo's threads have ranges if PyTorch's observer is on in the thread that asks.
  const bool observed = innermost_range(facts->region);
  if (!observed) strobe_enter(facts->region);
  Asked now{std::make_shared<CollectiveFacts>(*facts, later && observed), nullptr, observed};
  if (torch.get) {
    now.before = torch.current();
    torch.push(torch.kind, now.facts);
  }
  asked->push_back(std::move(now));
}

void strobe_collective_end(void) {
  if (!asked || asked->empty()) return;
  Asked now = std::move(asked->back());
  asked->pop_back();
  if (torch.get) torch.force(std::move(now.before));
  if (!now.facts->later && !now.facts->taken.exchange(true))
    write(*now.facts, STROBE_NOTHING, monotonic_ns() - now.facts->asked_ns);
  if (!now.observed) strobe_leave(now.facts->call.region);
}
