// classes_bindings.cpp - classes of steps, as the recorder decides them, for the steps of a trace.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/conversions.h"
#include "structure/step_classes.h"

namespace nb = nanobind;
using namespace strobe;
using namespace strobe::structure;

namespace {

// An extra as a number: its kind in the upper half.
int64_t number_of(const Extra& extra) { return int64_t(extra.kind) << 32 | extra.number; }
Extra extra_of(int64_t number) { return {Extra::Kind(number >> 32), uint32_t(number)}; }

using Sets = std::vector<std::vector<int64_t>>;
using Uses = std::map<int64_t, std::pair<uint64_t, uint64_t>>;

Sets numbers_of(const std::vector<ExtraSet>& sets) {
  Sets out;
  for (const ExtraSet& set : sets) {
    out.emplace_back();
    for (const Extra& extra : set) out.back().push_back(number_of(extra));
  }
  return out;
}

nb::tuple extras_of(Input<int64_t> starts, Input<int64_t> durations, Input<int64_t> paths, Input<int64_t> path_parents,
                    Input<int64_t> path_regions, Input<uint8_t> is_function, Input<int64_t> activities,
                    Input<int64_t> unfed_validations, Input<int64_t> steps) {
  constexpr size_t kActivity = 3, kStep = 3;
  if (starts.shape(0) != durations.shape(0) || starts.shape(0) != paths.shape(0) ||
      path_parents.shape(0) != path_regions.shape(0) || activities.shape(0) % kActivity ||
      unfed_validations.shape(0) % 2 || steps.shape(0) % kStep)
    throw std::invalid_argument("columns differ in length, or a table ends within a row");
  for (size_t i = 0; i < path_parents.shape(0); i++)
    if (path_parents.data()[i] >= int64_t(i) || path_regions.data()[i] < 0 ||
        size_t(path_regions.data()[i]) >= is_function.shape(0))
      throw std::invalid_argument("a call path before its parent, or without a region");
  StepExtras found = unlocked([&] {
    Work work;
    for (const int64_t* row = activities.data(); row < activities.data() + activities.shape(0); row += kActivity)
      work.activities.push_back({row[0], row[1], 0, 0, 0, Part(row[2])});
    for (size_t i = 0; i < unfed_validations.shape(0); i += 2)
      work.unfed_validations.push_back({unfed_validations.data()[i], unfed_validations.data()[i + 1]});
    std::vector<StepTimes> times;
    for (const int64_t* row = steps.data(); row < steps.data() + steps.shape(0); row += kStep)
      times.push_back({row[0], row[1], row[2]});
    return extras_of_steps(
        {view(starts), view(durations), view(paths), view(path_parents), view(path_regions), view(is_function)}, times,
        work);
  });
  Uses uses;
  for (const auto& [extra, use] : found.uses) uses[number_of(extra)] = {use.steps, use.worth};
  return nb::make_tuple(owned(std::move(found.set_of_step)), numbers_of(found.sets), uses,
                        owned(std::move(found.rare)));
}

std::vector<Sets> classes_of(const std::vector<std::tuple<Sets, std::vector<uint64_t>, Uses>>& loops, size_t first,
                             const std::map<int64_t, int64_t>& names, int64_t known, Input<int64_t> path_parents) {
  ExtraNames named{.of = {}, .known = known};
  for (const auto& [extra, name] : names) named.of[extra_of(extra)] = name;
  std::vector<LoopExtras> all;
  for (const auto& [sets, steps, uses] : loops) {
    if (sets.size() != steps.size()) throw std::invalid_argument("sets and numbers of steps differ in length");
    LoopExtras& loop = all.emplace_back();
    loop.steps = steps;
    for (const std::vector<int64_t>& set : sets) {
      loop.sets.emplace_back();
      for (const int64_t extra : set) loop.sets.back().push_back(extra_of(extra));
    }
    for (const auto& [extra, use] : uses) loop.uses[extra_of(extra)] = {use.first, use.second};
  }
  decide_classes(all, first, named, view(path_parents));
  std::vector<Sets> out;
  for (const LoopExtras& loop : all) out.push_back(numbers_of(loop.sets));
  return out;
}

}  // namespace

void register_classes(nb::module_& m) {
  m.def("extras_of_steps", &extras_of, nb::arg("starts"), nb::arg("durations"), nb::arg("paths"),
        nb::arg("path_parents"), nb::arg("path_regions"), nb::arg("is_function"), nb::arg("activities"),
        nb::arg("unfed_validations"), nb::arg("steps"),
        "What steps do beyond the usual: native/structure/step_classes.h. (By step the number of its set of extras; "
        "the sets; by extra, how many steps do it at all, and at a cost; rows of the outermost calls that few steps "
        "make.) An extra "
        "is a number, see strobe.steps.finding.step_classes. Columns of all spans, of call paths and of regions; rows: "
        "activities (start, end, part), validations without data (start, end), steps (start, when its data had come, "
        "end); ns");
  m.def(
      "classes_of_sets", &classes_of, nb::arg("loops"), nb::arg("first"), nb::arg("names"), nb::arg("known"),
      nb::arg("path_parents"),
      "Which extras make a class: the sets of each loop without the others. loops: (sets, how many steps have each, "
      "the third of extras_of_steps); first: the set of the first step; names: numbers of what extras are called (-1: "
      "it makes no class), of which those below `known` need not recur");
}
