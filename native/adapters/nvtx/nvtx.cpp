// nvtx.cpp - injection library for NVTX: each shared object that contains NVTX loads the library named by
// NVTX_INJECTION64_PATH at its first NVTX call and calls InitializeInjectionNvtx2 and, for payloads,
// InitializeInjectionNvtxExtension; we then fill its function tables.
//
// Slot numbers and layouts are those of NVTX 3 (nvtxDetail/nvtxTypes.h, nvToolsExt.h, nvToolsExtPayload.h; Apache-2.0
// with LLVM exception), declared here so that no NVTX is needed to build; tests drive this through the genuine `nvtx`
// package and the genuine headers.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "adapters/nvtx/nccl_calls.h"
#include "adapters/nvtx/nvtx_payload.h"
#include "adapters/nvtx/nvtx_ranges.h"
#include "adapters/torch_collectives.h"
#include "core/format/utf8.h"
#include "core/rings/ring.h"
#include "core/session/from_environment.h"
#include "core/session/session.h"
#include "core/system/clock.h"
#include "core/system/threads.h"
#include "include/strobe.h"

namespace strobe {
namespace {

using nvtx::Attributes;
using nvtx::Data;

// What events are called; never freed, as programs hold it (registered strings), and open ranges do.
struct Name {
  uint32_t region;
  nccl::Kind call;
};

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// All domains of a name have these together: shared objects make each its own, and some programs one each time.
struct Names {
  std::string domain;
  bool of_nccl = false;
  std::unordered_map<std::string, Name, Hash, std::equal_to<>> known;  // with adapters_mutex
};

struct Domain {
  Names* names;
  nvtx::Schemas schemas;  // with adapters_mutex
};

// Programs that build unique names must not fill memory, nor the table of regions that functions need, too: what comes
// after these is one range.
constexpr size_t kMostNames = 1u << 16;
constexpr size_t kLongestName = 1023;
size_t names_known = 0;        // with adapters_mutex
uint64_t last_dynamic_id = 0;  // with adapters_mutex

Domain& domain_of(Domain* domain) {
  static auto* none = new Domain{new Names, {}};
  return domain ? *domain : *none;
}

std::mutex& tables() { return session().adapters_mutex(); }

// What comes while this thread is inside of the recorder (an allocator or a handler of signals that has ranges of its
// own) cannot be looked up, as the lock may be held, and is not recorded.
bool inside() { return producer.busy; }
const Name kNotRecorded{0, nccl::Kind::other};

Name make_name(const Names& of, std::string_view text) {
  const std::string name(text);
  strobe_region_info info{};
  info.name = name.c_str();
  info.module = of.domain.c_str();
  info.paradigm = STROBE_NVTX;
  const nccl::Kind call = of.of_nccl ? nccl::kind_of(text) : nccl::Kind::other;
  info.role = nccl::is_collective(call) ? STROBE_ROLE_COLLECTIVE
              : nccl::moves_data(call)  ? STROBE_ROLE_P2P
                                        : STROBE_ROLE_RANGE;
  return {strobe_region(&info), call};
}

const Name* name_of(Domain* of, std::string_view text) {
  // torch.autograd.profiler.emit_nvtx makes every text unique ("aten::conv2d, seq = 1, op_id = 2, sizes = [...]", and
  // in older versions without the middle ones): keep the name.
  for (const char* field : {", seq = ", ", op_id = ", ", sizes = ["})
    if (size_t at = text.find(field); at != text.npos) text = text.substr(0, at);
  text = text.substr(0, kLongestName);
  if (inside()) return &kNotRecorded;
  const Inside here;
  Names& names = *domain_of(of).names;
  std::lock_guard lock(tables());
  const auto found = names.known.find(text);
  if (found != names.known.end()) return &found->second;
  if (names_known >= kMostNames) {
    static const Name other = make_name(Names{}, "<other NVTX ranges>");
    strobe_count("nvtx_names_folded", 1);
    return &other;
  }
  names_known++;
  return &names.known.emplace(text, make_name(names, text)).first->second;
}

std::string_view utf8(const char* text) { return text ? text : ""; }
std::string utf8(const wchar_t* text) {  // from UTF-32
  std::string out;
  for (; text && *text; text++) append_utf8(out, uint32_t(*text));
  return out;
}

const Name* name_of(Domain* of, const auto* text) { return name_of(of, std::string_view(utf8(text))); }

const Name* unnamed(Domain* domain) { return name_of(domain, "<unnamed range>"); }

// The payloads of an event, wherever it has them.
struct Payload {
  const Data* data = nullptr;
  size_t count = 0;
};

Payload payload_of(const Attributes* a) {
  if (!a || a->payload_type != nvtx::kExtendedPayload || a->payload_count <= 0) return {};
  return {reinterpret_cast<const Data*>(a->payload), size_t(a->payload_count)};
}

// What is called here is with the domain's lock.
template <class Each>
void each_with_schema(Domain* domain, const Payload& payload, Each&& each) {
  const nvtx::Schemas& schemas = domain_of(domain).schemas;
  for (size_t i = 0; payload.data && i < payload.count; i++)
    if (const nvtx::Schema* schema = schemas.find(payload.data[i].schema)) each(*schema, payload.data[i]);
}

// The name that a field of a payload gives an event, if one does.
const Name* name_in(Domain* domain, const Payload& payload) {
  if (inside()) return &kNotRecorded;
  std::string text;
  const Name* registered = nullptr;
  {
    const Inside here;
    std::lock_guard lock(tables());
    each_with_schema(domain, payload, [&](const nvtx::Schema& schema, const Data& data) {
      const nvtx::Field* field = schema.message();
      const uint64_t value = field ? nvtx::value_of(*field, data).value_or(0) : 0;
      if (!value) return;
      if (field->kind == nvtx::FieldKind::registered)
        registered = reinterpret_cast<const Name*>(value);
      else
        text = reinterpret_cast<const char*>(value);
    });
  }
  return registered ? registered : text.empty() ? unnamed(domain) : name_of(domain, text);
}

const Name* name_of(Domain* domain, const Attributes* a) {
  if (!a || !a->message || a->message_type == nvtx::kNoMessage) return name_in(domain, payload_of(a));
  if (a->message_type == nvtx::kUnicode) return name_of(domain, static_cast<const wchar_t*>(a->message));
  if (a->message_type == nvtx::kRegisteredMessage) return static_cast<const Name*>(a->message);
  return name_of(domain, static_cast<const char*>(a->message));
}

nccl::Facts facts_in(Domain* domain, const Payload& payload) {
  if (inside()) return {};
  const Inside here;
  std::lock_guard lock(tables());
  nccl::Facts facts;
  each_with_schema(domain, payload,
                   [&](const nvtx::Schema& schema, const Data& data) { nccl::read(schema, data, facts); });
  return facts;
}

// Push and pop nest per (thread, domain); a pop names nothing, so the thread remembers.
constexpr uint32_t kMaxDepth = 96;
struct Open {
  Domain* domain;
  const Name* name;
};
// The call of NCCL that is open; none lies inside of another.
struct OpenCall {
  const Name* name = nullptr;
  nccl::Moved moved{};
  bool ours = false;                          // not part of a collective of torch.distributed
  std::shared_ptr<CollectiveFacts> of_torch;  // whose row belongs to this call's span
  int64_t began_ns = 0;
};
struct Ranges {
  uint32_t depth = 0;
  Open open[kMaxDepth];
  OpenCall call;
};
thread_local std::unique_ptr<Ranges> open_ranges;  // a pointer: static TLS is scarce (see itt.cpp)

Ranges& ranges() {
  if (!open_ranges) open_ranges = std::make_unique<Ranges>();
  return *open_ranges;
}

void call_begins(Ranges& r, Domain* domain, const Name* name, const Payload& payload) {
  const nccl::Facts facts = facts_in(domain, payload);
  if (!nccl::moves_data(name->call)) return nccl::communicator_changed(name->call, facts);
  const bool of_torch = asks_for_collective();
  OpenCall call{name, nccl::began(name->call, facts, !of_torch), !of_torch, nullptr, monotonic_ns()};
  if (of_torch) call.of_torch = take_collective();
  r.call = std::move(call);
}

void call_ends(Ranges& r, Domain* domain, const Name* name, const Payload& payload) {
  if (!nccl::moves_data(name->call)) {
    if (payload.count) nccl::communicator_changed(name->call, facts_in(domain, payload));
    return;
  }
  if (r.call.name != name) return;
  const OpenCall call = std::exchange(r.call, {});
  if (call.of_torch) collective_over(*call.of_torch);
  if (!call.ours) return;
  const strobe_total_key key{name->region, call.moved.communicator, STROBE_NOTHING_32, -1};
  const strobe_total_sums sums{1, call.moved.sent_bytes, call.moved.received_bytes,
                               uint64_t(monotonic_ns() - call.began_ns)};
  strobe_total(&key, &sums);
}

int push(Domain* domain, const Name* name, const Payload& payload = {}) {
  Ranges& r = ranges();
  if (r.depth >= kMaxDepth) {
    strobe_count("nvtx_ranges_too_deep", 1);
    return -1;
  }
  int level = 0;
  for (uint32_t i = 0; i < r.depth; i++) level += r.open[i].domain == domain;
  r.open[r.depth++] = {domain, name};
  if (name->region) put(kEnter, name->region);
  if (name->call != nccl::Kind::other && !inside()) call_begins(r, domain, name, payload);
  return level;
}

int pop(Domain* domain, const Payload& payload = {}) {
  Ranges& r = ranges();
  for (uint32_t i = r.depth; i-- > 0;)
    if (r.open[i].domain == domain) {
      const Name* name = r.open[i].name;
      if (name->call != nccl::Kind::other && !inside()) call_ends(r, domain, name, payload);
      if (name->region) put(kLeave, name->region);
      memmove(r.open + i, r.open + i + 1, (r.depth - i - 1) * sizeof(Open));
      r.depth--;
      int level = 0;
      for (uint32_t k = 0; k < r.depth; k++) level += r.open[k].domain == domain;
      return level;
    }
  strobe_count("nvtx_pops_without_push", 1);
  return -1;
}

void mark(const Name* name) {
  if (!name->region) return;
  put(kEnter, name->region);
  put(kLeave, name->region);
}

// What attributes name, or a text in UTF-8 or UTF-32.
Payload payload_of(const auto*) { return {}; }
void mark_named(const auto* named) { mark(name_of(nullptr, named)); }
uint64_t start_named(const auto* named) { return nvtx::start_range(name_of(nullptr, named)->region); }
int push_named(const auto* named) { return push(nullptr, name_of(nullptr, named), payload_of(named)); }
int pop_default() { return pop(nullptr); }

Domain* new_domain(std::string name) {
  if (inside()) return nullptr;
  const Inside here;
  static auto* all = new std::unordered_map<std::string, Names>;  // nodes stay where they are
  std::lock_guard lock(tables());
  Names& names = (*all)[name];
  names.of_nccl = name == "NCCL";
  names.domain = std::move(name);
  static auto* domains = new std::deque<Domain>;
  return &domains->emplace_back(Domain{&names, {}});
}
Domain* new_domain(const auto* name) { return new_domain(std::string(utf8(name))); }
void domain_destroy(Domain*) {}  // open ranges may still name it
const Name* registered(Domain* domain, const auto* text) { return name_of(domain, text); }
void domain_mark(Domain* domain, const Attributes* a) { mark(name_of(domain, a)); }
int domain_push(Domain* domain, const Attributes* a) { return push(domain, name_of(domain, a), payload_of(a)); }
int domain_pop(Domain* domain) { return pop(domain); }
uint64_t domain_start(Domain* domain, const Attributes* a) { return nvtx::start_range(name_of(domain, a)->region); }
void domain_end(Domain*, uint64_t id) { nvtx::end_range(id); }
// By the kernel's number or, as some programs do, by what pthread_self() gives. Others name themselves.
bool is_own(uint32_t thread) { return thread == uint32_t(thread_id()) || thread == uint32_t(pthread_self()); }
void name_thread(uint32_t thread, const auto* text) {
  if (text && is_own(thread)) strobe_name_thread(std::string(utf8(text)).c_str());
}

// The payload extension.
uint64_t add_to_schemas(Domain* domain, const auto* attributes) {
  if (!attributes || inside()) return 0;
  const Inside here;
  std::lock_guard lock(tables());
  return domain_of(domain).schemas.add(*attributes, nvtx::kFirstDynamicId + last_dynamic_id++);
}
uint64_t register_schema(Domain* domain, const nvtx::SchemaAttributes* a) { return add_to_schemas(domain, a); }
uint64_t register_enum(Domain* domain, const nvtx::EnumAttributes* a) { return add_to_schemas(domain, a); }
void mark_payload(Domain* domain, const Data* data, size_t count) { mark(name_in(domain, {data, count})); }
int push_payload(Domain* domain, const Data* data, size_t count) {
  return push(domain, name_in(domain, {data, count}), {data, count});
}
int pop_payload(Domain* domain, const Data* data, size_t count) { return pop(domain, {data, count}); }
uint64_t start_payload(Domain* domain, const Data* data, size_t count) {
  return nvtx::start_range(name_in(domain, {data, count})->region);
}
void end_payload(Domain*, uint64_t id, const Data*, size_t) { nvtx::end_range(id); }
uint8_t is_enabled(Domain*) { return 1; }

struct Hook {
  uint32_t slot;
  void* function;
};
void* pointer(auto* function) { return reinterpret_cast<void*>(function); }
const Hook core_hooks[] = {
    // NvtxCallbackIdCore
    {1, pointer(mark_named<Attributes>)},  {2, pointer(mark_named<char>)},  {3, pointer(mark_named<wchar_t>)},
    {4, pointer(start_named<Attributes>)}, {5, pointer(start_named<char>)}, {6, pointer(start_named<wchar_t>)},
    {8, pointer(push_named<Attributes>)},  {9, pointer(push_named<char>)},  {10, pointer(push_named<wchar_t>)},
    {14, pointer(name_thread<char>)},      {11, pointer(pop_default)},      {7, pointer(nvtx::end_range)},
    {15, pointer(name_thread<wchar_t>)},
};
const Hook core2_hooks[] = {
    // NvtxCallbackIdCore2
    {1, pointer(domain_mark)},          {2, pointer(domain_start)},      {3, pointer(domain_end)},
    {4, pointer(domain_push)},          {5, pointer(domain_pop)},        {10, pointer(registered<char>)},
    {11, pointer(registered<wchar_t>)}, {12, pointer(new_domain<char>)}, {13, pointer(new_domain<wchar_t>)},
    {14, pointer(domain_destroy)},
};
const Hook payload_hooks[] = {
    // NVTX3EXT_CBID_*
    {0, pointer(register_schema)}, {1, pointer(register_enum)}, {2, pointer(mark_payload)}, {3, pointer(push_payload)},
    {4, pointer(pop_payload)},     {5, pointer(start_payload)}, {6, pointer(end_payload)},  {7, pointer(is_enabled)},
};

struct ExportTable {  // NvtxExportTableCallbacks
  size_t struct_size;
  int (*get_module_function_table)(uint32_t module, void**** table, uint32_t* size);
};

void fill(const ExportTable* exported, uint32_t module, const Hook* hooks, size_t count) {
  void*** table = nullptr;
  uint32_t size = 0;
  if (!exported->get_module_function_table(module, &table, &size) || !table) return;
  for (size_t i = 0; i < count; i++)
    if (hooks[i].slot < size && table[hooks[i].slot]) *table[hooks[i].slot] = hooks[i].function;
}

}  // namespace
}  // namespace strobe

extern "C" int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  constexpr uint32_t kCallbacks = 1, kCore = 1, kCore2 = 5;
  // A program in C is recorded from its first range on. One that was recorded before is not begun anew.
  if (strobe::session().generation() == 0) strobe::start_from_environment("nvtx");
  auto* exported = static_cast<const strobe::ExportTable*>(get_export_table(kCallbacks));
  if (exported && exported->struct_size >= sizeof(strobe::ExportTable)) {
    strobe::fill(exported, kCore, strobe::core_hooks, sizeof strobe::core_hooks / sizeof strobe::core_hooks[0]);
    strobe::fill(exported, kCore2, strobe::core2_hooks, sizeof strobe::core2_hooks / sizeof strobe::core2_hooks[0]);
  }
  return 1;  // 0 would make NVTX unload us while other objects still hold our functions
}

// Other extensions (counters, memory) come here, too: what is not ours stays without functions.
extern "C" int InitializeInjectionNvtxExtension(void* module_info) {
  const auto* info = static_cast<const strobe::nvtx::ModuleInfo*>(module_info);
  if (info->module != strobe::nvtx::kPayloadModule || info->compatible >> 8 != 1 || !info->segment_count) return 1;
  const strobe::nvtx::ModuleSegment& segment = info->segments[0];
  for (const strobe::Hook& hook : strobe::payload_hooks)
    if (hook.slot < segment.slot_count) segment.slots[hook.slot] = reinterpret_cast<intptr_t>(hook.function);
  return 1;
}
