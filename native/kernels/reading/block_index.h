// block_index.h - where the chunks of a block file lie: a file beside it, so that opening a trace of a billion spans
// does not read them. Reading a block file from its begin to its end makes one; it holds for that size and time of
// change of the block file, and without it everything is read as before. docs/format/blocks.md has the bytes.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/blocks.h"
#include "kernels/reading/open_file.h"

namespace strobe {

constexpr uint32_t kIndexMagic = 0x58495253;  // "SRIX"
constexpr uint32_t kIndexVersion = 1;

// One state of a file: when it grows or is written again, this changes.
struct FileState {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileState&) const = default;
};

// Ends of spans that were open when their block was sealed, by row.
class Ends {
 public:
  struct End {  // as a map has it
    uint64_t first;
    int64_t second;
  };
  // The first end of a row counts. What was added is found once it was sorted.
  void add(uint64_t row, int64_t end_ns) { own_.push_back({row, end_ns}); }
  void sort();
  void point_to(const End* sorted, size_t count) { ends_ = sorted, count_ = count; }
  template <class Move>
  void move(Move&& move) {
    std::vector<End> moved(ends_, ends_ + count_);  // they may lie in the index file
    for (End& each : moved) move(each.second);
    own_ = std::move(moved);
    ends_ = own_.data();
  }
  const End* find(uint64_t row) const;  // end() where the row has none
  const End* begin() const { return ends_; }
  const End* end() const { return ends_ + count_; }
  size_t size() const { return count_; }

 private:
  std::vector<End> own_;
  const End* ends_ = nullptr;
  size_t count_ = 0;
};

struct IndexHeader {
  uint32_t magic, version;
  FileState blocks_file;
  uint32_t locations, tables, names_bytes, crc;  // of all behind the header
  uint64_t others, blocks, ends;
};
static_assert(sizeof(IndexHeader) == 64);

struct IndexedBlock {
  uint64_t offset;  // of the chunk's header in the file
  uint64_t first_row;
  int64_t first_ns, last_ns;
  uint32_t payload_bytes, count;
};
static_assert(sizeof(IndexedBlock) == 40);

struct IndexedTable {  // a chunk of a side table
  uint64_t offset;
  uint32_t payload_bytes, location, count;
  uint32_t name;  // where it begins in the names
};
static_assert(sizeof(IndexedTable) == 24);

struct IndexedLocation {
  uint32_t id, unused;
  uint64_t blocks, ends;  // how many of them are its own
};
static_assert(sizeof(IndexedLocation) == 24);

// An index in place. In this order lie in the file: header, blocks, ends (both by location), locations, offsets of the
// chunks that are neither blocks nor tables, tables, names (u16 length and text each).
class BlockIndex {
 public:
  // False where there is none that holds for this state of the block file.
  bool open(const std::string& path, const FileState& blocks_file);

  const IndexHeader& header() const { return *reinterpret_cast<const IndexHeader*>(file_.bytes().data()); }
  const IndexedBlock* blocks() const { return reinterpret_cast<const IndexedBlock*>(&header() + 1); }
  const Ends::End* ends() const { return reinterpret_cast<const Ends::End*>(blocks() + header().blocks); }
  const IndexedLocation* locations() const { return reinterpret_cast<const IndexedLocation*>(ends() + header().ends); }
  const uint64_t* others() const { return reinterpret_cast<const uint64_t*>(locations() + header().locations); }
  const IndexedTable* tables() const { return reinterpret_cast<const IndexedTable*>(others() + header().others); }
  std::string_view name(uint32_t offset) const;

 private:
  bool sound(const FileState& blocks_file) const;
  MappedFile file_;
};

}  // namespace strobe
