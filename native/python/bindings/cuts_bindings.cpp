// cuts_bindings.cpp - where steps begin, as the recorder decides it, for the activities of a stream.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "python/bindings/conversions.h"
#include "structure/cutter.h"

namespace nb = nanobind;
using namespace strobe;
using namespace strobe::structure;

namespace {

// Positions are the rows of a stream.
class StreamCutter {
 public:
  using Found = std::optional<std::pair<int64_t, int64_t>>;

  StreamCutter(uint8_t kind, Input<int64_t> start_ns, Input<int64_t> duration_ns, Input<int64_t> parent)
      : start_ns_(std::move(start_ns)),
        duration_ns_(std::move(duration_ns)),
        parent_(std::move(parent)),
        cutter_([this](uint64_t row) { return around(row); }, false) {
    if (start_ns_.shape(0) != duration_ns_.shape(0) || start_ns_.shape(0) != parent_.shape(0))
      throw std::invalid_argument("starts, durations and parents differ in length");
    cutter_.begin(LoopKind(kind), kNoMark);
  }
  StreamCutter(const StreamCutter&) = delete;

  void add(Input<int64_t> activities) {
    constexpr size_t kColumns = 7;
    if (activities.shape(0) % kColumns) throw std::invalid_argument("a table of activities ends within a row");
    for (size_t i = 0; i < activities.shape(0); i += kColumns) {
      const int64_t* row = activities.data() + i;
      cutter_.add({row[0], row[1], uint64_t(row[2]), uint32_t(row[3]), uint32_t(row[4]), Part(row[5]), Change(row[6])});
    }
  }
  void learn(Input<int64_t> marks_ns) { cutter_.learn({marks_ns.data(), marks_ns.shape(0)}); }
  Found cut(size_t row) {
    const int64_t start_ns = start_ns_.data()[row];
    return found(cutter_.cut({start_ns, start_ns + duration_ns_.data()[row], row, row + 1}));
  }
  Found cut_early(bool hurry) { return found(cutter_.cut_early(hurry)); }
  void forget(int64_t before_ns) { cutter_.forget(before_ns); }
  std::vector<std::pair<int64_t, int64_t>> unfed_validations() const {
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const Interval& each : cutter_.unfed_validations()) found.emplace_back(each.start_ns, each.end_ns);
    return found;
  }

 private:
  std::optional<Around> around(uint64_t row) const {
    const int64_t above = parent_.data()[row];
    if (above < 0) return {};
    const int64_t start_ns = start_ns_.data()[above];
    return {{start_ns, start_ns + duration_ns_.data()[above], uint64_t(above)}};
  }
  static Found found(const std::optional<Cut>& cut) { return cut ? Found({cut->ns, cut->fed_ns}) : std::nullopt; }

  const Input<int64_t> start_ns_, duration_ns_, parent_;
  Cutter cutter_;
};

}  // namespace

void register_cuts(nb::module_& m) {
  nb::class_<StreamCutter>(m, "Cutter", "Where the steps of a stream begin: native/structure/cutter.h")
      .def(nb::init<uint8_t, Input<int64_t>, Input<int64_t>, Input<int64_t>>(), nb::arg("kind"), nb::arg("start_ns"),
           nb::arg("duration_ns"), nb::arg("parent"),
           "kind: by what steps are marked, in order of authority. The others are columns of the stream")
      .def("add", &StreamCutter::add, nb::arg("activities"),
           "Rows (start, end, row in the stream or -1, call path, region, part, change), in order of time")
      .def("learn", &StreamCutter::learn, nb::arg("marks_ns"),
           "What steps usually do, from the activities between these marks")
      .def("cut", &StreamCutter::cut, nb::arg("row"),
           "When the step of this mark began and when its data had come; None where the mark makes no step")
      .def("cut_early", &StreamCutter::cut_early, nb::arg("hurry"), "The same before its mark, where that is known")
      .def("unfed_validations", &StreamCutter::unfed_validations,
           "When forward passes ran without a backward pass at the end of a step: (start, end)")
      .def("forget", &StreamCutter::forget, nb::arg("before_ns"));
}
