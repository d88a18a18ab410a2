#include "formats/perfetto/perfetto_texts.h"

#include "formats/encoding/json_strings.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {
constexpr size_t kMostCopied = 64u << 20, kCopiedOfRead = 16;
constexpr int kDeepestValue = 32;
}  // namespace

std::string_view PerfettoTexts::name(uint32_t sequence_id, const PerfettoEvent& event) {
  if (!event.has_name) return {};
  return event.name_iid ? names.find(sequence_id, PerfettoNames::kEventNames, event.name_iid) : event.name;
}

uint32_t PerfettoTexts::text(const PerfettoTarget& to, PerfettoNames::Kind kind, uint64_t iid, bool as_json) {
  PerfettoNames::Text* found = names.entry(to.sequence, kind, iid);
  if (found)
    for (const PerfettoNames::Known& known : found->known)
      if (known.process == to.process && known.as_json == as_json) return known.id;
  std::string quoted;
  const std::string_view plain = found ? std::string_view(found->text) : std::string_view();
  if (as_json) json::append_text(quoted, plain);
  const uint32_t id = to.out.text(as_json ? quoted : plain);
  if (found) found->known.push_back({to.process, id, as_json});
  return id;
}

uint32_t PerfettoTexts::name_text(const PerfettoTarget& to, const PerfettoEvent& event) {
  if (event.has_name && event.name_iid) return text(to, PerfettoNames::kEventNames, event.name_iid);
  return to.out.text(name(to.sequence, event));
}

uint32_t PerfettoTexts::category_text(const PerfettoTarget& to, const PerfettoEvent& event) {
  if (event.categories.empty() && event.category_iids.size() == 1)
    return text(to, PerfettoNames::kCategories, event.category_iids[0]);
  std::vector<std::string_view> found = categories(to.sequence, event);
  for (std::string_view& each : found) each = copied(each);
  return to.out.text(joined(found));
}

std::string_view PerfettoTexts::copied(std::string_view shared) {
  if (shared.size() <= kShortText) return shared;
  copied_bytes += shared.size();
  if (copied_bytes <= kMostCopied + kCopiedOfRead * bytes_read) return shared;
  cut++;
  return shared.substr(0, kShortText);
}

std::vector<std::string_view> PerfettoTexts::categories(uint32_t sequence_id, const PerfettoEvent& event) {
  std::vector<std::string_view> found = event.categories;
  for (const uint64_t iid : event.category_iids)
    found.push_back(names.find(sequence_id, PerfettoNames::kCategories, iid));
  return found;
}

std::string PerfettoTexts::joined(const std::vector<std::string_view>& texts, size_t from) {
  std::string out;
  for (size_t i = from; i < texts.size(); i++) {
    if (i > from) out += ',';
    out += texts[i];
  }
  return out;
}

std::string_view PerfettoTexts::key_of(uint32_t sequence_id, std::string_view annotation) {
  Field field;
  for (Message message(annotation); message.next(field);) {
    if (field.number == 1) return names.find(sequence_id, PerfettoNames::kAnnotationNames, field.value);
    if (field.number == 10) return field.text();
  }
  return {};
}

uint64_t PerfettoTexts::key_iid(std::string_view annotation) {
  Field field;
  for (Message message(annotation); message.next(field);) {
    if (field.number == 1) return field.value;
    if (field.number == 10) return 0;
  }
  return 0;
}

uint64_t PerfettoTexts::value_iid(std::string_view annotation) {
  uint64_t iid = 0;
  Field field;
  for (Message message(annotation); message.next(field);) {
    if (field.number == 1 || field.number == 10) continue;
    if (field.number != 17 || iid) return 0;
    iid = field.value;
  }
  return iid;
}

void PerfettoTexts::append_value(uint32_t sequence_id, std::string& out, std::string_view annotation, int depth) {
  Field field;
  char kind = 0;  // of a value that has several parts
  const size_t start = out.size();
  for (Message message(annotation); message.next(field);) switch (field.number) {
      case 2:
        out += field.value ? "true" : "false";
        break;
      case 3:
      case 7:
        out += std::to_string(field.value);
        break;
      case 4:
        out += std::to_string(field.whole());
        break;
      case 5:
        json::append_real(out, field.real());
        break;
      case 6:
        json::append_text(out, field.text());
        break;
      case 9:
        out += field.text();
        break;
      case 17:
        json::append_text(out, copied(names.find(sequence_id, PerfettoNames::kAnnotationValues, field.value)));
        break;
      case 8:
        append_nested(out, field.text(), depth + 1);
        break;
      case 14:
        out += "\"protobuf ", json::append_hex(out, field.text()), out += '"';
        break;
      case 11:
      case 12: {
        if (depth >= kDeepestValue) break;
        out += kind ? ',' : field.number == 11 ? '{' : '[';
        kind = field.number == 11 ? '}' : ']';
        if (field.number == 11) json::append_text(out, copied(key_of(sequence_id, field.text()))), out += ':';
        append_value(sequence_id, out, field.text(), depth + 1);
        break;
      }
    }
  if (kind) out += kind;
  if (out.size() == start) out += "null";
}

void PerfettoTexts::append_nested(std::string& out, std::string_view value, int depth) {
  Field field;
  std::vector<std::string_view> keys, values, items;
  uint64_t kind = 0;
  const size_t start = out.size();
  for (Message message(value); message.next(field);) {
    if (field.number == 1) kind = field.value;
    if (field.number == 2) keys.push_back(field.text());
    if (field.number == 3) values.push_back(field.text());
    if (field.number == 4) items.push_back(field.text());
    if (field.number == 5) out += std::to_string(field.whole());
    if (field.number == 6) json::append_real(out, field.real());
    if (field.number == 7) out += field.value ? "true" : "false";
    if (field.number == 8) json::append_text(out, field.text());
  }
  if (kind && depth < kDeepestValue) {
    out += kind == 1 ? '{' : '[';
    const auto& parts = kind == 1 ? values : items;
    for (size_t i = 0; i < parts.size(); i++) {
      if (i) out += ',';
      if (kind == 1) json::append_text(out, i < keys.size() ? keys[i] : ""), out += ':';
      append_nested(out, parts[i], depth + 1);
    }
    out += kind == 1 ? '}' : ']';
  }
  if (out.size() == start) out += "null";
}

std::vector<std::optional<std::string_view>> PerfettoTexts::texts_in(std::string_view annotation) {
  std::vector<std::optional<std::string_view>> parts;
  Field field, inner;
  for (Message message(annotation); message.next(field);) {
    if (field.number != 12) continue;
    parts.emplace_back();
    for (Message part(field.text()); part.next(inner);)
      if (inner.number == 6) parts.back() = inner.text();
  }
  return parts;
}

}  // namespace strobe
