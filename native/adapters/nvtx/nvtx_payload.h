// nvtx_payload.h - what programs attach to NVTX events: structures of their own, described once by a schema. Read here
// are whole numbers and the event's message; the rest of a structure is passed over.
//
// Layouts and numbers are those of NVTX 3 and its payload extension (nvToolsExt.h, nvToolsExtPayload.h; Apache-2.0 with
// LLVM exception), declared here so that no NVTX is needed to build; tests/record/test_nvtx.py compares them with the
// genuine header.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strobe::nvtx {

constexpr int32_t kExtendedPayload = int32_t(0xDFBD0009);  // payloadType of an event: its payload is an array of Data
constexpr uint64_t kFirstDynamicId = uint64_t(1) << 32;
constexpr uint16_t kPayloadModule = 2;

struct Attributes {  // nvtxEventAttributes_v2
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, payload_count;  // the count of an extended payload's parts
  uint64_t payload;
  int32_t message_type;
  const void* message;
};
enum MessageType { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegisteredMessage = 3 };
struct Data {  // nvtxPayloadData_t
  uint64_t schema;
  size_t size;
  const void* bytes;
};
struct SchemaEntry {  // nvtxPayloadSchemaEntry_t
  uint64_t flags, type;
  const char *name, *description;
  uint64_t detail, offset;
  const void *semantics, *reserved;
};
struct SchemaAttributes {  // nvtxPayloadSchemaAttr_t
  uint64_t fields;
  const char* name;
  uint64_t type, flags;
  const SchemaEntry* entries;
  size_t entry_count, static_size, pack_align;
  uint64_t id;
  void* extension;
};
struct EnumAttributes {  // nvtxPayloadEnumAttr_t
  uint64_t fields;
  const char* name;
  const void* entries;
  size_t entry_count, size_of_enum;
  uint64_t id;
  void* extension;
};
struct ModuleSegment {  // nvtxExtModuleSegment_t
  size_t id, slot_count;
  intptr_t* slots;
};
struct ModuleInfo {  // nvtxExtModuleInfo_t
  uint16_t nvtx_version, struct_size, module, compatible;
  size_t segment_count;
  ModuleSegment* segments;
  intptr_t (*get_export)(uint32_t);
  const void* more;
};

enum class FieldKind : uint8_t { number, text, registered };

struct Field {
  std::string name;
  FieldKind kind;
  bool is_signed, is_message;
  uint8_t bytes;
  uint64_t offset;
};

struct Schema {
  std::vector<Field> fields;

  const Field* find(std::string_view name) const;
  const Field* message() const;
};

// The bits of a field, in the width of its type; nothing where the payload ends before it.
std::optional<uint64_t> value_of(const Field& field, const Data& data);

// The schemas and enumerations of a domain. Whoever calls holds a lock.
class Schemas {
 public:
  static constexpr size_t kMost = 4096;  // a program that registers one an event must not fill memory

  // Returns the id, `fresh_id` for one that has none of its own; 0: it was not understood.
  uint64_t add(const SchemaAttributes& attributes, uint64_t fresh_id);
  uint64_t add(const EnumAttributes& attributes, uint64_t fresh_id);
  const Schema* find(uint64_t id) const;

 private:
  struct Layout {
    uint64_t bytes, align;
  };
  Layout layout_of(const SchemaEntry& entry) const;
  std::map<uint64_t, Schema> schemas_;
  std::map<uint64_t, Layout> layouts_;  // of schemas and enumerations, which others may hold
};

}  // namespace strobe::nvtx
