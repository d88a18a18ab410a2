// otf2_import_attributes.cpp - attributes of events and parameters: cells of side tables in archives of ours, else
// arguments.
#include "formats/otf2/otf2_import_location.h"

#include <algorithm>
#include <string_view>

#include "formats/encoding/json_strings.h"

namespace strobe::otf2 {

void LocationEvents::attributes(Bytes in) {
  for (uint32_t left = in.id(); left; left--) {
    const uint32_t id = reference(in, Type::attribute);
    Value value = read_value(in, Type(in.u8()));
    if (!in.ok()) return process_.out.count("damaged_records");
    if (value.type >= Type::string && value.type <= Type::location_group) value.bits = map(value.type, value.bits);
    attributes_.push_back({id, value});
  }
}

// In archives of ours, attributes are cells of side tables. Takes those; true where there was one.
bool LocationEvents::own_rows() {
  own_rows_.clear();
  size_t others = 0;
  for (size_t i = 0; i < attributes_.size(); i++) {
    const auto& [id, value] = attributes_[i];
    const Own::Cell& cell = process_.own_cell(id);
    if (cell.table == Own::kNone) {
      attributes_[others++] = attributes_[i];
      continue;
    }
    const bool text = value.type == Type::string;
    if (cell.is_argument) {
      if (text && top()) argument(process_.out.text(cell.key), process_.definitions.string(uint32_t(value.bits)));
      continue;
    }
    const TableLayout& layout = process_.own.tables.layouts()[cell.table];
    auto row =
        std::find_if(own_rows_.begin(), own_rows_.end(), [&](const auto& each) { return each.first == cell.table; });
    if (row == own_rows_.end()) {
      own_rows_.emplace_back(cell.table, TableRow());
      row = own_rows_.end() - 1;
      row->second.start(cell.table);
    }
    if (cell.column >= layout.columns.size() || text != (layout.columns[cell.column].type == CellType::text)) continue;
    row->second.set(cell.column,
                    text ? process_.out.text(process_.definitions.string(uint32_t(value.bits))) : int64_t(value.bits));
  }
  const bool found = others < attributes_.size();
  attributes_.resize(others);
  for (auto& [table, row] : own_rows_) {
    if (process_.own.tables.layouts()[table].of_spans) {
      if (top()) row.append_to(top()->rows);
      continue;
    }
    row.set(process_.own.tables.column(table, "time_ns"), ns_);
    process_.out.row(location(), row);
  }
  return found;
}

void LocationEvents::give_attributes() {
  if (process_.own.archive) own_rows();
  std::string others;
  for (const auto& [id, value] : attributes_) {
    const std::string name = process_.definitions.label("attribute", process_.definitions.attributes, id);
    const std::string text = process_.json(value);
    if (top()) {
      argument(process_.out.text(name), text);
    } else {
      others += others.empty() ? "{" : ", ";
      json::append_text(others, name);
      others += ": " + text;
    }
  }
  if (!others.empty()) mark("attributes", others + "}");
  attributes_.clear();
}

void LocationEvents::argument(uint32_t key, std::string_view value) {
  TableRow row(schema::arguments::number);
  row.set(schema::arguments::key, key), row.set(schema::arguments::value, process_.out.text(value));
  row.append_to(stack_[depth_ - 1].rows);
}

void LocationEvents::parameter(uint32_t id, Value value) {
  const Process::ParameterUse& use = process_.parameter(id);
  if (kernel_depth_ && kernel_depth_ == depth_ && value.type == Type::u64 && use.of_kernel) {
    const int64_t number = int64_t(value.bits);
    if (use.column) return kernel_.set(*use.column, number);
    const int64_t blocks = kernel_.cell_or(schema::kernel_spans::grid_x, 0);
    const int64_t threads = kernel_.cell_or(schema::kernel_spans::block_x, 0);
    int64_t product;
    if (!__builtin_mul_overflow(blocks, threads, &product) && product == number) return;
  }
  if (top()) return argument(use.key, process_.json(value));
  std::string text = "{";
  json::append_text(text, process_.definitions.label("parameter", process_.definitions.parameters, id));
  mark("parameter", text + ": " + process_.json(value) + "}");
}

}  // namespace strobe::otf2
