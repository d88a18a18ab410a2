#include "formats/perfetto/perfetto_event.h"

#include "formats/encoding/json_strings.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

bool PerfettoEvent::read(std::string_view bytes) {
  PerfettoEvent& e = *this;
  e.type = e.track = e.name_iid = e.location_iid = e.value = 0;
  e.has_track = e.has_name = e.has_value = e.value_is_real = false;
  e.name = e.location = e.legacy = e.callstack = {};
  e.category_iids.clear(), e.categories.clear(), e.annotations.clear(), e.flows.clear(), e.ends.clear();
  e.counter_tracks.clear(), e.real_counter_tracks.clear(), e.counter_values.clear(), e.real_counter_values.clear();
  e.said.clear();
  e.unknown = 0;
  Field field;
  Message message(bytes);
  const auto add = [&](std::vector<uint64_t>& to, protobuf::WireType packed) {
    each_number(field, packed, [&](uint64_t number) { to.push_back(number); });
  };
  while (message.next(field)) switch (field.number) {
      case 1:
      case 2:
      case 8:
      case 16:
      case 17:
      case 20:
        break;  // times of the thread, of old writers
      case 3:
        add(e.category_iids, protobuf::kVarint);
        break;
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
      case 12:
        add(e.counter_values, protobuf::kVarint);
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
      case 31:
        add(e.counter_tracks, protobuf::kVarint);
        break;
      case 33:
        e.location = field.text();
        break;
      case 34:
        e.location_iid = field.value;
        break;
      case 36:
        add(e.flows, protobuf::kVarint);
        break;
      case 42:
        add(e.ends, protobuf::kVarint);
        break;
      case 44:
        e.value = field.value, e.has_value = e.value_is_real = true;
        break;
      case 45:
        add(e.real_counter_tracks, protobuf::kVarint);
        break;
      case 46:
        add(e.real_counter_values, protobuf::kFixed64);
        break;
      case 47:
        add(e.flows, protobuf::kFixed64);
        break;
      case 48:
        add(e.ends, protobuf::kFixed64);
        break;
      case 52:
        e.said.emplace_back("correlation_id", std::to_string(field.value));
        break;
      case 53:
        e.said.emplace_back("correlation_id", "");
        json::append_text(e.said.back().second, field.text());
        break;
      case 55:
        e.callstack = field.text();
        break;
      default:
        unknown++;
    }
  return message.ok();
}

}  // namespace strobe
