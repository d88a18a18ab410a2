// tiles_file.h - the file that tiles lie in: frames in the order in which they were made, then a sorted directory that
// is searched in place. docs/format/tiles.md describes it.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/pyramid/tile.h"
#include "kernels/reading/open_file.h"

namespace strobe {

// What a tiles file was made from. It counts only as long as all of this is still so.
struct TilesOf {
  uint64_t blocks_bytes = 0, spans = 0;
  int64_t last_ns = 0;
  int64_t origin_ns = 0;  // where bin 0 of every level begins, on the clock of the blocks
  uint32_t groups = 0;    // checksum of the group of every region
  uint32_t clock = 0;     // checksum of what the process's clock is corrected by, 0 for nothing
  bool operator==(const TilesOf&) const = default;
};

constexpr uint32_t kThresholds = 255;  // as a level: the location's thresholds (exceptional.h), index 0

struct TileKey {
  uint32_t location, level;
  int64_t index;
  auto operator<=>(const TileKey&) const = default;
};

class TilesWriter {
 public:
  // Throws std::system_error, as all of its functions do. Without `finish`, nothing is left behind.
  explicit TilesWriter(const std::string& path);
  ~TilesWriter();
  TilesWriter(const TilesWriter&) = delete;
  void add(const TileKey& key, uint64_t spans, std::string_view frame);
  void finish(const TilesOf& of);

 private:
  friend class TilesFile;
  struct Entry {
    TileKey key;
    uint64_t offset;
    uint32_t bytes, spans;  // spans: 2^32 - 1 stands for more, too
  };
  static_assert(sizeof(Entry) == 32);
  struct Header {
    uint32_t magic, version;
    uint64_t tiles, directory_offset;
    TilesOf of;
    uint32_t directory_crc, header_crc;
  };
  static_assert(sizeof(Header) == 72);
  void write(const void* bytes, size_t size);

  std::string path_;
  FILE* file_ = nullptr;
  uint64_t offset_ = sizeof(Header);
  std::vector<Entry> directory_;
};

class TilesFile {
 public:
  // Empty where the file is missing, damaged, or was made from something else.
  TilesFile(const std::string& path, const TilesOf& of);
  TilesFile() = default;

  // Whether a file begins as tiles of this version do. It may still be torn, or made from something else.
  static bool looks_sound(const std::string& path);

  bool empty() const { return directory_.empty(); }
  bool sound() const { return !file_.bytes().empty(); }
  // `parts`: of TileParts. False: there is none, or a damaged one.
  bool find(const TileKey& key, uint32_t parts, Tile& out) const;
  std::string_view frame(const TileKey& key) const;  // empty: there is none
  uint64_t spans(const TileKey& key) const;          // 0: there is none
  // The coarsest level of a location (or of a row of many: overview.h), -1 where it has no tiles.
  int top_level(uint32_t location, uint32_t row_level = 0) const;
  uint32_t checksum() const { return checksum_; }  // of the directory: changes with what the file holds

 private:
  using Entry = TilesWriter::Entry;
  const TilesWriter::Header* header() const;  // nullptr: it is not sound
  const Entry* entry(const TileKey& key) const;

  MappedFile file_;
  std::span<const Entry> directory_;  // in order of keys
  uint32_t checksum_ = 0;
};

}  // namespace strobe
