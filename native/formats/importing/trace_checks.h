// trace_checks.h - what is broken in the events of a file, whatever its format: numbers that nothing
// refers to or that two have, work that overlaps on one stream, steps that are missing, names that are not text. It
// counts, and changes nothing.
#pragma once
#include <stdint.h>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/reading/table_chunks.h"

namespace strobe {

// A byte for each of many numbers that lie close together, as ids do: 64 of them are one page. Memory is bounded.
class IdStates {
 public:
  // The state of an id, to be changed; null where there are too many pages.
  uint8_t* of(uint64_t id);
  // Every state that was asked for and is not 0.
  template <typename See>
  void each(See see) const {
    for (const auto& [page, at] : places_)
      for (uint64_t i = 0; i < kPage; i++)
        if (pages_[at][i]) see(page * kPage + i, pages_[at][i]);
  }

 private:
  static constexpr uint64_t kPage = 64;
  static constexpr size_t kMostPages = 1 << 18;
  std::vector<std::array<uint8_t, kPage>> pages_;
  std::unordered_map<uint64_t, uint32_t> places_;  // by page
  uint64_t last_page_ = UINT64_MAX;                // no page has this number
  uint32_t last_place_ = 0;
};

class TraceChecks {
 public:
  // Spans of one location as they are written: by start, of those that start together the longest first.
  struct Walk {
    bool stream = false, host = true;
    // What the checks remember:
    int64_t start_ns = 0, end_ns = 0, busy_until_ns = INT64_MIN, operator_until_ns = INT64_MIN;
    uint8_t region_class = 0;
    struct Call {
      int64_t end_ns;
      uint64_t correlation;
    };
    std::vector<Call> calls;  // those that are open
  };

  void define_region(uint32_t region, std::string_view name, uint8_t paradigm, uint8_t role);
  void define_table(const TableLayout& layout);  // tables are numbered as they come
  void define_text(uint32_t text, std::string_view value) {
    if (value == "s") begins_.push_back(text);
    see_text(value);
  }
  // A name, once.
  void see_text(std::string_view value);

  // Work inside of work is not counted as overlapping.
  void work_nests() { work_nests_ = true; }
  // The work of calls with these correlations and higher ones is not in the file.
  void work_elsewhere(uint64_t first_correlation) { work_elsewhere_from_ = first_correlation; }
  // A span, in the order of the file.
  void seen(int64_t start_ns, uint32_t region) {
    if (region < classes_.size() && (classes_[region] & kCapture)) capture(start_ns, region);
  }
  // Whether it is the mark of a step that was not seen on a host yet.
  bool is_step(uint32_t region) const { return region < classes_.size() && (classes_[region] & kStep); }
  // A row of a table whose rows are not spans; cells as TableColumns::add takes them.
  void row(uint32_t table, uint64_t present, const uint64_t* cells) {
    if (columns_[table].kind == kFlows) flow(columns_[table], present, cells);
  }
  // Between `seen` and the spans in order.
  void sort();
  void span(Walk& walk, int64_t start_ns, int64_t end_ns, uint32_t region);
  // A row of the span that came last.
  void row_of_span(Walk& walk, uint32_t table, uint64_t present, const uint64_t* cells);

  // Adds what was found. The value that a counter has already stays: a copy of a trace knows less than its source did.
  void add_to(std::map<std::string, uint64_t>& counters) const;

 private:
  // What a region is.
  enum : uint8_t {
    kGpu = 1,       // a call or an activity of a GPU
    kWork = 2,      // that runs on a stream
    kLaunch = 4,    // starts a kernel
    kMany = 8,      // more than one, perhaps
    kCapture = 16,  // begins or ends the capture of a graph: what is launched in between does not run
    kBegins = 32,   // of these two the first
    kOperator = 64,
    kStep = 128
  };
  // What is known of a correlation id.
  enum : uint8_t {
    kCalled = 1,
    kLaunched = 2,  // by a call that must have started a kernel
    kGraph = 4,
    kKernel = 8,
    kCopy = 16,
    kCalledTwice = 32,
    kRepeated = 64,    // several kernels or copies: `more_` has their numbers
    kInOperator = 128  // called inside of one
  };
  enum TableKind : uint8_t { kNone, kKernels, kCopies, kCalls, kOperators, kFlows };
  struct Columns {
    TableKind kind = kNone;
    int8_t id = -1, graph = -1, result = -1, phase = -1, category = -1, name = -1;
  };
  struct Repeated {
    uint32_t kernels = 0, copies = 0;  // beyond the first
  };
  bool step_mark(uint32_t region, std::string_view name);
  void capture(int64_t start_ns, uint32_t region);
  void call(Walk& walk, const Columns& columns, uint64_t present, const uint64_t* cells);
  void activity(const Columns& columns, uint64_t present, const uint64_t* cells);
  void operator_id(const Columns& columns, uint64_t present, const uint64_t* cells);
  void flow(const Columns& columns, uint64_t present, const uint64_t* cells);
  bool captured(int64_t ns) const;
  uint8_t* state(IdStates& ids, uint64_t id);

  std::vector<uint8_t> classes_;  // by region
  std::vector<Columns> columns_;  // by table
  std::vector<uint32_t> begins_;  // the phase of a flow that begins: one text, unless there are millions
  struct StepMark {
    std::vector<uint64_t>* numbers;
    uint64_t number;
  };
  std::map<std::string, std::vector<uint64_t>> steps_;  // numbers of the step marks that there are, by their name
  std::unordered_map<uint32_t, StepMark> unseen_;       // by region
  struct Capture {
    int64_t ns;
    int change;
  };
  std::vector<Capture> captures_;
  std::vector<std::pair<int64_t, int64_t>> captured_;  // from and to, in order
  IdStates correlations_, operators_, flows_;
  std::unordered_map<uint64_t, Repeated> more_;
  uint64_t calls_ = 0, activities_ = 0, operators_seen_ = 0, overlaps_ = 0, same_operators_ = 0, same_flows_ = 0;
  uint64_t not_compared_ = 0, not_utf8_ = 0;
  bool work_nests_ = false;
  uint64_t work_elsewhere_from_ = UINT64_MAX;
};

}  // namespace strobe
