// otf2_strobe_attributes.h - what the archives that `strobe export --to otf2` writes contain beside what OTF2 itself
// has a place for, so that what is read again is equal: formats/otf2.py and formats/otf2/export.py write it.
#pragma once
#include <stdint.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/importing/imported_process.h"
#include "formats/importing/schema_tables.h"
#include "formats/otf2/otf2_definitions.h"

namespace strobe::otf2 {

constexpr std::string_view kOwnProperty = "STROBE::ZERO_NS";  // of the anchor: such an archive is ours

struct Own {
  SchemaTables tables;
  std::vector<std::string> paradigms, roles;  // by number
  bool archive = false;                       // the one that is read is ours

  // A region's description: "torch operator".
  struct Kind {
    uint8_t paradigm = 0, role = 0;
  };
  Kind kind(std::string_view description) const;

  // Attributes are cells of side tables, named "kernel_spans.grid_x", or an argument as JSON: "arguments.name".
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Cell {
    uint32_t table = kNone;
    uint8_t column = UINT8_MAX;  // "marks.": a row without cells
    bool is_argument = false;
    std::string key;  // of the argument
  };
  Cell cell(std::string_view attribute) const;

  // Properties of a location.
  struct Row {
    uint64_t thread_id;
    LocationKind kind;
    int64_t device = -1;
  };
  Row row(const Definitions& definitions, uint64_t location, LocationKind kind) const;

  // Properties of a location group that is a process.
  struct Rank {
    int64_t rank = -1, ranks = -1;
  };
  Rank rank(const Definitions& definitions, uint32_t group) const;
  void describe(const Definitions& definitions, uint32_t group, ProcessDescription& process,
                std::string& end_state) const;
  // Gives (key, JSON) of the description.
  void describe(const Definitions& definitions, uint32_t group,
                const std::function<void(std::string_view, std::string_view)>& give) const;
};

}  // namespace strobe::otf2
