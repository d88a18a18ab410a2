#include "formats/perfetto/perfetto_event.h"

#include <algorithm>

#include "formats/encoding/json_strings.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {
// Fields with numbers: one, or many of them packed.
struct Numbers {
  uint32_t field;
  std::vector<uint64_t> PerfettoEvent::* to;
  protobuf::WireType packed;
};
constexpr Numbers kNumbers[] = {
    {3, &PerfettoEvent::category_iids, protobuf::kVarint},
    {12, &PerfettoEvent::counter_values, protobuf::kVarint},
    {31, &PerfettoEvent::counter_tracks, protobuf::kVarint},
    {36, &PerfettoEvent::flows, protobuf::kVarint},
    {42, &PerfettoEvent::ends, protobuf::kVarint},
    {45, &PerfettoEvent::real_counter_tracks, protobuf::kVarint},
    {46, &PerfettoEvent::real_counter_values, protobuf::kFixed64},
    {47, &PerfettoEvent::flows, protobuf::kFixed64},
    {48, &PerfettoEvent::ends, protobuf::kFixed64},
};
}  // namespace

bool PerfettoEvent::read(std::string_view bytes) {
  PerfettoEvent& e = *this;
  e.type = e.track = e.name_iid = e.location_iid = e.value = 0;
  e.has_track = e.has_name = e.has_value = e.value_is_real = false;
  e.name = e.location = e.legacy = e.callstack = {};
  for (const Numbers& each : kNumbers) (e.*each.to).clear();
  e.categories.clear(), e.annotations.clear();
  e.details.clear();
  e.unknown = 0;
  Field field;
  Message message(bytes);
  while (message.next(field)) switch (field.number) {
      case 1:
      case 2:
      case 8:
      case 16:
      case 17:
      case 20:
        break;  // times of the thread, of old writers
      case 4:
        e.annotations.push_back(field.text());
        break;
      case 6:
        e.legacy = field.text();
        break;
      case 9:
        e.type = field.value;
        break;
      case 10:
        e.name_iid = field.value, e.has_name = true;
        break;
      case 11:
        e.track = field.value, e.has_track = true;
        break;
      case 22:
        e.categories.push_back(field.text());
        break;
      case 23:
        e.name = field.text(), e.has_name = true;
        break;
      case 30:
        e.value = field.value, e.has_value = true;
        break;
      case 33:
        e.location = field.text();
        break;
      case 34:
        e.location_iid = field.value;
        break;
      case 44:
        e.value = field.value, e.has_value = e.value_is_real = true;
        break;
      case 52:
        e.details.emplace_back("correlation_id", std::to_string(field.value));
        break;
      case 53:
        e.details.emplace_back("correlation_id", json::quoted(field.text()));
        break;
      case 55:
        e.callstack = field.text();
        break;
      default: {
        const Numbers* found = std::ranges::find(kNumbers, field.number, &Numbers::field);
        if (found == std::end(kNumbers))
          unknown++;
        else
          each_number(field, found->packed, [&](uint64_t number) { (e.*found->to).push_back(number); });
      }
    }
  return message.ok();
}

}  // namespace strobe
