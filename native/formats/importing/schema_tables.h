// schema_tables.h - the side tables of model/schema.py, as decoders use them: by names of tables and columns.
#pragma once
#include <stdint.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/format/side_tables.generated.h"
#include "formats/importing/imported_process.h"

namespace strobe {

class SchemaTables {
 public:
  // A column, by its name in our own exports: `table.column`; `table.` begins another row of the table.
  static constexpr uint8_t kNewRow = 0xFF;
  struct Column {
    uint32_t table;
    uint8_t number;
    CellType type;
  };
  SchemaTables() {
    for (uint32_t table = 0; table < layouts_.size(); table++) {
      if (table == schema::arguments::number) continue;  // arguments have names of their own
      const TableLayout& layout = layouts_[table];
      columns_[layout.name + "."] = {table, kNewRow, CellType::integer};
      for (size_t i = 0; i < layout.columns.size(); i++)
        columns_[layout.name + "." + layout.columns[i].name] = {table, uint8_t(i), layout.columns[i].type};
    }
  }
  // NULL where it is not the name of a column.
  const Column* exported_column(std::string_view name) const {
    if (name.size() > kLongestName || name.find('.') == name.npos) return nullptr;
    const auto found = columns_.find(name);
    return found == columns_.end() ? nullptr : &found->second;
  }
  const std::vector<TableLayout>& layouts() const { return layouts_; }

  // Throws std::runtime_error where the schema has no such table or column.
  uint32_t table(std::string_view name) const {
    for (size_t i = 0; i < layouts_.size(); i++)
      if (layouts_[i].name == name) return uint32_t(i);
    throw std::runtime_error("the schema has no table " + std::string(name));
  }
  uint8_t column(uint32_t table, std::string_view name) const {
    const auto& columns = layouts_[table].columns;
    for (size_t i = 0; i < columns.size(); i++)
      if (columns[i].name == name) return uint8_t(i);
    throw std::runtime_error("the schema has no column " + std::string(name) + " of " + layouts_[table].name);
  }
  // Its tables get the same numbers in a process.
  void define(ImportedProcess& process) const {
    for (const TableLayout& each : layouts_) process.table(each);
  }

 private:
  static constexpr size_t kLongestName = 64;
  const std::vector<TableLayout> layouts_ = schema::side_tables();
  std::unordered_map<std::string, Column, TextHash, std::equal_to<>> columns_;
};

}  // namespace strobe
