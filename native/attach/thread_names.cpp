#include "attach/thread_names.h"

#include <string.h>

#include <algorithm>

#include "core/format/utf8.h"

namespace strobe {

namespace {

constexpr size_t kWord = sizeof(uintptr_t), kMostText = 200, kMostItems = 1 << 14;
enum Kind : uint8_t { kGeneral, kTexts, kSplit };                  // of a dict's keys: DictKeysKind
constexpr uint64_t kInlineValues = 1 << 2, kManagedDict = 1 << 4;  // flags of a type
constexpr size_t kDigitBits = 30;
// What lies before an object with a managed dict, in words.
constexpr uintptr_t kDictBefore = 3, kValuesBefore = 4;

template <class T>
T load(const char* from, size_t offset = 0) {
  T value;
  memcpy(&value, from + offset, sizeof value);
  return value;
}

}  // namespace

uintptr_t ThreadNames::word(uintptr_t at) {
  const char* copied = memory_.read(at, kWord);
  return copied ? load<uintptr_t>(copied) : 0;
}

std::string ThreadNames::text(uintptr_t at) {
  size_t length, width, offset;
  std::string out;
  const char* header = memory_.read(at, layout_.frames.text_bytes);
  if (!header || !layout_.frames.text_facts(header, &length, &width, &offset)) return out;
  length = std::min(length, kMostText);
  const char* data = length ? memory_.read(at + offset, length * width) : nullptr;
  for (size_t i = 0; data && i < length; i++) {
    uint32_t c = 0;
    memcpy(&c, data + i * width, width);
    append_utf8(out, c < ' ' ? ' ' : c);
  }
  return out;
}

uint64_t ThreadNames::number(uintptr_t at) {
  const char* copied = memory_.read(at, layout_.int_digits + 3 * sizeof(uint32_t));
  if (!copied) return 0;
  const auto tag = load<int64_t>(copied, layout_.int_tag);
  const uint64_t digits = layout_.minor < 12 ? uint64_t(tag) : uint64_t(tag) >> 3;
  uint64_t value = 0;
  for (uint64_t i = 0; i < digits && i < 3; i++)
    value |= uint64_t(load<uint32_t>(copied, layout_.int_digits + i * sizeof(uint32_t))) << (i * kDigitBits);
  return value;
}

void ThreadNames::items(uintptr_t dict, const Each& each) {
  const char* copied = memory_.read(dict, layout_.dict_values + kWord);
  if (!copied) return;
  const auto keys = load<uintptr_t>(copied, layout_.dict_keys);
  const auto values = load<uintptr_t>(copied, layout_.dict_values);
  items(keys, values ? values + layout_.values_data : 0, each);
}

void ThreadNames::items(uintptr_t keys, uintptr_t values, const Each& each) {
  const char* head = memory_.read(keys, layout_.keys_data);
  if (!head) return;
  const uint8_t index_bytes = uint8_t(head[layout_.keys_index_bytes]), kind = uint8_t(head[layout_.keys_kind]);
  const auto count = load<uint64_t>(head, layout_.keys_count);
  const size_t entry = (kind == kGeneral ? 3 : 2) * kWord;
  if (kind > kSplit || index_bytes > 24 || count > kMostItems || (kind == kSplit) != (values != 0)) return;
  const uintptr_t first = keys + layout_.keys_data + (uintptr_t(1) << index_bytes);
  constexpr size_t kPiece = 1024;
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t n = std::min<size_t>(kPiece, count - at);
    const ForeignMemory::Part parts[] = {{first + at * entry, n * entry},
                                         {values + at * kWord, values ? n * kWord : 0}};
    const char* copied = memory_.read(parts, values ? 2 : 1);
    if (!copied) return;
    const std::string all(copied, n * entry + (values ? n * kWord : 0));
    for (size_t i = 0; i < n; i++) {
      const auto key = load<uintptr_t>(all.data(), i * entry + (kind == kGeneral ? kWord : 0));
      const auto value = values ? load<uintptr_t>(all.data(), n * entry + i * kWord)
                                : load<uintptr_t>(all.data(), i * entry + entry - kWord);
      if (key && value && !each(key, value)) return;
    }
  }
}

uintptr_t ThreadNames::item(uintptr_t dict, const std::string& name) {
  uintptr_t found = 0;
  if (!dict) return found;
  items(dict, [&](uintptr_t key, uintptr_t value) {
    if (text(key) == name) found = value;
    return !found;
  });
  return found;
}

// Of an instance of a class of Python, which keeps its attributes in values beside the keys of its type, or in a dict.
uintptr_t ThreadNames::attribute(uintptr_t object, const std::string& name) {
  const uintptr_t type = word(object + layout_.frames.code_type);
  const uint64_t flags = type ? word(type + layout_.type_flags) : 0;
  if (!(flags & kManagedDict)) return 0;
  uintptr_t dict = word(object - kDictBefore * kWord), values = 0;
  if (layout_.minor == 11) {
    values = word(object - kValuesBefore * kWord);
  } else if (layout_.minor == 12) {
    if (dict & 1) values = dict + 1, dict = 0;
  } else if (!dict && flags & kInlineValues) {
    values = object + word(type + layout_.type_basic_bytes) + layout_.values_data;
  }
  if (!values) return item(dict, name);
  uintptr_t found = 0;
  items(word(type + layout_.type_keys), values, [&](uintptr_t key, uintptr_t value) {
    if (text(key) == name) found = value;
    return !found;
  });
  return found;
}

std::map<uint64_t, std::string> ThreadNames::read(uintptr_t interpreter) {
  std::map<uint64_t, std::string> out;
  const uintptr_t threading = item(word(interpreter + layout_.modules), "threading");
  const uintptr_t active = threading ? item(word(threading + layout_.module_dict), "_active") : 0;
  if (!active) return out;
  items(active, [&](uintptr_t key, uintptr_t thread) {
    const uintptr_t name = attribute(thread, "_name");
    if (name) out[number(key)] = text(name);
    return true;
  });
  return out;
}

}  // namespace strobe
