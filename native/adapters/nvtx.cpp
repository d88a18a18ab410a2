// nvtx.cpp - injection library for NVTX ranges and marks: each shared object that contains NVTX loads the library named
// by NVTX_INJECTION64_PATH at its first NVTX call and calls InitializeInjectionNvtx2; we then fill its function table.
//
// Slot numbers and layouts are those of NVTX 3 (nvtxDetail/nvtxTypes.h, nvToolsExt.h; Apache-2.0 with LLVM exception),
// declared here so that no NVTX is needed to build; a test drives this through the genuine `nvtx` package.
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <memory>
#include <string>

#include "core/ring.h"
#include "include/strobe.h"

namespace strobe {
namespace {

struct Attributes {  // nvtxEventAttributes_v2
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};
enum MessageType { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct Domain {
  std::string name;
};

uint32_t region_of(const Domain* domain, std::string_view text) {
  // torch.autograd.profiler.emit_nvtx makes every text unique ("aten::conv2d, seq = 1, op_id = 2, sizes = [...]"): keep
  // the name.
  for (const char* field : {", seq = ", ", op_id = "})
    if (size_t at = text.find(field); at != text.npos) text = text.substr(0, at);
  char name[1024];
  size_t n = text.size() < sizeof name - 1 ? text.size() : sizeof name - 1;
  memcpy(name, text.data(), n);
  name[n] = 0;
  strobe_region_info info{};
  info.name = name;
  info.module = domain ? domain->name.c_str() : nullptr;
  info.paradigm = STROBE_NVTX;
  info.role = STROBE_ROLE_RANGE;
  return strobe_region(&info);
}

std::string narrow(const wchar_t* text) {  // UTF-32 to UTF-8
  std::string out;
  for (; text && *text; text++) {
    uint32_t c = uint32_t(*text);
    if (c < 0x80)
      out += char(c);
    else if (c < 0x800)
      out += char(0xC0 | c >> 6), out += char(0x80 | (c & 63));
    else if (c < 0x10000)
      out += char(0xE0 | c >> 12), out += char(0x80 | (c >> 6 & 63)), out += char(0x80 | (c & 63));
    else
      out += char(0xF0 | c >> 18), out += char(0x80 | (c >> 12 & 63)), out += char(0x80 | (c >> 6 & 63)),
          out += char(0x80 | (c & 63));
  }
  return out;
}

uint32_t region_of(const Domain* domain, const Attributes* a) {
  if (!a || !a->message || a->message_type == kNoMessage) return region_of(domain, std::string_view("<unnamed range>"));
  if (a->message_type == kUnicode)
    return region_of(domain, std::string_view(narrow(static_cast<const wchar_t*>(a->message))));
  if (a->message_type == kRegistered)
    return region_of(domain, std::string_view(*static_cast<const std::string*>(a->message)));
  return region_of(domain, std::string_view(static_cast<const char*>(a->message)));
}

// Push and pop nest per (thread, domain); a pop names nothing, so the thread remembers.
constexpr uint32_t kMaxDepth = 96;
struct Open {
  const Domain* domain;
  uint32_t region;
};
struct Ranges {
  uint32_t depth = 0;
  Open open[kMaxDepth];
};
thread_local std::unique_ptr<Ranges> open_ranges;  // a pointer: static TLS is scarce (see itt.cpp)

Ranges& ranges() {
  if (!open_ranges) open_ranges = std::make_unique<Ranges>();
  return *open_ranges;
}

int push(const Domain* domain, uint32_t region) {
  Ranges& r = ranges();
  if (r.depth >= kMaxDepth) {
    strobe_count("nvtx_ranges_too_deep", 1);
    return -1;
  }
  int level = 0;
  for (uint32_t i = 0; i < r.depth; i++) level += r.open[i].domain == domain;
  r.open[r.depth++] = {domain, region};
  put(kEnter, region);
  return level;
}

int pop(const Domain* domain) {
  Ranges& r = ranges();
  for (uint32_t i = r.depth; i-- > 0;)
    if (r.open[i].domain == domain) {
      put(kLeave, r.open[i].region);
      memmove(r.open + i, r.open + i + 1, (r.depth - i - 1) * sizeof(Open));
      r.depth--;
      int level = 0;
      for (uint32_t k = 0; k < r.depth; k++) level += r.open[k].domain == domain;
      return level;
    }
  strobe_count("nvtx_pops_without_push", 1);
  return -1;
}

void mark(uint32_t region) {
  put(kEnter, region);
  put(kLeave, region);
}

std::string_view ascii(const char* text) { return text ? text : ""; }

void mark_ex(const Attributes* a) { mark(region_of(nullptr, a)); }
void mark_a(const char* text) { mark(region_of(nullptr, ascii(text))); }
void mark_w(const wchar_t* text) { mark(region_of(nullptr, std::string_view(narrow(text)))); }
int push_ex(const Attributes* a) { return push(nullptr, region_of(nullptr, a)); }
int push_a(const char* text) { return push(nullptr, region_of(nullptr, ascii(text))); }
int push_w(const wchar_t* text) { return push(nullptr, region_of(nullptr, std::string_view(narrow(text)))); }
int pop_default() { return pop(nullptr); }

// Start/end ranges may begin and end on different threads and overlap freely: they do not nest in a location, so they
// are counted only.
uint64_t start_counted() {
  strobe_count("nvtx_start_end_ranges_not_recorded", 1);
  return 1;
}
uint64_t start_ex(const Attributes*) { return start_counted(); }
uint64_t start_text(const void*) { return start_counted(); }
void end(uint64_t) {}

Domain* domain_create_a(const char* name) { return new Domain{name ? name : ""}; }
Domain* domain_create_w(const wchar_t* name) { return new Domain{narrow(name)}; }
void domain_destroy(Domain*) {}  // open ranges may still name it
const std::string* register_a(Domain*, const char* text) { return new std::string(text ? text : ""); }
const std::string* register_w(Domain*, const wchar_t* text) { return new std::string(narrow(text)); }
void domain_mark(const Domain* domain, const Attributes* a) { mark(region_of(domain, a)); }
int domain_push(const Domain* domain, const Attributes* a) { return push(domain, region_of(domain, a)); }
int domain_pop(const Domain* domain) { return pop(domain); }
uint64_t domain_start(const Domain*, const Attributes*) { return start_counted(); }
void domain_end(const Domain*, uint64_t) {}
void name_thread_a(uint32_t, const char* text) {
  if (text) strobe_name_thread(text);
}

struct Hook {
  uint32_t slot;
  void* function;
};
template <class F>
void* pointer(F* f) {
  return reinterpret_cast<void*>(f);
}
const Hook core_hooks[] = {
    // NvtxCallbackIdCore
    {1, pointer(mark_ex)},    {2, pointer(mark_a)},     {3, pointer(mark_w)},       {4, pointer(start_ex)},
    {5, pointer(start_text)}, {6, pointer(start_text)}, {7, pointer(end)},          {8, pointer(push_ex)},
    {9, pointer(push_a)},     {10, pointer(push_w)},    {11, pointer(pop_default)}, {14, pointer(name_thread_a)},
};
const Hook core2_hooks[] = {
    // NvtxCallbackIdCore2
    {1, pointer(domain_mark)},     {2, pointer(domain_start)},     {3, pointer(domain_end)},
    {4, pointer(domain_push)},     {5, pointer(domain_pop)},       {10, pointer(register_a)},
    {11, pointer(register_w)},     {12, pointer(domain_create_a)}, {13, pointer(domain_create_w)},
    {14, pointer(domain_destroy)},
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
  auto* exported = static_cast<const strobe::ExportTable*>(get_export_table(kCallbacks));
  if (exported && exported->struct_size >= sizeof(strobe::ExportTable)) {
    strobe::fill(exported, kCore, strobe::core_hooks, sizeof strobe::core_hooks / sizeof strobe::core_hooks[0]);
    strobe::fill(exported, kCore2, strobe::core2_hooks, sizeof strobe::core2_hooks / sizeof strobe::core2_hooks[0]);
  }
  return 1;  // 0 would make NVTX unload us while other objects still hold our functions
}
