// Payloads of NVTX: where the fields of a structure lie, as the compiler and NVTX's rules say.
#include "adapters/nvtx/nvtx_payload.h"

#include <string.h>

#include "tests/check.h"

using namespace strobe::nvtx;

namespace {

constexpr uint64_t kFields = 1 << 2 | 1 << 4 | 1 << 5;  // type, entries, their number
constexpr uint64_t kWithAlign = 1 << 7, kWithId = 1 << 8;
constexpr uint64_t kInt8 = 11, kInt16 = 13, kUInt32 = 16, kDouble = 20, kSize = 22, kCString = 75, kRegistered = 80;

template <size_t N>
uint64_t add(Schemas& schemas, const SchemaEntry (&entries)[N], uint64_t id, uint64_t align = 0, uint64_t type = 1) {
  SchemaAttributes a{};
  a.fields = kFields | kWithId | (align ? kWithAlign : 0);
  a.type = type, a.entries = entries, a.entry_count = N, a.pack_align = align, a.id = id;
  return schemas.add(a, 77);
}

uint64_t value(const Schemas& schemas, uint64_t id, const char* name, const void* bytes, size_t size) {
  const Field* field = schemas.find(id)->find(name);
  CHECK(field);
  return value_of(*field, {id, size, bytes}).value_or(999);
}

void natural_alignment() {
  const struct {
    int8_t a;
    int16_t b;
    uint8_t c;
    size_t d;
    double e;
    uint32_t f;
  } whole = {-1, -2, 3, 4, 5, 6};
  Schemas schemas;
  CHECK(add(schemas,
            {{0, kInt8, "a"}, {0, kInt16, "b"}, {0, 12, "c"}, {0, kSize, "d"}, {0, kDouble, "e"}, {0, kUInt32, "f"}},
            5) == 5);
  const auto of = [&](const char* name) { return int64_t(value(schemas, 5, name, &whole, sizeof whole)); };
  CHECK(of("a") == -1 && of("b") == -2 && of("c") == 3 && of("d") == 4 && of("f") == 6);
  CHECK(!schemas.find(5)->find("e"));                                          // no whole number
  CHECK(value(schemas, 5, "f", &whole, offsetof(decltype(whole), f)) == 999);  // the payload ends before it
  CHECK(value(schemas, 5, "f", &whole, 0) == 999 && value(schemas, 5, "a", nullptr, 8) == 999);
}

void told_offsets_and_packing() {
#pragma pack(push, 1)
  const struct {
    int8_t a;
    size_t b;
  } packed = {1, 2};
#pragma pack(pop)
  const uint32_t apart[] = {0, 0, 0, 7};
  Schemas schemas;
  add(schemas, {{0, kInt8, "a"}, {0, kSize, "b"}}, 1, 1);
  add(schemas, {{0, kInt8, "a"}, {0, kUInt32, "b", nullptr, 0, 12}}, 2);
  CHECK(value(schemas, 1, "b", &packed, sizeof packed) == 2);
  CHECK(value(schemas, 2, "b", apart, sizeof apart) == 7);
}

void what_lies_between() {
  struct Inner {
    int8_t x;
    uint32_t y;
  };
  const struct {
    Inner inner;
    int8_t operation;
    char text[5];
    uint32_t numbers[3];
    void* pointer;
    uint32_t last;
  } whole = {{}, 0, "", {}, nullptr, 9};
  Schemas schemas;
  EnumAttributes operations{};
  operations.fields = 1 << 4, operations.size_of_enum = 1;  // no id: it gets the one that is offered
  CHECK(schemas.add(operations, kFirstDynamicId) == kFirstDynamicId);
  const uint64_t inner = 1 << 24;
  add(schemas, {{0, kInt8, "x"}, {0, kUInt32, "y"}}, inner);
  add(schemas,
      {{0, inner, "inner"},
       {0, kFirstDynamicId, "operation"},
       {0, kCString, "text", nullptr, 5},
       {1 << 4, kUInt32, "numbers", nullptr, 3},
       {1 << 1, kUInt32, "pointer"},
       {0, kUInt32, "last"}},
      3);
  CHECK(value(schemas, 3, "last", &whole, sizeof whole) == 9);
  // Behind what has no size of its own nothing is known, unless it is told.
  add(schemas, {{0, 1 << 25, "of nobody"}, {0, kUInt32, "lost"}, {0, kUInt32, "told", nullptr, 0, 4}}, 4);
  CHECK(!schemas.find(4)->find("lost") && schemas.find(4)->find("told"));
  add(schemas, {{0, kInt8, "a"}, {0, kUInt32, "lost"}}, 6, 0, 2);  // a dynamic schema
  CHECK(schemas.find(6)->find("a"));
}

void messages() {
  Schemas schemas;
  add(schemas, {{1 << 10, kCString, "text"}}, 1);
  add(schemas, {{1 << 10, kRegistered, "text"}}, 2);
  add(schemas, {{1 << 10, kUInt32, "number"}}, 3);
  CHECK(schemas.find(1)->message()->kind == FieldKind::text);
  CHECK(schemas.find(2)->message()->kind == FieldKind::registered);
  CHECK(!schemas.find(3)->message());
}

void what_cannot_be() {
  Schemas schemas;
  SchemaAttributes nothing{};
  CHECK(schemas.add(nothing, 1) == 0 && !schemas.find(1));
  const SchemaEntry one[] = {{0, kInt8, "a"}};
  size_t kept = 0;
  for (uint64_t id = 1; id < 10000; id++) kept += add(schemas, one, id) == id;
  CHECK(kept == Schemas::kMost);
}

}  // namespace

int main() {
  natural_alignment();
  told_offsets_and_packing();
  what_lies_between();
  messages();
  what_cannot_be();
  return 0;
}
