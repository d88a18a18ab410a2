// region_table.h - the region table of a process: a description is interned once and gets a small number that fits a
// record.
#pragma once
#include <stdint.h>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/format/blocks.h"
#include "core/spans/growing_tables.h"
#include "include/strobe.h"

namespace strobe {

struct RegionText {
  std::string name, file, module;
  uint32_t line;
  uint8_t paradigm, role;
  std::string loops = {};
};

class RegionTable {
 public:
  RegionTable();
  // `save` gets the payloads of a regions chunk and, where there are any, of a source loops chunk for a region seen for
  // the first time, before its number is handed out.
  uint32_t intern(const strobe_region_info& info, void (*save)(ChunkKind kind, std::string_view payload));
  std::pair<std::string, uint8_t> name_of(uint32_t region);  // name and paradigm
  std::pair<uint8_t, uint8_t> kind_of(uint32_t region);      // paradigm and role
  std::string file_of(uint32_t region);
  std::string place_of(uint32_t region);  // "name (file.py:3)"
  std::string loops_of(uint32_t region);  // what its loops call (structure/source_loops.h)
  // Appends chunks with every region (a forked child's new file). With mutex() held: what is interned later writes
  // itself.
  void append_all(std::string& chunks) const;
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::deque<RegionText> regions_;
  Slots slots_;
};

}  // namespace strobe
