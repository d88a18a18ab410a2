// schema_tables.h - the side tables of model/schema.py, as decoders use them: by names of tables and columns.
#pragma once
#include <stdint.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/side_tables.generated.h"
#include "formats/importing/imported_process.h"

namespace strobe {

class SchemaTables {
 public:
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
  const std::vector<TableLayout> layouts_ = schema::side_tables();
};

}  // namespace strobe
