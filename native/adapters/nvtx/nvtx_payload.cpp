#include "adapters/nvtx/nvtx_payload.h"

#include <string.h>

#include <algorithm>

namespace strobe::nvtx {

namespace {

// NVTX_PAYLOAD_ENTRY_TYPE_*
enum Type : uint64_t {
  kChar = 1,
  kUInt64 = 18,
  kSize = 22,
  kBytesOfNumbers = 32,
  kRegistered = 80,
  kText = 75,
  kTextUtf8 = 76,
  kTextUtf32 = 78,
  kFirstOfOthers = 1 << 24,  // of schemas and enumerations that are registered
};
// NVTX_PAYLOAD_ENTRY_FLAG_*
constexpr uint64_t kPointer = 1 << 1, kOffsets = 3 << 2, kArray = 7 << 4, kFixedArray = 1 << 4, kMessage = 1 << 10;
// NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_*, NVTX_PAYLOAD_ENUM_ATTR_FIELD_*
constexpr uint64_t kHasEntries = 1 << 4, kHasCount = 1 << 5, kHasStaticSize = 1 << 6, kHasAlign = 1 << 7,
                   kHasId = 1 << 8;
constexpr uint64_t kEnumHasSize = 1 << 4, kEnumHasId = 1 << 5;
constexpr uint64_t kStaticSchema = 1;
constexpr size_t kMostEntries = 4096;

// Bytes of each type, which are its alignment, too; 0: not known. `char` of Linux on x86 has a sign.
constexpr uint8_t kBytes[] = {
    0, 1, 1,  2, 2, 4,  4,  8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8,  8,     // C's integers, those of a given width
    4, 8, 16, 8, 8, 4,  1,  2, 4,                                    // floating point, size, address, characters
    0, 0, 0,  0, 1, 16, 16, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16,        // byte, 128 bits, floating point by width
    0, 0, 0,  0, 2, 0,  4,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  // bfloat16, TF32
    0, 8, 4,  4, 8, 4,  8,  4, 8, 8, 8, 8, 8, 0, 8,                  // ids, category, colour, process, thread, texts
};
static_assert(sizeof kBytes == kRegistered + 1);

bool is_whole_number(uint64_t type) { return (type >= kChar && type <= kUInt64) || type == kSize; }
bool has_sign(uint64_t type) { return type <= kUInt64 && type % 2 == 1; }  // a type without sign follows each with one
uint64_t up_to(uint64_t offset, uint64_t align) { return align > 1 ? (offset + align - 1) / align * align : offset; }

}  // namespace

const Field* Schema::find(std::string_view name) const {
  for (const Field& field : fields)
    if (field.kind == FieldKind::number && field.name == name) return &field;
  return nullptr;
}

const Field* Schema::message() const {
  for (const Field& field : fields)
    if (field.is_message) return &field;
  return nullptr;
}

std::optional<uint64_t> value_of(const Field& field, const Data& data) {
  if (!data.bytes || field.bytes > data.size || field.offset > data.size - field.bytes) return std::nullopt;
  uint64_t value = 0;
  memcpy(&value, static_cast<const char*>(data.bytes) + field.offset, field.bytes);
  const int unused = 64 - 8 * field.bytes;
  return field.is_signed ? uint64_t(int64_t(value << unused) >> unused) : value;
}

Schemas::Layout Schemas::layout_of(const SchemaEntry& entry) const {
  if (entry.flags & kPointer) return {8, 8};
  Layout one{0, 1};
  if (entry.type >= kFirstOfOthers) {
    const auto found = layouts_.find(entry.type);
    if (found != layouts_.end()) one = found->second;
  } else if (entry.type >= kText && entry.type <= kTextUtf32 && entry.detail && !(entry.flags & kArray)) {
    const uint64_t unit = entry.type <= kTextUtf8 ? 1 : entry.type == kTextUtf32 ? 4 : 2;
    return {unit * entry.detail, unit};
  } else if (entry.type <= kRegistered) {
    one = {kBytes[entry.type], kBytes[entry.type]};
  }
  if ((entry.flags & kArray) == kFixedArray) one.bytes *= entry.detail;
  if ((entry.flags & kArray) > kFixedArray) one.bytes = 0;
  return one;
}

uint64_t Schemas::add(const SchemaAttributes& attributes, uint64_t fresh_id) {
  const uint64_t given = attributes.fields & kHasId ? attributes.id : 0;
  const uint64_t id = given ? given : fresh_id;
  const bool has_entries = attributes.fields & kHasEntries && attributes.fields & kHasCount && attributes.entries;
  if (!has_entries || attributes.entry_count > kMostEntries || layouts_.size() >= kMost) return 0;
  const uint64_t cap = attributes.fields & kHasAlign ? attributes.pack_align : 0;
  Schema schema;
  uint64_t next = 0, align = 1;
  bool known = attributes.type == kStaticSchema;  // where the next entry begins
  for (size_t i = 0; i < attributes.entry_count; i++) {
    const SchemaEntry& entry = attributes.entries[i];
    Layout own = layout_of(entry);
    if (cap) own.align = std::min(own.align, cap);
    const bool placed = i == 0 || entry.offset;  // 0 of a later one: where its alignment lets it begin
    const uint64_t offset = placed ? entry.offset : up_to(next, own.align);
    const bool here = own.bytes && (placed || known);
    known = here;
    next = offset + own.bytes;
    align = std::max(align, own.align);
    if (!here || entry.flags & (kPointer | kOffsets | kArray)) continue;
    Field field{entry.name ? entry.name : "", FieldKind::number,  has_sign(entry.type),
                bool(entry.flags & kMessage), uint8_t(own.bytes), offset};
    if (entry.type == kRegistered)
      field.kind = FieldKind::registered;
    else if ((entry.type == kText || entry.type == kTextUtf8) && !entry.detail)
      field.kind = FieldKind::text;
    else if (!is_whole_number(entry.type))
      continue;
    field.is_message &= field.kind != FieldKind::number;
    schema.fields.push_back(std::move(field));
  }
  const uint64_t size = attributes.fields & kHasStaticSize ? attributes.static_size : 0;
  layouts_[id] = {size ? size : known ? up_to(next, align) : 0, align};
  schemas_[id] = std::move(schema);
  return id;
}

uint64_t Schemas::add(const EnumAttributes& attributes, uint64_t fresh_id) {
  const uint64_t given = attributes.fields & kEnumHasId ? attributes.id : 0;
  const uint64_t id = given ? given : fresh_id, bytes = attributes.fields & kEnumHasSize ? attributes.size_of_enum : 0;
  if (bytes > 8 || layouts_.size() >= kMost) return 0;
  layouts_[id] = {bytes, std::max<uint64_t>(bytes, 1)};
  return id;
}

const Schema* Schemas::find(uint64_t id) const {
  const auto found = schemas_.find(id);
  return found == schemas_.end() ? nullptr : &found->second;
}

}  // namespace strobe::nvtx
