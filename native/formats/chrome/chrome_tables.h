// chrome_tables.h - arguments of Chrome's events as rows of side tables: Kineto's names, those of our own exports
// (`table.column`, see src/strobe/formats/chrome/arguments.py), and everything else as `arguments`.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/chrome/chrome_categories.h"
#include "formats/chrome/chrome_json.h"
#include "formats/encoding/recent_texts.h"
#include "formats/importing/schema_tables.h"

namespace strobe::chrome {

// A process that is written, and its number: texts are known by it.
struct Into {
  ImportedProcess& out;
  size_t process;
};

class ChromeTables {
 public:
  // Throws std::runtime_error where the schema lacks a table or column that Kineto has a name for.
  ChromeTables();
  void define(ImportedProcess& process) const { schema_.define(process); }
  // Names of our own count from here on: the file is one of our exports.
  void of_our_own() { own_ = true; }
  bool own() const { return own_; }
  // What numbers of calls and operators are counted from: those of two files must differ.
  void numbers_from(int64_t first) { numbers_from_ = first; }

  uint32_t text(Into into, std::string_view value);
  // Rows for the next span.
  void attributes(Into into, const Category& category, yyjson_val* args);
  // An event with a time of its own: in our own exports it names its table, "[memory]" is an allocation, the rest
  // are marks.
  void instant(Into into, uint32_t location, int64_t ns, std::string_view name, std::string_view category,
               yyjson_val* args);
  void flow(Into into, uint32_t location, int64_t ns, std::string_view id, std::string_view phase,
            std::string_view name, std::string_view category);
  // One of our exports; `stack`: its text, kNoTable where there is none.
  void sample(Into into, uint32_t location, int64_t ns, uint32_t stack, yyjson_val* args);

 private:
  struct Known {
    std::string_view json;
    uint32_t table;
    uint8_t column;
    CellType type;
    bool three;    // a list, for this column and the two behind it
    bool numbers;  // calls or operators
  };
  struct Rows {  // of one event
    TableRow own, collective, other;
  };

  const SchemaTables::Column* first_own_column(yyjson_val* args) const;
  bool cell(Into into, TableRow& row, const Known& known, yyjson_val* value);
  bool cell(Into into, TableRow& row, uint8_t column, CellType type, yyjson_val* value);
  bool own_cell(Into into, Rows& rows, std::string_view key, yyjson_val* value);
  void own_cells(Into into, TableRow& row, yyjson_val* args);
  bool own_arguments(Into into, yyjson_val* list);
  void argument(Into into, std::string_view key, std::string_view value);

  const SchemaTables schema_;
  uint32_t tables_[kKeyLists];
  std::vector<Known> keys_[kKeyLists];
  RecentTexts<uint32_t> recent_;
  std::string scratch_;
  bool own_ = false;
  int64_t numbers_from_ = 0;
};

}  // namespace strobe::chrome
