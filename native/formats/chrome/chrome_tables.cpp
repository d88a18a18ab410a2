#include "formats/chrome/chrome_tables.h"

namespace strobe::chrome {

ChromeTables::ChromeTables() {
  for (size_t i = 0; i < kKeyLists; i++) {
    tables_[i] = schema_.table(kKeysOfTables[i].table);
    for (const Key& key : kKeysOfTables[i].keys) {
      const uint8_t column = schema_.column(tables_[i], key.column);
      const CellType type = schema_.layouts()[tables_[i]].columns[column].type;
      const bool three = i == kKernels && (key.json == kGrid || key.json == kBlock);
      keys_[i].push_back(
          {key.json, tables_[i], column, type, three, key.json == kCorrelation || key.json == kExternalId});
    }
  }
}

uint32_t ChromeTables::text(Into into, std::string_view value) {
  bool found;
  auto& slot = recent_.slot(value, into.process, found);
  if (!found) slot.value = into.out.text(value), slot.text = value, slot.beside = into.process;
  return slot.value;
}

const SchemaTables::Column* ChromeTables::first_own_column(yyjson_val* args) const {
  if (!own_ || !yyjson_is_obj(args)) return nullptr;
  yyjson_obj_iter members = yyjson_obj_iter_with(args);
  yyjson_val* key = yyjson_obj_iter_next(&members);
  return key ? schema_.exported_column(raw(key)) : nullptr;
}

void ChromeTables::attributes(Into into, const Category& category, yyjson_val* args) {
  if (!args || !yyjson_is_obj(args)) return;
  Rows rows;
  rows.own.start(tables_[category.keys]);
  rows.collective.start(tables_[kCollectives]);
  const std::vector<Known>& keys = keys_[category.keys];
  size_t i, n, hint = 0;
  yyjson_val *key, *value;
  yyjson_obj_foreach(args, i, n, key, value) {
    const std::string_view k = raw(key);
    bool taken = false;
    // Writers keep an order: the next key is mostly the next of our list.
    for (size_t tried = 0; tried < keys.size() && !taken; tried++, hint++) {
      if (hint >= keys.size()) hint = 0;
      const Known& known = keys[hint];
      if (known.json.size() == k.size() && same_ignoring_case(k, known.json)) {
        taken = cell(into, rows.own, known, value);
        break;
      }
    }
    if (!taken && category.may_be_collective())
      for (const Known& known : keys_[kCollectives])
        if (known.json.size() == k.size() && same_ignoring_case(k, known.json)) {
          taken = cell(into, rows.collective, known, value);
          break;
        }
    if (taken || (own_ && own_cell(into, rows, k, value))) continue;
    scratch_.clear();
    append_json(scratch_, value);
    argument(into, k, scratch_);
  }
  for (const TableRow* row : {&rows.own, &rows.collective, &rows.other})
    if (!row->empty()) into.out.attribute(*row);
}

void ChromeTables::argument(Into into, std::string_view key, std::string_view value) {
  TableRow row(schema::arguments::number);
  row.set(schema::arguments::key, text(into, key));
  row.set(schema::arguments::value, text(into, value));
  into.out.attribute(row);
}

// An argument that one of our exports has for what Kineto has no name for.
bool ChromeTables::own_cell(Into into, Rows& rows, std::string_view key, yyjson_val* value) {
  if (key == "arguments") return own_arguments(into, value);
  const SchemaTables::Column* column = schema_.exported_column(key);
  if (!column || !schema_.layouts()[column->table].of_spans) return false;
  TableRow* row = column->table == rows.own.table()          ? &rows.own
                  : column->table == rows.collective.table() ? &rows.collective
                                                             : &rows.other;
  if (column->table != row->table() || column->number == SchemaTables::kNewRow) {
    if (!row->empty()) into.out.attribute(*row);
    row->start(column->table);
  }
  return column->number == SchemaTables::kNewRow || cell(into, *row, column->number, column->type, value);
}

// Arguments whose names or values would not be read as they were: a list of pairs.
bool ChromeTables::own_arguments(Into into, yyjson_val* list) {
  if (!yyjson_is_arr(list)) return false;
  size_t i, n;
  yyjson_val* pair;
  yyjson_arr_foreach(list, i, n, pair) {
    TableRow row(schema::arguments::number);
    yyjson_val *key = yyjson_arr_get(pair, 0), *value = yyjson_arr_get(pair, 1);
    if (yyjson_is_str(key)) row.set(schema::arguments::key, text(into, raw(key)));
    if (yyjson_is_str(value)) row.set(schema::arguments::value, text(into, raw(value)));
    if (!row.empty()) into.out.attribute(row);
  }
  return true;
}

bool ChromeTables::cell(Into into, TableRow& row, const Known& known, yyjson_val* value) {
  if (numbers_from_ && known.numbers) {
    int64_t number;
    if (!yyjson_is_raw(value) || !integer(raw(value), number)) return false;
    row.set(known.column, number > 0 ? number + numbers_from_ : number);
    return true;
  }
  if (!known.three) return cell(into, row, known.column, known.type, value);
  if (yyjson_arr_size(value) != 3) return false;
  int64_t sides[3];
  for (size_t i = 0; i < 3; i++)
    if (!integer(raw(yyjson_arr_get(value, i)), sides[i])) return false;
  for (size_t i = 0; i < 3; i++) row.set(known.column + i, sides[i]);
  return true;
}

bool ChromeTables::cell(Into into, TableRow& row, uint8_t column, CellType type, yyjson_val* value) {
  switch (type) {
    case CellType::integer: {
      int64_t number;
      if (!yyjson_is_raw(value) || !integer(raw(value), number)) return false;
      row.set(column, number);
      return true;
    }
    case CellType::real: {
      double number;
      // Infinity and NaN are texts in JSON; we write them so.
      if (!(yyjson_is_raw(value) || own_) || !real(raw(value), number)) return false;
      row.set_real(column, number);
      return true;
    }
    case CellType::text:
      if (yyjson_is_str(value)) {
        row.set(column, text(into, raw(value)));
      } else {
        scratch_.clear();
        append_json(scratch_, value);
        row.set(column, text(into, scratch_));
      }
      return true;
  }
  return false;
}

// Those of the row's table among the arguments of one of our exports.
void ChromeTables::own_cells(Into into, TableRow& row, yyjson_val* args) {
  size_t i, n;
  yyjson_val *key, *value;
  yyjson_obj_foreach(args, i, n, key, value) {
    const SchemaTables::Column* column = schema_.exported_column(raw(key));
    if (column && column->table == row.table() && column->number != SchemaTables::kNewRow)
      cell(into, row, column->number, column->type, value);
  }
}

void ChromeTables::instant(Into into, uint32_t location, int64_t ns, std::string_view name, std::string_view category,
                           yyjson_val* args) {
  TableRow row;
  if (const SchemaTables::Column* first = first_own_column(args); first && !schema_.layouts()[first->table].of_spans) {
    const auto& columns = schema_.layouts()[first->table].columns;
    row.start(first->table);
    own_cells(into, row, args);
    for (size_t i = 0; i < columns.size(); i++)
      if (columns[i].name == "time_ns") row.set(i, ns);
  } else if (name == "[memory]" && args) {
    row.start(schema::allocations::number);
    row.set(schema::allocations::time_ns, ns);
    if (own_) own_cells(into, row, args);
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(args, i, n, key, value) for (const Known& known : keys_[kAllocations]) {
      int64_t number;
      if (same_ignoring_case(raw(key), known.json) && integer(raw(value), number)) row.set(known.column, number);
    }
  } else {
    row.start(schema::marks::number);
    row.set(schema::marks::time_ns, ns);
    row.set(schema::marks::name, text(into, name));
    row.set(schema::marks::category, text(into, category));
    if (args) {
      scratch_.clear();
      append_json(scratch_, args);
      row.set(schema::marks::arguments, text(into, scratch_));
    }
  }
  into.out.row(location, row);
}

void ChromeTables::flow(Into into, uint32_t location, int64_t ns, std::string_view id, std::string_view phase,
                        std::string_view name, std::string_view category) {
  TableRow row(schema::flows::number);
  row.set(schema::flows::time_ns, ns);
  int64_t number;
  if (integer(id, number))
    row.set(schema::flows::flow, number);
  else if (!id.empty())
    row.set(schema::flows::flow_name, text(into, id));
  row.set(schema::flows::phase, text(into, phase));
  row.set(schema::flows::name, text(into, name));
  row.set(schema::flows::category, text(into, category));
  into.out.row(location, row);
}

void ChromeTables::sample(Into into, uint32_t location, int64_t ns, uint32_t stack, yyjson_val* args) {
  TableRow row(schema::samples::number);
  own_cells(into, row, args);
  row.set(schema::samples::time_ns, ns);
  if (stack != kNoTable) row.set(schema::samples::call_stack, stack);
  into.out.row(location, row);
}

}  // namespace strobe::chrome
