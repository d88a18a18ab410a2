// otf2_import_process.h - one process of an OTF2 archive while it is imported: what its locations share.
#pragma once
#include <stdint.h>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/importing/imported_process.h"
#include "formats/otf2/otf2_definitions.h"
#include "formats/otf2/otf2_strobe_attributes.h"

namespace strobe::otf2 {

// What a region is to us: the same one may be a kernel on a stream and a function on a thread.
struct RegionUse {
  uint32_t number = 0;  // of ours; 0: not asked for yet
  bool kernel = false;
  uint32_t mangled_text = kUndefined;
};

struct Stream {  // of an accelerator, as far as names have it
  int64_t device = -1, stream = -1, context = -1;
};

class Process {
 public:
  Process(const Definitions& definitions, const Own& own, uint32_t group, const std::string& path, size_t buffer_bytes);

  const Definitions& definitions;
  const Own& own;
  ImportedProcess out;
  int64_t pid;
  std::string program;                 // as the file names it
  std::vector<std::string> arguments;  // of the program

  const RegionUse& region(uint32_t id, bool on_stream);
  uint32_t location(uint64_t id);  // number of ours; made when it is asked for
  Stream stream(uint64_t location) const;
  uint64_t first_thread() const { return first_thread_; }

  // Ticks to nanoseconds since the archive's first moment: to the nearest, exactly.
  int64_t nanoseconds(uint64_t ticks);

  struct MetricUse {
    uint32_t number;
    uint8_t value_type;
    double factor, divisor;
    bool scaled = false;
  };
  // The metrics of a class or an instance, as `location` records them.
  std::vector<MetricUse> metrics(uint32_t metric, uint64_t location);

  std::string json(const Value& value) const;
  std::string location_label(uint64_t location) const;  // "MPI Rank 1: Master thread"
  struct ParameterUse {
    uint32_t key = kUndefined;  // text of ours
    bool of_kernel = false;
    const SchemaColumn* column = nullptr;  // of a kernel; NULL: blocks times threads, which has no column
  };
  const ParameterUse& parameter(uint32_t id);
  uint32_t location_text(uint64_t location);  // of its label
  uint32_t location_json(uint64_t location);  // the same as JSON
  const Own::Cell& own_cell(uint32_t attribute);
  void own_regions();  // all of them, in their order: also those that nothing was executed of

 private:
  RegionUse describe(uint32_t id, bool on_stream);
  uint32_t group_;
  uint64_t first_thread_ = kUndefined64;
  std::vector<RegionUse> regions_[2];
  std::unordered_map<uint32_t, RegionUse> undefined_regions_[2];
  std::unordered_map<uint64_t, uint32_t> locations_, location_texts_, location_jsons_;
  std::vector<ParameterUse> parameters_;  // by position
  std::unordered_map<uint32_t, ParameterUse> undefined_parameters_;
  std::unordered_map<uint32_t, Own::Cell> own_cells_;
  uint64_t second_ticks_ = 0;  // the second that was met last, from the first moment on
  uint64_t second_ns_ = 0;
  std::unordered_map<std::string, uint64_t> metric_owner_;
};

}  // namespace strobe::otf2
