#include "formats/perfetto/perfetto_tables.h"

#include <stdlib.h>

#include "formats/encoding/json_strings.h"

namespace strobe {

using protobuf::Field;
using protobuf::Message;

namespace {
constexpr size_t kMostFlows = 1 << 20;  // that began and did not end
// Annotations of this program's exports: an end of a flow; a span that was cut; an argument, and arguments of a mark,
// that no other way gives again.
constexpr std::string_view kFlowKey = "strobe.flow", kCutKey = "strobe.cut", kArgumentKey = "strobe.argument",
                           kArgumentsKey = "strobe.arguments";
}  // namespace

bool PerfettoTables::details(const PerfettoTarget& to, const PerfettoEvent& e, std::string& rows) {
  bool cut = false;
  TableRow row;
  uint32_t table = kNoTable;
  int before = -1;  // the column before: a table's columns come in order
  std::string value;
  const auto flush = [&] {
    if (table != kNoTable && !row.empty()) row.append_to(rows);
    table = kNoTable;
  };
  const auto add = [&](uint32_t key, uint32_t text) {
    TableRow argument_row(schema::arguments::number);
    argument_row.set(schema::arguments::key, key);
    argument_row.set(schema::arguments::value, text);
    argument_row.append_to(rows);
  };
  const auto argument = [&](std::string_view key) { add(to.out.text(key), to.out.text(value)); };
  for (const std::string_view annotation : e.annotations) {
    const std::string_view key = texts_.key_of(to.sequence, annotation);
    cut = cut || key == kCutKey;
    if (key == kFlowKey || key == kCutKey) continue;
    if (own_ && key == kArgumentKey) {
      const std::vector<std::optional<std::string_view>> parts = PerfettoTexts::texts_in(annotation);
      if (parts.size() == 2) value = parts[1].value_or(""), argument(parts[0].value_or(""));
      continue;
    }
    const SchemaTables::Column* exported = schema_.exported_column(key);
    if (!exported || !schema_.layouts()[exported->table].of_spans) {
      const uint64_t interned_key = PerfettoTexts::key_iid(annotation),
                     interned_value = PerfettoTexts::value_iid(annotation);
      const uint32_t key_text =
          interned_key ? texts_.text(to, PerfettoNames::kAnnotationNames, interned_key) : to.out.text(key);
      if (interned_value) {
        add(key_text, texts_.text(to, PerfettoNames::kAnnotationValues, interned_value, true));
        continue;
      }
      value.clear();
      texts_.append_value(to.sequence, value, annotation);
      add(key_text, to.out.text(value));
      continue;
    }
    const auto& [in, column, type] = *exported;
    const bool begins = column == SchemaTables::kNewRow;
    if (in != table || column <= before || begins) flush(), row.start(table = in), before = -1;
    if (begins) continue;
    before = column;
    cell(to, row, *exported, annotation);
  }
  flush();
  for (const auto& [key, text] : e.details) value = text, argument(key);
  if (!e.callstack.empty()) {
    value.assign(1, '[');
    Field field, inner;
    for (Message message(e.callstack); message.next(field);) {
      std::string frame_text, file, line;
      for (Message frame(field.text()); frame.next(inner);) {
        if (inner.number == 1) frame_text = inner.text();
        if (inner.number == 2) file = inner.text();
        if (inner.number == 3) line = std::to_string(inner.value);
      }
      if (!file.empty()) frame_text.append(" (").append(file);
      if (!file.empty() && !line.empty()) frame_text.append(":").append(line);
      if (!file.empty()) frame_text += ')';
      if (value.size() > 1) value += ',';
      json::append_text(value, frame_text);
    }
    value += ']';
    argument("callstack");
  }
  return cut;
}

void PerfettoTables::cell(const PerfettoTarget& to, TableRow& row, const SchemaTables::Column& of,
                          std::string_view annotation) {
  const auto [table, column, type] = of;
  Field field;
  for (Message message(annotation); message.next(field);) {
    if (field.number == 4 && type == CellType::integer) row.set(column, field.whole());
    if (field.number == 5 && type == CellType::real) row.set_real(column, field.real());
    if (field.number == 6 && type == CellType::text) row.set(column, to.out.text(field.text()));
    if (field.number == 17 && type == CellType::text)
      row.set(column, texts_.text(to, PerfettoNames::kAnnotationValues, field.value));
  }
}

bool PerfettoTables::exported_row(const PerfettoTarget& to, const PerfettoEvent& event, uint32_t location, int64_t ns) {
  TableRow row;
  uint32_t table = kNoTable;
  for (const std::string_view annotation : event.annotations) {
    const SchemaTables::Column* column = schema_.exported_column(texts_.key_of(to.sequence, annotation));
    if (!column || schema_.layouts()[column->table].of_spans || (table != kNoTable && column->table != table))
      return false;
    if (table == kNoTable) row.start(table = column->table);
    if (column->number != SchemaTables::kNewRow) cell(to, row, *column, annotation);
  }
  if (table == kNoTable) return false;
  const auto& columns = schema_.layouts()[table].columns;
  for (size_t i = 0; i < columns.size(); i++)
    if (columns[i].name == "time_ns") row.set(i, ns);
  to.out.row(location, row);
  return true;
}

void PerfettoTables::mark(const PerfettoTarget& to, const PerfettoEvent& e, uint32_t location, int64_t ns) {
  if (exported_row(to, e, location, ns)) return;
  TableRow row(schema::marks::number);
  row.set(schema::marks::time_ns, ns);
  row.set(schema::marks::name, texts_.name_text(to, e));
  row.set(schema::marks::category, texts_.category_text(to, e));
  std::string arguments, whole;
  for (const std::string_view annotation : e.annotations) {
    const std::string_view key = texts_.key_of(to.sequence, annotation);
    if (key == kFlowKey) continue;
    if (key == kArgumentsKey) {
      texts_.append_value(to.sequence, whole, annotation);
      continue;
    }
    arguments += arguments.empty() ? '{' : ',';
    json::append_text(arguments, texts_.copied(key));
    arguments += ':';
    texts_.append_value(to.sequence, arguments, annotation);
  }
  for (const auto& [key, value] : e.details) {
    arguments += arguments.empty() ? '{' : ',';
    json::append_text(arguments, key);
    arguments += ':', arguments += value;
  }
  if (!arguments.empty()) whole = arguments + '}';
  if (!whole.empty()) row.set(schema::marks::arguments, to.out.text(whole));
  to.out.row(location, row);
}

bool PerfettoTables::flows(const PerfettoTarget& to, const PerfettoEvent& e, uint32_t location, int64_t ns) {
  if (e.flows.empty() && e.ends.empty()) return false;
  using Text = std::optional<uint32_t>;
  const auto add = [&](const uint64_t* id, Text phase, Text flow_name, Text of, Text category) {
    TableRow row;
    const auto set = [&](const SchemaColumn& column, Text value) {
      if (value) row.set(column, *value);
    };
    row.start(schema::flows::number);
    row.set(schema::flows::time_ns, ns);
    if (id) row.set(schema::flows::flow, int64_t(*id));
    set(schema::flows::flow_name, flow_name), set(schema::flows::phase, phase);
    set(schema::flows::name, of), set(schema::flows::category, category);
    to.out.row(location, row);
  };
  const auto text = [&](std::optional<std::string_view> part) { return part ? Text(to.out.text(*part)) : Text(); };
  bool exported = false, only = false;
  for (const std::string_view annotation : e.annotations) {
    if (texts_.key_of(to.sequence, annotation) != kFlowKey) continue;
    // phase, flow, its name, name, category; a sixth where the event is there for it alone.
    const std::vector<std::optional<std::string_view>> parts = PerfettoTexts::texts_in(annotation);
    if (parts.size() < 5) continue;
    only |= parts.size() > 5, exported = true;
    const bool has_number = parts[1] && !parts[1]->empty();
    const auto id = has_number ? uint64_t(strtoll(std::string(*parts[1]).c_str(), nullptr, 10)) : 0;
    add(has_number ? &id : nullptr, text(parts[0]), text(parts[2]), text(parts[3]), text(parts[4]));
  }
  if (exported) return only;
  const Text of = texts_.name_text(to, e), category = texts_.category_text(to, e);
  for (const uint64_t id : e.flows) {
    const bool is_new = begun_.size() < kMostFlows ? begun_.insert(id).second : !begun_.count(id);
    add(&id, to.out.text(is_new ? "s" : "t"), {}, of, category);
  }
  for (const uint64_t id : e.ends) {
    begun_.erase(id);
    add(&id, to.out.text("f"), {}, of, category);
  }
  return false;
}

}  // namespace strobe
