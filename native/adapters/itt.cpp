// itt.cpp - collector for Intel's Instrumentation and Tracing Technology: PyTorch's operators (emit_itt), oneDNN's
// primitives, MKL, TBB, and the user's own ranges. The static part of ITT in each of those libraries loads the library
// named by INTEL_LIBITTNOTIFY64 at its first call and calls __itt_api_init; we then fill its function pointers by name.
//
// The declarations are our own (ITT API 3.0; struct layouts of intel/ittapi src/ittnotify/ittnotify_config.h, BSD-3 or
// GPL-2), so that nothing of ITT is needed to build; native/tests compares them with the genuine header where there is
// one.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "adapters/torch_collectives.h"
#include "core/rings/ring.h"
#include "core/session/session.h"
#include "include/strobe.h"

extern "C" {
struct ___itt_api_info {
  const char* name;
  void** func_ptr;
  void* init_func;
  void* null_func;
  int group;
};
struct ___itt_domain {
  volatile int flags;
  const char* nameA;
  void* nameW;
  int extra1;
  void* extra2;
  ___itt_domain* next;
};
struct ___itt_string_handle {
  const char* strA;
  void* strW;
  int extra1;    // ours: the region
  void* extra2;  // ours: the domain the region was interned for
  ___itt_string_handle* next;
};
struct ___itt_id {
  unsigned long long d1, d2, d3;
};
struct ___itt_global {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long api_initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* lib;
  void* error_handler;
  const char** dll_path_ptr;
  ___itt_api_info* api_list_ptr;
  ___itt_global* next;
  void* thread_list;
  ___itt_domain* domain_list;
  ___itt_string_handle* string_list;
};
}

namespace strobe {
namespace {

constexpr size_t kMaxDepth = 128;
struct Ranges {  // open ITT tasks of this thread: task_end names none
  uint32_t depth = 0;
  uint32_t regions[kMaxDepth];
  std::shared_ptr<CollectiveFacts> collective;  // of the range at collective_depth
  uint32_t collective_depth = 0;
  uint32_t floor = 0;  // what lies below is not over while a message is waited for
};
// A pointer: the library's thread-locals share glibc's small surplus of static TLS (512 bytes for all dlopened
// libraries).
thread_local std::unique_ptr<Ranges> open_ranges;

Ranges& ranges() {
  if (__builtin_expect(!open_ranges, 0)) open_ranges = std::make_unique<Ranges>();
  return *open_ranges;
}

}  // namespace

bool innermost_range(uint32_t region) {
  if (!open_ranges) return false;
  const Ranges& r = *open_ranges;
  return r.depth && r.depth <= kMaxDepth && r.regions[r.depth - 1] == region;
}

namespace {

const char* domain_name(const ___itt_domain* domain) { return domain && domain->nameA ? domain->nameA : ""; }

// Roles follow the names that PyTorch gives its own ranges (torch/optim/optimizer.py, torch/utils/data/dataloader.py).
uint8_t role_of(uint8_t paradigm, const char* name) {
  if (paradigm == STROBE_TORCH && !strncmp(name, "enumerate(DataLoader)#", 22)) return STROBE_ROLE_WAIT;
  if (paradigm == STROBE_TORCH &&
      (!strncmp(name, "c10d::", 6) || !strncmp(name, "gloo:", 5) || !strncmp(name, "nccl:", 5)))
    return STROBE_ROLE_COLLECTIVE;
  if (paradigm == STROBE_TORCH && strstr(name, "::")) return STROBE_ROLE_OPERATOR;
  if (paradigm == STROBE_ONEDNN) return STROBE_ROLE_OPERATOR;
  return STROBE_ROLE_RANGE;
}

uint32_t intern(const ___itt_domain* domain, const char* name) {
  const char* of = domain_name(domain);
  strobe_region_info info{};
  info.name = name ? name : "";
  info.module = of;
  info.paradigm = !strcmp(of, "PyTorch")                                 ? STROBE_TORCH
                  : !strncmp(of, "oneDNN", 6) || !strncmp(of, "dnnl", 4) ? STROBE_ONEDNN
                                                                         : STROBE_ITT;
  info.role = role_of(info.paradigm, info.name);
  return strobe_region(&info);
}

// String handles that programs create at every range (PyTorch does) must be found fast: a table that is only ever added
// to, read without a lock.
struct HandleTable {
  static constexpr size_t kSlots = 1 << 16;
  std::atomic<___itt_string_handle*> slots[kSlots];
  size_t used = 0;

  static uint64_t hash(const char* text) {
    uint64_t h = 0xCBF29CE484222325ull;
    for (; *text; text++) h = (h ^ uint8_t(*text)) * 0x100000001B3ull;
    return h ^ (h >> 29);
  }
  ___itt_string_handle* find_or_add(const char* text) {
    size_t at = hash(text) & (kSlots - 1);
    for (___itt_string_handle* h; (h = slots[at].load(std::memory_order_acquire)); at = (at + 1) & (kSlots - 1))
      if (!strcmp(h->strA, text)) return h;
    std::lock_guard lock(session().adapters_mutex());
    for (___itt_string_handle* h; (h = slots[at].load(std::memory_order_acquire)); at = (at + 1) & (kSlots - 1))
      if (!strcmp(h->strA, text)) return h;
    // A program of unique names: all further ones share a handle, and are counted in the quality table.
    static ___itt_string_handle other{"<other ITT names>", nullptr, 0, nullptr, nullptr};
    if (used >= kSlots / 2) {
      strobe_count("itt_names_folded", 1);
      return &other;
    }
    used++;
    auto* made = new ___itt_string_handle{strdup(text), nullptr, 0, nullptr, nullptr};
    slots[at].store(made, std::memory_order_release);
    return made;
  }
};

HandleTable& handles() {
  static HandleTable* table = new HandleTable{};
  return *table;
}

___itt_string_handle* string_handle_create(const char* name) { return handles().find_or_add(name ? name : ""); }

___itt_domain* domain_create(const char* name) {
  static ___itt_domain* first = nullptr;
  std::lock_guard lock(session().adapters_mutex());
  for (auto* d = first; d; d = d->next)
    if (!strcmp(d->nameA, name ? name : "")) return d;
  return first = new ___itt_domain{1, strdup(name ? name : ""), nullptr, 0, nullptr, first};
}

void task_begin(const ___itt_domain* domain, ___itt_id, ___itt_id, ___itt_string_handle* name) {
  if (name && runs_message(name->strA)) return;
  uint32_t region = 0;
  if (name) {
    // Handles made before our init have empty extra fields: they get their region here, at first use.
    if (name->extra2 == domain) {
      region = uint32_t(name->extra1);
    } else {
      region = intern(domain, name->strA);
      name->extra1 = int(region);
      name->extra2 = const_cast<___itt_domain*>(domain);
    }
  }
  Ranges& r = ranges();
  if (r.depth < kMaxDepth) r.regions[r.depth] = region;
  r.depth++;
  if (region && r.depth <= kMaxDepth) put(kEnter, region);
  if (name && runs_collective(name->strA) && !r.collective && (r.collective = take_collective()))
    r.collective_depth = r.depth;
}

void task_end(const ___itt_domain*) {
  Ranges& r = ranges();
  if (r.depth == r.floor) return;  // began before we were asked to look, or is that of a message
  if (r.collective && r.depth == r.collective_depth) collective_over(*std::exchange(r.collective, nullptr));
  r.depth--;
  if (r.depth < kMaxDepth && r.regions[r.depth]) put(kLeave, r.regions[r.depth]);
}

void thread_set_name(const char* name) {
  if (name) strobe_name_thread(name);
}

struct Hook {
  const char* name;
  void* function;
};
const Hook hooks[] = {
    {"__itt_domain_create", reinterpret_cast<void*>(domain_create)},
    {"__itt_domain_createA", reinterpret_cast<void*>(domain_create)},
    {"__itt_string_handle_create", reinterpret_cast<void*>(string_handle_create)},
    {"__itt_string_handle_createA", reinterpret_cast<void*>(string_handle_create)},
    {"__itt_task_begin", reinterpret_cast<void*>(task_begin)},
    {"__itt_task_end", reinterpret_cast<void*>(task_end)},
    {"__itt_thread_set_name", reinterpret_cast<void*>(thread_set_name)},
    {"__itt_thread_set_nameA", reinterpret_cast<void*>(thread_set_name)},
};

// PyTorch asks for its domain once, while it is loaded; without a collector it gets none, and keeps that in a static
// variable. Its function itt_range_pop begins by reading it: mov rdi, [rip + offset]. Null: it is not there.
___itt_domain** domain_variable(void* torch) {
#ifdef __x86_64__
  auto* code = static_cast<const uint8_t*>(dlsym(torch, "_ZN5torch8profiler13itt_range_popEv"));
  for (int at = 0; code && at < 16; at++) {
    if (code[at] != 0x48 || code[at + 1] != 0x8B || code[at + 2] != 0x3D) continue;
    int32_t offset;
    memcpy(&offset, code + at + 3, sizeof offset);
    return reinterpret_cast<___itt_domain**>(const_cast<uint8_t*>(code) + at + 7 + offset);
  }
#endif
  (void)torch;
  return nullptr;
}

struct Segments {
  const void *code, *variable;
  bool same_library;  // and the variable may be written
};

int in_same_library(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<Segments*>(data);
  bool has_code = false, has_variable = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    auto inside = [&](const void* at) {
      return uintptr_t(at) - (info->dlpi_addr + part.p_vaddr) < part.p_memsz;  // unsigned: before it is far away
    };
    has_code |= inside(wanted->code);
    has_variable |= (part.p_flags & PF_W) && inside(wanted->variable);
  }
  wanted->same_library |= has_code && has_variable;
  return has_code;
}

const ___itt_domain* probed;  // what PyTorch called us with
void probe(const ___itt_domain* domain, ___itt_id, ___itt_id, ___itt_string_handle*) { probed = domain; }

// Give PyTorch a domain, and try whether it uses it. The functions that it calls are ours already, or none.
bool give_domain(void* torch, ___itt_global* global) {
  auto** variable = domain_variable(torch);
  auto* push = reinterpret_cast<void (*)(const char*)>(dlsym(torch, "_ZN5torch8profiler14itt_range_pushEPKc"));
  Segments wanted{global, variable, false};
  dl_iterate_phdr(in_same_library, &wanted);
  void** task_begin_pointer = nullptr;
  for (auto* api = global->api_list_ptr; api->name; api++)
    if (!strcmp(api->name, "__itt_task_begin")) task_begin_pointer = api->func_ptr;
  if (!push || !task_begin_pointer || !wanted.same_library || *variable) return false;
  auto* domain = domain_create("PyTorch");
  void* before = *task_begin_pointer;
  *variable = domain;
  *task_begin_pointer = reinterpret_cast<void*>(probe);
  probed = nullptr;
  push("");
  *task_begin_pointer = before;
  if (probed == domain) return true;
  *variable = nullptr;
  return false;
}

}  // namespace
}  // namespace strobe

void strobe_message_wait_begin(uint32_t region) {
  strobe_enter(region);
  strobe::Ranges& r = strobe::ranges();
  r.floor = r.depth;
}

void strobe_message_wait_end(uint32_t region) {
  strobe::ranges().floor = 0;
  strobe_leave(region);
}

extern "C" void __itt_api_init(___itt_global* global, int) {
  if (!global || !global->api_list_ptr) return;
  for (auto* api = global->api_list_ptr; api->name; api++) {
    void* function = api->null_func;
    for (const auto& hook : strobe::hooks)
      if (!strcmp(api->name, hook.name)) function = hook.function;
    *api->func_ptr = function;
  }
  // Domains made before now are on the library's own list; a domain whose flags are 0 is switched off.
  for (auto* domain = global->domain_list; domain; domain = domain->next) domain->flags = 1;
}

int strobe_attach_torch(const char* library) {
  void* torch = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (!torch) return 0;
  static ___itt_global* attached = nullptr;
  auto* global = static_cast<___itt_global*>(dlsym(torch, "__itt__ittapi_global"));
  if (global && global != attached && global->api_list_ptr && !global->lib && strobe::give_domain(torch, global)) {
    __itt_api_init(global, 0);
    attached = global;
  }
  dlclose(torch);  // the program's own reference keeps it
  return global && global == attached;
}
