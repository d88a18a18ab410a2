// sorted_records.h - records with a time that come in any order and are wanted by time: what is too much for memory
// waits in a file as sorted runs.
#pragma once
#include <stdint.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/encoding/output_file.h"

namespace strobe {

class SortedRecords {
 public:
  // Keeps up to `memory_bytes`, then spills to `spill_path`, a name that nothing has (the file is removed at once).
  // Everything throws std::system_error where that file cannot be written or read.
  SortedRecords(std::string spill_path, size_t memory_bytes);

  void add(int64_t time, std::string_view bytes);
  void sort();  // everything was added
  // The first one that was not taken yet; of equal times the one that was added first. False: there is none.
  bool empty() const { return !head_; }
  int64_t time() const { return head_->time; }
  std::string_view bytes() const { return head_->bytes; }
  void take();

 private:
  struct Index {
    int64_t time;
    uint32_t offset, size;
  };
  struct Run {  // in the file, with what was read of it
    uint64_t offset, end;
    std::string window;
    size_t at = 0;
    int64_t time = 0;
    std::string_view bytes;
  };
  struct Head {
    int64_t time;
    std::string_view bytes;
  };
  void sort_memory();
  void spill();
  bool next(Run& run);
  bool later(size_t a, size_t b) const;
  void show();

  SpillFile file_;
  size_t memory_bytes_;
  std::string bytes_;
  std::vector<Index> index_;
  size_t taken_ = 0;          // of the index, where nothing was spilled
  std::vector<Run> runs_;     // in the order in which they were added
  std::vector<size_t> heap_;  // of runs, the earliest first
  Head shown_{};
  const Head* head_ = nullptr;
};

}  // namespace strobe
