// trace_template.h - what a real process did, to be written again and again, never twice the same: traces of any size
// for tests and benchmarks, whose calls nest and whose kernels follow their launches as they did in reality.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <vector>

#include "formats/importing/imported_process.h"
#include "kernels/reading/process_file.h"
#include "kernels/reading/table_chunks.h"

namespace strobe {

// One process to be written: how it differs from its template.
struct ProcessCopy {
  std::string blocks_path;
  ProcessDescription description;  // without times: those come out
  uint64_t seed = 0;
  double sigma = 0;  // of the logarithm of the factor that each stretch between two events takes longer by
  // One entry a repetition: it begins then or, where the one before lasts longer, right behind that; and its length,
  // as a factor of the template's.
  std::vector<int64_t> begin_ns;
  std::vector<double> factor;
  struct Stall {
    uint64_t repetition;
    double place;  // in the repetition: 0 its first event, 1 its last
    int64_t duration_ns;
  };
  std::vector<Stall> stalls;
};

struct WrittenProcess {
  uint64_t spans = 0;
  int64_t first_ns = 0, last_ns = 0;
  std::vector<int64_t> stall_ns;  // when each stall begins
};

class TraceTemplate {
 public:
  // `ids`: columns of side tables that hold numbers of single events, with the name of the group that they belong to;
  // each repetition has numbers of its own, and those of one group go on fitting together. Without attributes only
  // spans and metrics are repeated. Throws std::runtime_error where the process has no spans.
  TraceTemplate(const ProcessFile& process, const std::map<std::string, std::string>& ids, bool attributes);
  uint64_t spans() const { return spans_; }
  size_t locations() const { return locations_.size(); }
  int64_t length_ns() const { return length_ns_; }
  // Constant memory; several threads may write at once. Throws std::system_error where the file cannot be written.
  WrittenProcess write(const ProcessCopy& copy) const;

 private:
  struct Step {            // of a location: a span begins or ends
    uint32_t region;       //
    uint32_t moment_type;  // twice the moment, plus 1 where it ends
  };
  struct Rows {  // of one side table in one location
    TableLayout layout;
    std::vector<int64_t> span;      // number of the span in the repetition
    std::vector<uint32_t> moment;   // of rows that have a time instead
    std::vector<uint64_t> present;  // one bit a column
    std::vector<uint64_t> cells;    // the present ones, by row
    std::vector<size_t> id_group;   // by column, kNoGroup where it holds no such number
    size_t time_column = kMaxColumns;
  };
  struct LocationTemplate {
    uint32_t id;
    uint64_t spans;
    std::vector<Step> steps;
    std::vector<Rows> tables;
  };
  struct Samples {
    uint32_t metric;
    std::vector<uint32_t> moment;
    std::vector<double> value;
  };
  static constexpr size_t kNoGroup = SIZE_MAX;
  class Output;

  void add_location(const ProcessFile& process, const Location& location);
  void add_table(const ProcessFile& process, const std::string& name, LocationTemplate& into,
                 const std::vector<int64_t>& rows, const std::map<std::string, std::string>& ids);
  void number_moments();

  std::string definitions_;  // chunks of regions, texts, locations, metrics
  std::vector<LocationTemplate> locations_;
  std::vector<Samples> samples_;
  std::vector<int64_t> gap_ns_;  // before each moment, in order of time; 0 before the first
  std::vector<std::string> groups_;
  std::vector<uint64_t> highest_id_;  // by group
  std::vector<int64_t> times_;        // while it is made: of steps and rows, as they are found
  uint64_t spans_ = 0;
  int64_t length_ns_ = 0;
};

}  // namespace strobe
