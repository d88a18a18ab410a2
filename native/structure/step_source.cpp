#include "structure/step_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "structure/region_names.h"

namespace strobe::structure {
namespace {

// So many marks tell which function calls what marks a level.
constexpr size_t marks_of_a_function = 64;
// Iterations follow each other for this share of the time of their level, and calls of one loop lie in it to this
// share.
constexpr double most_of_its_time = 0.5, nearly_all = 0.9;

// The spans around some others, each once, and -1 first where one has none.
Rows around(const Sequence& events, const Rows& rows) {
  Rows above;
  for (const int64_t row : rows)
    if (const int64_t parent = events.parents[size_t(row)]; above.empty() || above.back() != parent)
      above.push_back(parent);
  sort_unique(above);
  return above;
}

// What some calls run, if it is the same and known.
const SourceCode* code_of_all(const Sequence& events, const Rows& calls) {
  if (calls[0] < 0) return nullptr;
  const SourceCode* code = events.code_of(calls[0]);
  const bool same = std::ranges::all_of(calls, [&](int64_t row) { return events.code_of(row) == code; });
  return same ? code : nullptr;
}

// Iterations that were recorded themselves are the steps, whatever in them marks the level.
Beginning with_iterations(const Sequence& events, const Held& found, const SourceCode& loop) {
  Beginning beginning;
  for (int64_t row = found.holders.front() + 1; row < int64_t(events.parents.size()); ++row)
    if (std::ranges::binary_search(found.holders, events.parents[size_t(row)]) && events.code_of(row) == &loop)
      beginning.rows.push_back(row);
  beginning.with = beginning.rows.front();
  beginning.source = "each is an iteration of the " + loop.name;
  return beginning;
}

}  // namespace

void sort_unique(Rows& rows) {
  if (!std::ranges::is_sorted(rows)) std::ranges::sort(rows);  // parents of ascending rows mostly are
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
}

Rows rows_of(const Sequence& events, const Level& level, size_t most) {
  Rows rows;
  for (const uint32_t at : std::span(level.positions).first(std::min(most, level.positions.size())))
    rows.push_back(events.rows[at]);
  return rows;
}

Held held(const Sequence& events, Rows rows) {
  for (;;) {
    Rows above = around(events, rows);
    if (above.size() < rows.size() || above[0] < 0) return {std::move(rows), std::move(above)};
    rows = std::move(above);
  }
}

// Whether a level is the items of a generator expression that call nothing recorded: a part of one expression, however
// often it comes.
bool is_of_items(const Sequence& events, const Level& level) {
  if (!events.code_of) return false;
  Rows rows = rows_of(events, level, marks_of_a_function);
  return std::ranges::all_of(held(events, std::move(rows)).calls, [&](int64_t row) {
    const SourceCode* code = events.code_of(row);
    const bool calls = size_t(row) + 1 < events.parents.size() && events.parents[size_t(row) + 1] == row;
    return code && code->name == "<genexpr>" && !calls;
  });
}

// Whether iterations that were recorded themselves follow each other for most of the time that their level spans: those
// of a helper function do not, nor those of which few were seen.
bool follow_each_other(const Sequence& events, const Level& level) {
  int64_t in_turn_ns = 0;
  for (size_t i = 0; i + 1 < level.positions.size(); ++i) {
    const uint32_t at = level.positions[i], next = level.positions[i + 1];
    if (events.parents[size_t(events.rows[at])] == events.parents[size_t(events.rows[next])])
      in_turn_ns += events.starts_ns[next] - events.starts_ns[at];
  }
  const auto all_ns = double(events.starts_ns[level.positions.back()] - events.starts_ns[level.positions.front()]);
  return double(in_turn_ns) >= most_of_its_time * all_ns;
}

// Whether the same function calls what marks two levels, the inner one in a loop that lies in that of the outer one.
bool is_loop_in_loop(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const auto called = [&](const Level& level) -> std::pair<const SourceCode*, const SourceCode*> {
    const Held found = held(events, rows_of(events, level, marks_of_a_function));
    return {events.code_of(found.calls[0]), code_of_all(events, found.holders)};
  };
  const auto [inside, holder] = called(inner);
  const auto [outside, other_holder] = called(outer);
  if (!inside || !outside || !holder || holder != other_holder) return false;
  const uint32_t loop = holder->loops.calls_of(inside->name).loop, around = holder->loops.calls_of(outside->name).loop;
  return around && loop != around && holder->loops.is_within(loop, around);
}

// Whether a library calls what marks the inner level (`frame.apply(judge)`), in what a loop of the same function does:
// for each item of a generator, or beside a call that each iteration makes once.
bool is_done_by_a_library(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const Held inside = held(events, rows_of(events, inner, marks_of_a_function));
  Rows marks = rows_of(events, outer, marks_of_a_function);
  if (!outer.marker.is_node())  // the first of the calls behind what is done for each item
    for (size_t i = 0; i < marks.size(); ++i) marks[i] = events.rows[outer.positions[i] - 1];
  const Held around = held(events, std::move(marks));
  const SourceCode *holder = code_of_all(events, inside.holders), *called = events.code_of(inside.calls[0]);
  const SourceCode* item = events.code_of(around.calls[0]);
  if (!holder || !called || !item || inside.holders != around.holders || holder->loops.calls(called->name))
    return false;
  return holder->loops.any() && (item->loops.yields() || holder->loops.calls_of(item->name).times == 1);
}

// Whether a function that holds the iterations of a level in a loop is itself called once in each iteration of a loop:
// by whom is told by the source.
bool is_held_by_an_iteration(const Sequence& events, const Level& inner) {
  if (!events.code_of) return false;
  Rows rows = rows_of(events, inner, marks_of_a_function);
  const int64_t call = held(events, std::move(rows)).holders[0];
  const int64_t caller = call < 0 ? -1 : events.parents[size_t(call)];
  if (caller < 0) return false;
  const SourceCode *code = events.code_of(call), *callers = events.code_of(caller);
  return code && callers && code->loops.any() && callers->loops.calls_of(code->name).times == 1;
}

// Whether a span lies in a loop of a function around it. A generator of many items is called once, in front of the loop
// that asks for them.
bool lies_in_a_loop(const Sequence& events, int64_t row) {
  for (int64_t above = events.parents[size_t(row)]; above >= 0; row = above, above = events.parents[size_t(row)]) {
    const SourceCode *code = events.code_of(row), *callers = events.code_of(above);
    if (code && (code->loops.yields() || (callers && callers->loops.calls_of(code->name).loop))) return true;
  }
  return false;
}

bool trains(const Sequence& events) {
  std::vector<bool> seen(size_t{std::ranges::max(events.ids)} + 1);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    if (seen[events.ids[i]]) continue;
    seen[events.ids[i]] = true;
    if (const SourceCode* code = events.code_of(events.rows[i]); code && is_backward(code->name)) return true;
  }
  return false;
}

// Where the source of the function that runs the loop is known, a step is an iteration of that loop: it begins with
// what each iteration calls first, and is one however often an iteration calls that.
std::optional<Beginning> beginning_of(const Sequence& events, const Level& chosen) {
  if (!events.code_of) return {};
  const Held found = held(events, rows_of(events, chosen));
  if (found.holders.front() < 0) return {};
  const SourceCode* holder = code_of_all(events, found.holders);
  const SourceCode* marked = code_of_all(events, found.calls);
  if (marked && marked->is_loop) return with_iterations(events, found, *marked);
  marked = events.code_of(found.calls[0]);
  if (!holder || !marked || !holder->loops.any()) return {};
  struct Called {
    int64_t first, last;
    size_t count = 0;
  };
  std::map<const SourceCode*, Called> called;  // by these calls of the function
  for (int64_t row = found.holders.front(); row < int64_t(events.parents.size()); ++row)
    if (std::ranges::binary_search(found.holders, events.parents[size_t(row)])) {
      Called& each = called.try_emplace(events.code_of(row), Called{row, row}).first->second;
      each.last = row, ++each.count;
    }
  // What marks the level may be called by something that the source calls: then any loop of the function may hold it.
  const SourceLoops::Calls marks = holder->loops.calls_of(marked->name);
  const auto all =
      marks.times ? (double(called[marked].count) - marks.before) / marks.times : double(found.calls.size());
  for (const uint32_t loop : marks.loop ? std::vector{marks.loop} : holder->loops.outermost())
    for (const std::string& name : holder->loops.in_each_iteration(loop)) {
      const SourceLoops::Calls calls = holder->loops.calls_of(name);
      const auto of_name = [&](const auto& each) { return each.first && each.first->is_called(name); };
      const auto it = std::ranges::find_if(called, of_name);
      if (!calls.times || it == called.end() || std::ranges::count_if(called, of_name) > 1) continue;
      if (calls.before && (found.holders.size() > 1 || events.begins_before)) continue;
      const auto& [code, each] = *it;
      const double iterations = (double(each.count) - calls.before) / calls.times;
      if (marks.times ? std::abs(iterations - all) > 2 : iterations < all) continue;
      const auto inside = [&](int64_t row) { return row >= each.first && row <= each.last; };
      if (!marks.loop && double(std::ranges::count_if(found.calls, inside)) < nearly_all * double(found.calls.size()))
        continue;
      Beginning beginning;
      beginning.with = each.first;
      beginning.marks.every = calls.times;
      beginning.source = "the loop in " + holder->name + " calls " + code->name + " ";
      beginning.source += calls.times == 1 ? std::string("once") : std::to_string(calls.times).append(" times");
      beginning.source += " in each iteration";
      std::map<const SourceCode*, uint32_t>
          in_front;  // what is called in front at times, and how often before the loop
      for (const std::string& before : holder->loops.in_front_of(name, loop)) {
        const auto at =
            std::ranges::find_if(called, [&](const auto& c) { return c.first && c.first->is_called(before); });
        const uint32_t before_loop = holder->loops.calls_of(before).before;
        if (at == called.end() || (before_loop && (found.holders.size() > 1 || events.begins_before))) continue;
        in_front.emplace(at->first, before_loop), beginning.in_front.push_back(at->second.first);
      }
      uint32_t skipped = 0;
      for (int64_t row = found.holders.front(); row <= each.last; ++row) {
        if (!std::ranges::binary_search(found.holders, events.parents[size_t(row)])) continue;
        const SourceCode* one = events.code_of(row);
        const auto front = in_front.find(one);
        if (front != in_front.end() && front->second) {
          --front->second;
          continue;
        }
        const bool begins = one == code ? skipped++ >= calls.before && beginning.marks.always()
                                        : front != in_front.end() && beginning.marks.at_times();
        if (begins) beginning.rows.push_back(row);
      }
      return beginning;
    }
  return {};
}

// Whether the source tells that a level is a loop, however little repeats in it: it calls one function, and at times
// another one.
bool is_in_source(const Sequence& events, const Level& level) {
  if (!events.code_of) return false;
  const Held found = held(events, rows_of(events, level, marks_of_a_function));
  const SourceCode *marked = events.code_of(found.calls[0]), *holder = code_of_all(events, found.holders);
  if (!marked || !holder || (!marked->is_loop && !holder->loops.calls_of(marked->name).loop)) return false;
  return beginning_of(events, level).has_value();
}

}  // namespace strobe::structure
