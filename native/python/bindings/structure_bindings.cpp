// structure_bindings.cpp - the kernels of the structure layer as functions over numpy arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <tuple>

#include "python/bindings/conversions.h"
#include "structure/batch_makers.h"
#include "structure/cells.h"
#include "structure/decision.h"
#include "structure/expression.h"
#include "structure/flow_graph.h"
#include "structure/gpu_lanes.h"
#include "structure/levels.h"
#include "structure/loops.h"
#include "structure/phases.h"
#include "structure/region_names.h"
#include "structure/update_groups.h"

namespace nb = nanobind;
using namespace strobe;
using namespace strobe::structure;

namespace {

nb::object source_of(const Item& marker) { return marker.is_node() ? nb::none() : nb::object(nb::int_(marker.source)); }

// In the order of the fields of strobe.steps.loop_choice.levels.Level.
nb::tuple tuple_of(Level level) {
  return nb::make_tuple(owned(std::move(level.positions)), level.count, level.spine, level.coverage, level.cvn,
                        level.score, level.parent, level.trips_min, level.trips_median, level.trips_max,
                        source_of(level.marker), level.marker.target);
}

// What a choice needs of such tuples, of levels of so many events.
std::vector<Level> levels_from(const nb::list& tuples, size_t events) {
  std::vector<Level> levels;
  for (const nb::handle each : tuples) {
    const auto positions = nb::cast<Input<uint32_t>>(each[0]);
    const std::span<const uint32_t> at = view(positions);
    if (at.size() < 2 || at.back() >= events) throw std::invalid_argument("a level is not one of these events");
    Level level;
    level.count = nb::cast<uint32_t>(each[1]);
    level.spine = nb::cast<double>(each[2]);
    level.coverage = nb::cast<double>(each[3]);
    level.cvn = nb::cast<double>(each[4]);
    level.score = nb::cast<double>(each[5]);
    if (!each[10].is_none()) level.marker.source = nb::cast<uint32_t>(each[10]);
    level.positions.assign(at.begin(), at.end());
    levels.push_back(std::move(level));
  }
  return levels;
}

nb::list levels_of(Input<uint32_t> ids, Input<int64_t> times, uint32_t min_count, uint32_t max_levels,
                   uint32_t most_open) {
  if (ids.shape(0) != times.shape(0)) throw std::invalid_argument("ids and times differ in length");
  std::vector<Level> levels =
      unlocked([&] { return find_levels(view(ids), view(times), {min_count, max_levels, most_open}); });
  nb::list result;
  for (auto& level : levels) result.append(tuple_of(std::move(level)));
  return result;
}

// The code of regions, by their numbers.
class SourceCodes {
 public:
  SourceCodes(const std::vector<std::string>& names, const std::map<int64_t, std::string>& loops) {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto known = loops.find(int64_t(i));
      codes_.emplace_back(names[i], known == loops.end() ? std::string_view() : known->second);
    }
  }
  const SourceCode* of(int64_t region) const {
    return region >= 0 && size_t(region) < codes_.size() ? &codes_[size_t(region)] : nullptr;
  }

 private:
  std::deque<SourceCode> codes_;
};

// By call path: 1 where it makes batches.
nb::object batch_makers(Input<int64_t> parents, Input<int64_t> regions, const std::vector<std::string>& names,
                        Input<uint8_t> paradigms, const SourceCodes& codes) {
  const size_t paths = parents.shape(0);
  if (regions.shape(0) != paths || paradigms.shape(0) != names.size())
    throw std::invalid_argument("columns differ in length");
  for (size_t i = 0; i < paths; ++i)
    if (parents.data()[i] >= int64_t(i) || regions.data()[i] < 0 || size_t(regions.data()[i]) >= names.size() ||
        !codes.of(regions.data()[i]))
      throw std::invalid_argument("a call path before its parent, or without a region");
  return owned(unlocked([&] {
    BatchMakers makers;
    for (size_t i = 0; i < paths; ++i) {
      const int64_t parent = parents.data()[i], region = regions.data()[i];
      makers.add(parent < 0 ? BatchMakers::kNone : uint32_t(parent), names[size_t(region)], paradigms.data()[region],
                 codes.of(region)->loops);
    }
    std::vector<uint8_t> makes(paths);
    for (uint32_t path : makers.iterators()) makes[path] = makers.makes(path);
    return makes;
  }));
}

nb::object step_of(uint8_t kind, Input<uint32_t> ids, Input<int64_t> starts, Input<int64_t> times,
                   Input<int64_t> waited, Input<int64_t> rows, Input<int64_t> parents, const nb::list& levels,
                   bool begins_before, bool goes_on, const std::optional<Input<int64_t>>& regions,
                   const SourceCodes* codes) {
  const size_t events = ids.shape(0);
  if (starts.shape(0) != events || times.shape(0) != events || rows.shape(0) != events ||
      (waited.shape(0) && waited.shape(0) != events))
    throw std::invalid_argument("ids, times and rows differ in length");
  if (events && (rows.data()[0] < 0 || size_t(rows.data()[events - 1]) >= parents.shape(0)))
    throw std::invalid_argument("rows without a parent");
  if (codes && (!regions || regions->shape(0) != parents.shape(0)))
    throw std::invalid_argument("spans without a region");
  std::vector<Level> found = levels_from(levels, events);
  std::function<const SourceCode*(int64_t)> code_of;
  if (codes) code_of = [&](int64_t row) { return codes->of(regions->data()[row]); };
  const auto choice = unlocked([&] {
    return choose_step({SequenceKind(kind), view(ids), view(starts), view(times), view(waited), view(rows),
                        view(parents), begins_before, goes_on, nullptr, code_of},
                       found);
  });
  if (!choice) return nb::none();
  return nb::make_tuple(choice->pair ? nb::object(tuple_of(*choice->pair)) : nb::none(), choice->level,
                        choice->promotion,
                        choice->other == StepChoice::no_event ? nb::none() : nb::object(nb::int_(choice->other)),
                        choice->rival, choice->enclosing, choice->below, choice->confidence,
                        choice->beginning ? owned(choice->beginning->rows) : nb::none(),
                        choice->beginning ? choice->beginning->source : std::string());
}

// Index of the level, -1 without any.
int innermost_of(Input<uint32_t> anchors, const nb::list& levels) {
  const std::vector<Level> found = levels_from(levels, SIZE_MAX);
  const Level* level = unlocked([&] { return innermost_with(view(anchors), found); });
  return level ? int(level - found.data()) : -1;
}

// In the order of the fields of strobe.steps.loop_choice.events.Events; without_peer: an empty array if there is none.
Events events_from(const nb::handle& tuple, size_t spans) {
  const auto ids = nb::cast<Input<uint32_t>>(tuple[1]), without_peer = nb::cast<Input<uint32_t>>(tuple[6]);
  const auto rows = nb::cast<Input<int64_t>>(tuple[2]), starts = nb::cast<Input<int64_t>>(tuple[3]),
             times = nb::cast<Input<int64_t>>(tuple[4]), waited = nb::cast<Input<int64_t>>(tuple[5]);
  const size_t events = ids.shape(0);
  const auto fits = [&](size_t count, bool may_lack) { return count == events || (may_lack && !count); };
  if (!fits(rows.shape(0), false) || !fits(starts.shape(0), false) || !fits(times.shape(0), false) ||
      !fits(waited.shape(0), true) || !fits(without_peer.shape(0), true))
    throw std::invalid_argument("ids, times and rows differ in length");
  if (events && (rows.data()[0] < 0 || size_t(rows.data()[events - 1]) >= spans))
    throw std::invalid_argument("events that are no spans");
  return {SequenceKind(nb::cast<uint8_t>(tuple[0])),
          view(ids),
          view(rows),
          view(starts),
          view(times),
          view(waited),
          view(without_peer),
          false,
          false};
}

LoopKind loop_kind_of(std::string_view name) {
  for (const LoopKind kind : {LoopKind::hint, LoopKind::range, LoopKind::optimizer, LoopKind::zero_grad,
                              LoopKind::data_wait, LoopKind::structure})
    if (name == loop_kind_name(kind)) return kind;
  throw std::invalid_argument("no kind of a loop");
}

// `anchor`: (kind, name, rows of its marks, ids of waits for data), or None.
nb::object decide(Input<int64_t> starts, Input<int64_t> parents, Input<int64_t> regions, const nb::object& names,
                  const SourceCodes* codes, const nb::list& sequences, const nb::object& anchor) {
  const size_t count = starts.shape(0);
  if (parents.shape(0) != count || regions.shape(0) != count) throw std::invalid_argument("spans differ in length");
  std::vector<Events> all;
  for (const nb::handle each : sequences) all.push_back(events_from(each, count));
  Spans spans{.starts_ns = view(starts), .parents = view(parents), .code_of = {}, .name_of = [&](int64_t row) {
                nb::gil_scoped_acquire locked;
                return nb::cast<std::string>(names[nb::int_(regions.data()[row])]);
              }};
  if (codes) spans.code_of = [&](int64_t row) { return codes->of(regions.data()[row]); };
  std::optional<Decision> found;
  if (anchor.is_none()) {
    found = unlocked([&] { return decide_by_structure(spans, all); });
  } else {
    const auto name = nb::cast<std::string>(anchor[1]);
    const auto rows = nb::cast<Input<int64_t>>(anchor[2]);
    const auto waits = nb::cast<Input<uint32_t>>(anchor[3]);
    const LoopKind kind = loop_kind_of(nb::cast<std::string>(anchor[0]));
    if (!rows.shape(0) || rows.data()[0] < 0 || size_t(rows.data()[rows.shape(0) - 1]) >= count)
      throw std::invalid_argument("marks that are no spans");
    found = unlocked([&] { return decide_anchored(spans, all, {kind, name, view(rows), 0, view(waits)}); });
  }
  if (!found) return nb::none();
  nb::list levels, agreeing;
  for (Level& level : found->levels) levels.append(tuple_of(std::move(level)));
  for (const SequenceKind kind : found->agreeing) agreeing.append(sequence_kind_name(kind));
  return nb::make_tuple(owned(std::move(found->rows)), sequence_kind_name(found->sequence), found->without_peer, levels,
                        found->level == Decision::no_level ? nb::none() : nb::object(nb::int_(found->level)), agreeing,
                        found->confidence, found->reason);
}

// `durations` below 0: the event did not end.
GraphTables build_graph(Input<uint64_t> signatures, Input<int64_t> times, std::optional<Input<int64_t>> durations,
                        uint32_t nodes, uint32_t edges, size_t partition_bytes) {
  if (signatures.shape(0) != times.shape(0) || (durations && durations->shape(0) != times.shape(0)))
    throw std::invalid_argument("ids, times and durations differ in length");
  nb::gil_scoped_release release;
  FlowGraph graph({nodes, edges, partition_bytes});
  for (size_t i = 0; i < times.shape(0); ++i) {
    const uint32_t node = graph.enter(signatures.data()[i], times.data()[i]);
    if (durations && durations->data()[i] >= 0) graph.leave(node, durations->data()[i]);
  }
  return graph.tables();
}

std::optional<GraphTables> graph_from(const nb::bytes& payload) { return decode_graph(strobe::view(payload)); }

nb::bytes payload_of(const GraphTables& graph) {
  return bytes_of(unlocked([&] { return encode_graph(graph); }));
}

nb::dict nodes_of(const GraphTables& graph) {
  nb::dict out;
  out["signature"] = column(graph.nodes, &Node::signature);
  out["count"] = column(graph.nodes, &Node::count);
  out["left"] = column(graph.nodes, &Node::left);
  out["sum_ns"] = column(graph.nodes, &Node::sum_ns);
  out["min_ns"] = column(graph.nodes, &Node::min_ns);
  out["max_ns"] = column(graph.nodes, &Node::max_ns);
  out["first_ns"] = column(graph.nodes, &Node::first_ns);
  return out;
}

nb::dict edges_of(const GraphTables& graph) {
  nb::dict out;
  out["source"] = column(graph.edges, &Edge::source);
  out["target"] = column(graph.edges, &Edge::target);
  out["count"] = column(graph.edges, &Edge::count);
  out["sum_ns"] = column(graph.edges, &Edge::sum_ns);
  out["min_ns"] = column(graph.edges, &Edge::min_ns);
  out["max_ns"] = column(graph.edges, &Edge::max_ns);
  out["squares_ns2"] = column(graph.edges, &Edge::squares_ns2);
  out["partitions_begin"] = column(graph.edges, &Edge::partitions_begin);
  out["partitions_end"] = column(graph.edges, &Edge::partitions_end);
  out["replayable"] = column(graph.edges, [](const Edge& edge) { return uint8_t(edge.replayable); });
  return out;
}

// (first, last, stride, block) of all partitions.
nb::tuple partitions_of(const GraphTables& graph) {
  return nb::make_tuple(column(graph.partitions, &Partition::first), column(graph.partitions, &Partition::last),
                        column(graph.partitions, &Partition::stride), column(graph.partitions, &Partition::block));
}

nb::object replay_of(const GraphTables& graph) {
  return owned(unlocked([&] { return replay(graph); }));
}

// (header of every node, is_header, irreducible, edges that re-enter)
nb::tuple loops_of(const GraphTables& graph) {
  LoopNest nest = unlocked([&] {
    std::vector<uint32_t> targets;
    for (const Edge& edge : graph.edges) targets.push_back(edge.target);
    return graph.first == GraphTables::none ? LoopNest{} : find_loops({graph.out, targets}, graph.first);
  });
  return nb::make_tuple(owned(std::move(nest.header)), owned(std::move(nest.is_header)),
                        owned(std::move(nest.irreducible)), owned(std::move(nest.re_entries)));
}

// (where each chain begins in the nodes, the nodes chain by chain)
nb::tuple chains_of(const GraphTables& graph) {
  Chains chains = unlocked([&] { return find_chains(graph); });
  return nb::make_tuple(owned(std::move(chains.begin)), owned(std::move(chains.nodes)));
}

// The columns of Expression: event, size, runs_begin, runs_end of every element; trips, times of every run.
nb::tuple fold_of(Input<uint32_t> ids) {
  const Expression folded = unlocked([&] { return fold(view(ids)); });
  return nb::make_tuple(column(folded.elements, &Element::event), column(folded.elements, &Element::size),
                        column(folded.elements, &Element::runs_begin), column(folded.elements, &Element::runs_end),
                        column(folded.runs, &TripRun::trips), column(folded.runs, &TripRun::times));
}

// When the innermost span is of which kind, of spans in order of start that nest.
KindTimeline kind_timeline(Input<int64_t> starts, Input<int64_t> ends, Input<int8_t> kinds) {
  KindTimeline timeline(SIZE_MAX);
  std::vector<std::pair<int64_t, Kind>> open;
  const auto leave = [&](int64_t until_ns) {
    while (!open.empty() && open.back().first <= until_ns) {
      const int64_t end_ns = open.back().first;
      open.pop_back();
      timeline.change(end_ns, open.empty() ? kHost : open.back().second);
    }
  };
  for (size_t i = 0; i < starts.shape(0); i++) {
    leave(starts.data()[i]);
    timeline.change(starts.data()[i], Kind(kinds.data()[i]));
    open.emplace_back(ends.data()[i], Kind(kinds.data()[i]));
  }
  leave(INT64_MAX);
  return timeline;
}

// The cells of each iteration, part by part: strobe.steps.finding.step_parts.
nb::object cells_of_steps(Input<int64_t> activities, Input<int64_t> modules, Input<int64_t> others, Input<int64_t> rare,
                          Input<int64_t> closures, Input<int64_t> unfed_validations, Input<int64_t> steps,
                          bool cut_anywhere, Input<int64_t> starts, Input<int64_t> ends, Input<int8_t> kinds) {
  constexpr size_t kColumns = 5, kStepColumns = 3;
  Work work;
  const auto intervals = {std::pair(&modules, &work.modules),
                          {&others, &work.others},
                          {&rare, &work.rare},
                          {&closures, &work.closures},
                          {&unfed_validations, &work.unfed_validations}};
  bool whole = activities.shape(0) % kColumns == 0 && steps.shape(0) % kStepColumns == 0;
  for (const auto& [from, to] : intervals) whole &= from->shape(0) % 2 == 0;
  whole &= starts.shape(0) == ends.shape(0) && starts.shape(0) == kinds.shape(0);
  if (!whole) throw std::invalid_argument("a table of activities, intervals, steps or spans ends within a row");
  return owned(unlocked([&] {
    for (size_t i = 0; i < activities.shape(0); i += kColumns) {
      const int64_t* row = activities.data() + i;
      work.activities.push_back({row[0], row[1], 0, 0, 0, Part(row[2]), Change(row[3]), row[4] != 0});
      work.trains |= row[2] == kBackward;
    }
    for (const auto& [from, to] : intervals)
      for (size_t i = 0; i < from->shape(0); i += 2) to->push_back({from->data()[i], from->data()[i + 1]});
    KindTimeline timeline = kind_timeline(starts, ends, kinds);
    const std::span<const KindInterval> of_kinds = timeline.until(INT64_MAX);
    std::vector<int64_t> all;
    for (size_t i = 0; i < steps.shape(0); i += kStepColumns) {
      const int64_t* row = steps.data() + i;
      const Part before = work.last_before(work.first_since(row[1]), kRest);
      const auto parts = work.split(row[0], row[1], row[2], before, cut_anywhere ? kBackward : kRest);
      const Cells cells = cells_of(parts, of_kinds, row[0], row[2]);
      for (const auto& part : cells.ns) all.insert(all.end(), std::begin(part), std::end(part));
    }
    return all;
  }));
}

// The lanes of a GPU whose steps are all known; its activities come in order of start, a part at a time.
class LanesOfGpu {
 public:
  LanesOfGpu(Input<int64_t> starts, Input<int64_t> ends) : source_(lanes_.source(0)) {
    if (starts.shape(0) != ends.shape(0)) throw std::invalid_argument("the columns of the steps differ in length");
    for (size_t i = 0; i < starts.shape(0); i++) lanes_.add_step(starts.data()[i], ends.data()[i]);
    lanes_.end_steps();
  }
  void add(Input<int64_t> launched, Input<int64_t> starts, Input<int64_t> ends, Input<int8_t> kinds) {
    const size_t count = starts.shape(0);
    if (launched.shape(0) != count || ends.shape(0) != count || kinds.shape(0) != count)
      throw std::invalid_argument("the columns of the activities differ in length");
    unlocked([&] {
      for (size_t i = 0; i < count; i++)
        lanes_.add(source_, {launched.data()[i], starts.data()[i], ends.data()[i], GpuKind(kinds.data()[i])});
      lanes_.proceed(INT64_MAX);
      return 0;
    });
  }
  // Step after step: when its lane begins, and the time of each set of kinds.
  nb::object finish() {
    lanes_.finish();
    const GpuLaneColumns& lanes = lanes_.known().at(0).lanes;
    std::vector<int64_t> rows;
    for (size_t row = 0; row < lanes.size(); row++) {
      rows.push_back(lanes.starts_ns()[row]);
      for (int set = 0; set < kGpuSets; set++) {
        const auto& column = lanes.column(set);
        rows.push_back(row < column.size() ? column[row] : 0);
      }
    }
    return owned(std::move(rows));
  }

 private:
  GpuLanes lanes_;
  GpuLanes::Source& source_;
};

nb::object expand_columns(Input<uint32_t> event, Input<uint32_t> size, Input<uint32_t> runs_begin,
                          Input<uint32_t> runs_end, Input<uint32_t> trips, Input<uint32_t> times) {
  const size_t elements = event.shape(0), runs = trips.shape(0);
  if (size.shape(0) != elements || runs_begin.shape(0) != elements || runs_end.shape(0) != elements ||
      times.shape(0) != runs)
    throw std::invalid_argument("the columns of the expression differ in length");
  return owned(unlocked([&] {
    Expression expression;
    for (size_t i = 0; i < elements; ++i)
      expression.elements.push_back({event.data()[i], size.data()[i], runs_begin.data()[i], runs_end.data()[i]});
    for (size_t i = 0; i < runs; ++i) expression.runs.push_back({trips.data()[i], times.data()[i]});
    return expand(expression);
  }));
}

}  // namespace

void register_structure(nb::module_& m) {
  m.attr("LEAST_CALL_NS") = kLeastCallNs;
  m.def(
      "work_of_region",
      [](const std::string& name, uint8_t paradigm) {
        return nb::make_tuple(int(part_of_region(name, paradigm)), int(change_of_region(name)),
                              is_module_call(name, paradigm), is_model_call(name, paradigm));
      },
      nb::arg("name"), nb::arg("paradigm"),
      "By its name: the part of a step that a region belongs to (-1: none), what it does to parameters (0: nothing, 1: "
      "changes them in place, 2: zeroes gradients), whether it is the call of a module, and of one that is no loss");
  m.def(
      "is_step_rather",
      [](const std::string& kind, std::tuple<uint64_t, int64_t, int64_t> one,
         std::tuple<uint64_t, int64_t, int64_t> other) {
        return is_step_rather(loop_kind_of(kind), std::make_from_tuple<AnchorTimes>(one),
                              std::make_from_tuple<AnchorTimes>(other));
      },
      nb::arg("kind"), nb::arg("one"), nb::arg("other"),
      "Of two names of anchors of a kind, as (count, first, last; ns), whether the second one marks the step");
  m.def(
      "without_silence",
      [](Input<int64_t> times) { return owned(unlocked([&] { return without_silence(view(times)); })); },
      nb::arg("times"),
      "Times from 0 on in which a pause counts as a hundredth of the whole at most: imports leave no events in any "
      "loop");
  m.def(
      "decide", &decide, nb::arg("starts"), nb::arg("parents"), nb::arg("regions"), nb::arg("names"),
      nb::arg("codes").none(), nb::arg("sequences"), nb::arg("anchor").none(),
      "The main loop of a thread: native/structure/decision.h. (rows that mark an iteration, kind of the sequence that "
      "decided, whether without peers; its levels, and which was chosen; kinds of agreeing sequences; confidence; "
      "reason), or None. sequences: (kind, ids, rows, starts, times, waited, ids without peers) of each; anchor: "
      "(kind, name, rows, ids of waits for data)");
  m.def(
      "updates_per_step",
      [](Input<uint32_t> ids, Input<uint32_t> updates, Input<uint32_t> waits) {
        return unlocked([&] { return updates_per_step(view(ids), view(updates), view(waits)); });
      },
      nb::arg("ids"), nb::arg("updates"), nb::arg("waits"),
      "How many updates, of which `updates` are the indices in the operators `ids`, make a step; 0: too few to tell. "
      "`waits`: the ids of waits for data");
  nb::class_<LanesOfGpu>(m, "LanesOfGpu", "The lanes of steps on a GPU: native/structure/gpu_lanes.h; ns")
      .def(nb::init<Input<int64_t>, Input<int64_t>>(), nb::arg("starts"), nb::arg("ends"), "Of all steps, in order")
      .def("add", &LanesOfGpu::add, nb::arg("launched"), nb::arg("starts"), nb::arg("ends"), nb::arg("kinds"),
           "Activities, in order of start over all calls")
      .def("finish", &LanesOfGpu::finish,
           "A row per step, one behind the other: when its lane begins, and how long exactly each set of kinds runs");
  m.def(
      "gpu_kind_of_region", [](const std::string& name, uint8_t role) { return int(gpu_kind_of_region(name, role)); },
      nb::arg("name"), nb::arg("role"),
      "What an activity of a GPU does, as strobe.gpu.work.KINDS numbers it; -1: it is not one");
  m.def(
      "cells_of_steps", &cells_of_steps, nb::arg("activities"), nb::arg("modules"), nb::arg("others"), nb::arg("rare"),
      nb::arg("closures"), nb::arg("unfed_validations"), nb::arg("steps"), nb::arg("cut_anywhere"), nb::arg("starts"),
      nb::arg("ends"), nb::arg("kinds"),
      "The time of each step by part and kind, step after step. Rows: activities (start, end, part, change, in_model), "
      "intervals (start, end), steps (start, when its data had come, end); ns. cut_anywhere: steps "
      "may end before a backward pass. starts, ends, kinds: of all spans of the thread");
  m.def(
      "kind_of_region",
      [](const std::string& name, uint8_t paradigm, uint8_t role) { return int(kind_of_region(name, paradigm, role)); },
      nb::arg("name"), nb::arg("paradigm"), nb::arg("role"), "What passes the time in spans of a region");
  m.def(
      "anchor_of_region",
      [](const std::string& name, uint8_t paradigm) {
        const char* kind = strobe::structure::loop_kind_name(strobe::structure::anchor_of_region(name, paradigm));
        return nb::make_tuple(kind, std::string(strobe::structure::anchor_name(name)));
      },
      nb::arg("name"), nb::arg("paradigm"),
      "How iterations may be marked by a region (`structure`: not at all), and what its anchor is called");
  m.def(
      "is_iteration",
      [](const std::string& name, uint8_t paradigm) { return strobe::structure::is_iteration(name, paradigm); },
      nb::arg("name"), nb::arg("paradigm"), "Whether a region is an iteration of a loop that calls nothing recorded.");
  m.def(
      "is_backward", [](const std::string& name) { return strobe::structure::is_backward(name); }, nb::arg("name"),
      "Whether a region is a part of the backward pass, by its name");
  m.def("find_levels", &levels_of, nb::arg("ids"), nb::arg("times"), nb::arg("min_count"), nb::arg("max_levels"),
        nb::arg("most_open") = LevelOptions{}.most_open,
        "Loop levels of an event sequence, best score first; see strobe.steps.loop_choice.levels");
  m.def("choose_step", &step_of, nb::arg("kind"), nb::arg("ids"), nb::arg("starts"), nb::arg("times"),
        nb::arg("waited"), nb::arg("rows"), nb::arg("parents"), nb::arg("levels"), nb::arg("begins_before") = false,
        nb::arg("goes_on") = false, nb::arg("regions") = nb::none(), nb::arg("codes") = nb::none(),
        "Which of its levels is the step of a sequence; see native/structure/step_choice.h. (The pair of iterations "
        "that is the step, or index of the level; why; the event that ends the reason; rival, enclosing, below; "
        "confidence; the spans that begin a step, and what of the source tells so, where it does), or None");
  nb::class_<SourceCodes>(m, "SourceCodes", "What is known of the source of functions")
      .def(nb::init<const std::vector<std::string>&, const std::map<int64_t, std::string>&>(), nb::arg("names"),
           nb::arg("loops"));
  m.def(
      "yields", [](const std::string& loops) { return SourceLoops(loops).yields(); }, nb::arg("loops"),
      "Whether a function of which this is known is a generator of many items");
  m.def("batch_makers", &batch_makers, nb::arg("parents"), nb::arg("regions"), nb::arg("names"), nb::arg("paradigms"),
        nb::arg("codes"), "By call path: 1 where it makes the batches of a loop: native/structure/batch_makers.h");
  m.def("innermost_with", &innermost_of, nb::arg("anchors"), nb::arg("levels"),
        "The innermost level that has an anchor, of which these are the positions, in nearly all iterations; -1: none");
  nb::class_<GraphTables>(m, "Graph", "A finished flow graph; see strobe.steps.loops.flow_graph")
      .def("nodes", &nodes_of)
      .def("edges", &edges_of)
      .def("partitions", &partitions_of)
      .def_ro("first", &GraphTables::first)
      .def_ro("last", &GraphTables::last)
      .def_ro("lost_transitions", &GraphTables::lost_transitions)
      .def("replayable", &GraphTables::replayable)
      .def("replay", &replay_of)
      .def("loops", &loops_of)
      .def("chains", &chains_of)
      .def("encode", &payload_of)
      .def("structure_bytes", &structure_bytes, nb::arg("folded"), Unlocked());
  m.def("build_graph", &build_graph, nb::arg("signatures"), nb::arg("times"), nb::arg("durations").none(),
        nb::arg("nodes"), nb::arg("edges"), nb::arg("partition_bytes"), "The flow graph of a sequence of events");
  m.def("decode_graph", &graph_from, nb::arg("payload"), Unlocked(), "The graph of a payload, None if it is damaged");
  m.def("fold", &fold_of, nb::arg("ids"), "The SEQ/LOOP expression of a sequence; see strobe.steps.loops.expression");
  m.def("expand", &expand_columns, nb::arg("event"), nb::arg("size"), nb::arg("runs_begin"), nb::arg("runs_end"),
        nb::arg("trips"), nb::arg("times"), "The sequence of an expression");
}
