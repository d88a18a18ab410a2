// otf2_import_marks.cpp - events that become marks.
#include "formats/otf2/otf2_import_location.h"

#include <string.h>
#include <algorithm>
#include <string_view>

#include "formats/encoding/json_strings.h"
#include "formats/otf2/otf2_records.h"

namespace strobe::otf2 {

void LocationEvents::mark(std::string_view name, std::string_view arguments) {
  TableRow row(schema::marks::number);
  row.set(schema::marks::time_ns, ns_), row.set(schema::marks::name, process_.out.text(name));
  row.set(schema::marks::category, process_.out.text("otf2"));
  if (!arguments.empty()) row.set(schema::marks::arguments, process_.out.text(arguments));
  process_.out.row(location(), row);
}

// Events that nothing else becomes of: a mark with the fields of the record.
bool LocationEvents::other_event(uint8_t type, Bytes in) {
  const Shape* shape = std::ranges::find(kShapes, type, &Shape::type);
  if (shape == std::end(kShapes)) {
    unknown_ = "event " + std::to_string(type);
    return true;
  }
  scratch_.assign(1, '{');
  for (const char* field = shape->fields; *field;) {
    const char kind = *field;
    const char* name = field + 2;
    const char* comma = strchr(name, ',');
    const std::string_view key(name, comma ? size_t(comma - name) : strlen(name));
    field = comma ? comma + 1 : name + key.size();
    Value value{};
    switch (kind) {
      case 'b':
        value = {Type::u8, in.u8()};
        break;
      case 'u':
        value = {Type::u32, in.id()};
        break;
      case 'U':
        value = {Type::u64, in.number()};
        break;
      case 'I':
        value = {Type::i64, in.number()};
        break;
      case 'c':
        value = {Type::comm, map(Type::comm, in.id())};
        break;
      case 'g':
        value = {Type::group, map(Type::group, in.id())};
        break;
      case 'w':
        value = {Type::rma_window, map(Type::rma_window, in.id())};
        break;
      case 'h':
        value = {Type::io_handle, map(Type::io_handle, in.id())};
        break;
      case 'f':
        value = {Type::io_file, map(Type::io_file, in.id())};
        break;
    }
    if (scratch_.size() > 1) scratch_ += ", ";
    json::append_text(scratch_, key);
    scratch_ += ": " + process_.json(value);
  }
  if (!in.ok()) return false;
  mark(shape->name, scratch_.size() > 1 ? scratch_ + "}" : "");
  return true;
}

}  // namespace strobe::otf2
