// perfetto_tables.h - events and their annotations as rows of side tables: `table.column` is what this program exported
// (src/strobe/formats/perfetto/export.py), everything else arguments, marks and flows.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "formats/importing/schema_tables.h"
#include "formats/perfetto/perfetto_event.h"
#include "formats/perfetto/perfetto_texts.h"

namespace strobe {

class PerfettoTables {
 public:
  PerfettoTables(const SchemaTables& schema, PerfettoTexts& texts) : schema_(schema), texts_(texts) {}
  // The file is one of our exports.
  void of_our_own() { own_ = true; }

  // Appends the rows of a span, as TableRow::append_to writes them. True: the span was cut.
  bool details(const PerfettoTarget& to, const PerfettoEvent& e, std::string& rows);
  // An instant: a row that this program exported, else a mark.
  void mark(const PerfettoTarget& to, const PerfettoEvent& e, uint32_t location, int64_t ns);
  // The flows that an event is part of. True: in this program's export it is there for them only.
  bool flows(const PerfettoTarget& to, const PerfettoEvent& e, uint32_t location, int64_t ns);

 private:
  void cell(const PerfettoTarget& to, TableRow& row, const SchemaTables::Column& of, std::string_view annotation);
  bool exported_row(const PerfettoTarget& to, const PerfettoEvent& event, uint32_t location, int64_t ns);

  const SchemaTables& schema_;
  PerfettoTexts& texts_;
  std::unordered_set<uint64_t> begun_;  // flows
  bool own_ = false;
};

}  // namespace strobe
