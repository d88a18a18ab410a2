#include "structure/step_source.h"

#include <algorithm>
#include <cmath>
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
// Rows of files are no steps: iterations of a loop that goes through what an item of the outer one holds, and that are
// as short as that.
constexpr int64_t short_ns = 5'000'000;
// Iterations that only ask whether there is something to do take so little of the time, one as little of the time of
// one that does it, and are followed by one that does after a number that varies so much.
constexpr double little_time = 0.3, little_of_one = 0.3, any_number = 0.2;

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

// Whether most iterations of a `while` loop only ask whether there is something to do, and some do it: begins of all
// iterations, and of what is done. (An iteration over items does one of them, however little that takes.)
bool only_asks(std::span<const int64_t> iterations_ns, std::span<const int64_t> done_ns) {
  if (iterations_ns.size() < 3 || done_ns.size() < 3) return false;
  const std::vector<uint32_t> asked = trips<int64_t>(done_ns, iterations_ns);
  double mean = 0, square = 0;
  for (const uint32_t n : asked) mean += n, square += double(n) * n;
  mean /= double(asked.size()), square /= double(asked.size());
  if (square - mean * mean < any_number * any_number * mean * mean) return false;
  const std::vector<uint32_t> does = trips<int64_t>(iterations_ns, done_ns);
  double with_ns = 0, without_ns = 0;
  size_t without = 0;
  for (size_t i = 0; i < does.size(); ++i) {
    (does[i] ? with_ns : without_ns) += double(iterations_ns[i + 1] - iterations_ns[i]);
    without += !does[i];
  }
  const size_t with = does.size() - without;
  return with && without && without_ns < little_time * (with_ns + without_ns) &&
         without_ns / double(without) < little_of_one * with_ns / double(with);
}

std::vector<int64_t> times_of(const Sequence& events, const Level& level) {
  std::vector<int64_t> times;
  for (const uint32_t at : level.positions) times.push_back(events.starts_ns[at]);
  return times;
}

bool is_short(std::vector<int64_t> each_ns) {
  if (each_ns.empty()) return false;
  const auto half = each_ns.begin() + ptrdiff_t(each_ns.size() / 2);
  std::ranges::nth_element(each_ns, half);
  return *half < short_ns;
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

bool is_only_asked(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const Held done = held(events, rows_of(events, outer, marks_of_a_function));
  const SourceCode *code = events.code_of(done.calls[0]), *holder = code_of_all(events, done.holders);
  if (!code || !holder || !holder->loops.is_while(holder->loops.calls_of(code->name).loop)) return false;
  return only_asks(times_of(events, inner), times_of(events, outer));
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

namespace {

bool has_short_iterations(const Sequence& events, const Level& level) {
  std::vector<int64_t> each_ns;
  for (size_t i = 0; i + 1 < level.positions.size(); ++i)
    each_ns.push_back(events.starts_ns[level.positions[i + 1]] - events.starts_ns[level.positions[i]]);
  return is_short(std::move(each_ns));
}

// The loop that only repeats (`for _ in range(tasks)`) what marks a level, or goes through what the item of the loop
// around it holds, and the call of a function that holds it.
struct Repeating {
  int64_t holder;
  const SourceCode* code;
  uint32_t loop;
  const SourceCode* called;  // in that loop, and holds the mark
};
std::optional<Repeating> repeating(const Sequence& events, const Level& level) {
  if (!events.code_of) return {};
  Repeating found{events.rows[level.positions[level.positions.size() / 2]], nullptr, 0, nullptr};
  do {
    found.called = events.code_of(found.holder);
    found.holder = events.parents[size_t(found.holder)];
    found.code = found.holder < 0 ? nullptr : events.code_of(found.holder);
    found.loop = found.code && found.called ? found.code->loops.calls_of(found.called->name).loop : 0;
  } while (!found.loop && found.holder >= 0);
  if (!found.loop) return {};
  const SourceLoops::Inner inner = found.code->loops.inner(found.loop);
  if (inner == SourceLoops::Inner::none ||
      (inner == SourceLoops::Inner::unpacks && !has_short_iterations(events, level)))
    return {};
  return found;
}

}  // namespace

// Whether what marks the inner level is done in such a loop, and what marks the outer one beside it, in the same call
// of a function.
bool is_only_repeated(const Sequence& events, const Level& inner, const Level& outer) {
  const auto found = repeating(events, inner);
  if (!found) return false;
  const bool repeats = found->code->loops.inner(found->loop) == SourceLoops::Inner::repeats;
  if (repeats && double(inner.count) > double(most_repeated) * outer.count) return false;
  int64_t beside = events.rows[outer.positions[outer.positions.size() / 2]];
  while (beside >= 0 && events.parents[size_t(beside)] != found->holder) beside = events.parents[size_t(beside)];
  return beside >= 0 && events.code_of(beside) != found->called;
}

// An iteration around such a loop begins with what that calls first.
std::optional<Beginning> beginning_of_repeated(const Sequence& events, const Level& inner, const Level& outer) {
  const auto found = repeating(events, inner);
  if (!found) return {};
  for (const std::string& name : found->code->loops.in_each_iteration(found->loop)) {
    Rows rows;
    for (int64_t row = found->holder + 1; row < int64_t(events.parents.size()); ++row)
      if (const SourceCode* code = events.code_of(row);
          code && code->is_called(name) && events.parents[size_t(row)] == found->holder)
        rows.push_back(row);
    const auto times = uint32_t(std::lround(double(rows.size()) / outer.count));
    if (times < 2 || std::abs(double(rows.size()) - double(times) * outer.count) > times) continue;
    Beginning beginning;
    beginning.with = rows.front();
    beginning.marks.every = times, beginning.marks.since = uint32_t(rows.size()) % times;
    for (size_t i = 0; i < rows.size(); i += times) beginning.rows.push_back(rows[i]);
    const bool repeats = found->code->loops.inner(found->loop) == SourceLoops::Inner::repeats;
    beginning.source = "the loop in " + found->code->name + ", which " +
                       (repeats ? "repeats " + name : "goes through") + " " + std::to_string(times) +
                       (repeats ? " times" : " items");
    return beginning;
  }
  return {};
}

// Whether the call of a function that has no loop holds what marks both levels: then a library repeats them, and the
// outer one is told of each of its iterations (`minimize(cost, callback=watch)`), for which the inner one is asked for
// as often as need be.
bool is_called_back(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  Rows marks = rows_of(events, outer, marks_of_a_function);
  if (!outer.marker.is_node())  // what is asked for first after it was told
    for (size_t i = 0; i < marks.size(); ++i) marks[i] = events.rows[outer.positions[i] - 1];
  const Held asked = held(events, rows_of(events, inner, marks_of_a_function)), told = held(events, std::move(marks));
  if (asked.holders.size() != 1 || asked.holders != told.holders || asked.holders[0] < 0) return false;
  const SourceCode* holder = events.code_of(asked.holders[0]);
  if (!holder || holder->loops.any() || holder->loops.too_long() || holder->loops.awaits()) return false;
  const auto is_call = [](const SourceCode* code) {
    return code && !code->is_loop && code->name[0] != '<' && !code->loops.yields() && !code->loops.awaits();
  };
  const SourceCode *asks = code_of_all(events, asked.calls), *tells = code_of_all(events, told.calls);
  if (!is_call(asks) || !is_call(tells) || asks == tells) return false;
  // No function has a text where no source is known.
  return std::ranges::any_of(events.rows,
                             [&](int64_t row) { return events.code_of(row) && events.code_of(row)->loops.any(); });
}

// Whether the functions that hold what marks a level call something as often that their loop calls once in each
// iteration: then the level is one of iterations, whatever condition its mark depends on (`if rank == 0`).
bool is_called_as_often(const Sequence& events, const Level& level, const Rows& holders, const SourceCode& holder,
                        uint32_t loop) {
  for (const std::string& name : holder.loops.in_each_iteration(loop)) {
    if (holder.loops.calls_of(name).times != 1) continue;
    int64_t calls = 0;
    for (int64_t row = holders.front() + 1; row < int64_t(events.parents.size()); ++row) {
      if (!std::ranges::binary_search(holders, events.parents[size_t(row)])) continue;
      const SourceCode* code = events.code_of(row);
      calls += code && code->is_called(name) && code->loops.runs_of_call() == 1;
    }
    if (calls && std::abs(calls - int64_t(level.positions.size())) <= 1) return true;
  }
  return false;
}

// Whether the source shows that what marks the outer level is done in some iterations of a loop, and what marks the
// inner one in each, or by a library in the same function.
bool is_done_at_times(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const Held some = held(events, rows_of(events, outer, marks_of_a_function));
  const Held each = held(events, rows_of(events, inner, marks_of_a_function));
  const SourceCode *called = events.code_of(some.calls[0]), *holder = code_of_all(events, some.holders);
  const SourceCode* other = events.code_of(each.calls[0]);
  if (!called || !holder || !other || holder != code_of_all(events, each.holders)) return false;
  const SourceLoops::Calls at_times = holder->loops.calls_of(called->name);
  if (!at_times.loop || at_times.times) return false;
  if (is_called_as_often(events, outer, some.holders, *holder, at_times.loop)) return false;
  const SourceLoops::Calls always = holder->loops.calls_of(other->name);
  if (holder->loops.calls(other->name)) return always.loop == at_times.loop && always.times;
  return !other->is_loop && other->name[0] != '<';  // the items of an expression come at times, too
}

// Whether each call of the outer level resumes a coroutine that waits in a loop, of which each iteration makes the call
// of the inner one: several of them where nothing has to be waited for.
bool is_resumed_for_several(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const SourceCode* coroutine = code_of_all(events, rows_of(events, outer, marks_of_a_function));
  if (!coroutine || !coroutine->loops.awaits()) return false;
  const Rows made = rows_of(events, inner, marks_of_a_function);
  const SourceCode* called = code_of_all(events, made);
  const SourceLoops::Calls calls = called ? coroutine->loops.calls_of(called->name) : SourceLoops::Calls();
  return calls.loop && calls.times == 1 && code_of_all(events, around(events, made)) == coroutine;
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
  Rows rows = rows_of(events, chosen);
  const auto caller = [&](int64_t row) {
    return events.parents[size_t(row)] < 0 ? nullptr : events.code_of(events.parents[size_t(row)]);
  };
  // What another function calls in front of the loop is no iteration of it.
  if (rows.size() > 2 && caller(rows[0]) != caller(rows[1])) rows.erase(rows.begin());
  Held found = held(events, rows);
  if (found.holders.front() < 0) return {};
  const SourceCode* holder = code_of_all(events, found.holders);
  const SourceCode* marked = code_of_all(events, found.calls);
  // A generator may call in front of its loop, too, what each iteration calls once.
  if (holder && marked && holder->loops.yields() && found.holders.size() < found.calls.size()) {
    const SourceLoops::Calls calls = holder->loops.calls_of(marked->name);
    if (calls.times == 1 && found.calls.size() - found.holders.size() <= calls.before)
      marked = holder, found = held(events, std::move(found.holders));
  }
  if (found.holders.front() < 0) return {};
  if (marked && marked->is_loop) return with_iterations(events, found, *marked);
  if (marked && marked->loops.yields() && found.calls != rows) {
    Beginning beginning;
    beginning.rows = found.calls;
    beginning.with = found.calls.front();
    beginning.source = marked->name + " is resumed for each";
    return beginning;
  }
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
  const auto times_of_calls = [&](const SourceCode* code) {
    std::vector<int64_t> times;
    for (size_t i = 0; i < events.rows.size(); ++i) {
      const int64_t row = events.rows[i], parent = events.parents[size_t(row)];
      if (events.code_of(row) == code && std::ranges::binary_search(found.holders, parent))
        times.push_back(events.starts_ns[i]);
    }
    return times;
  };
  // What marks the level may be called by something that the source calls: then any loop of the function may hold it.
  const auto calls_of = [&](std::string_view name, const SourceCode* code) {
    SourceLoops::Calls calls = holder->loops.calls_of(name);
    for (uint32_t* each : {&calls.times, &calls.most, &calls.before}) *each *= code->loops.runs_of_call();
    return calls;
  };
  const SourceLoops::Calls marks = calls_of(marked->name, marked);
  const auto all = marks.times ? (double(called[marked].count) - marks.before) / marks.times
                               : double(found.calls.size()) / std::max(1u, marks.most);
  for (const uint32_t loop : marks.loop ? std::vector{marks.loop} : holder->loops.outermost())
    for (const std::string& name : holder->loops.in_each_iteration(loop)) {
      const auto of_name = [&](const auto& each) { return each.first && each.first->is_called(name); };
      const auto it = std::ranges::find_if(called, of_name);
      if (it == called.end() || std::ranges::count_if(called, of_name) > 1) continue;
      const SourceLoops::Calls calls = calls_of(name, it->first);
      if (!calls.times) continue;
      if (calls.before && (found.holders.size() > 1 || events.begins_before)) continue;
      const auto& [code, each] = *it;
      const double iterations = (double(each.count) - calls.before) / calls.times;
      if (marks.times ? std::abs(iterations - all) > 2 : iterations < all) continue;
      const auto inside = [&](int64_t row) { return row >= each.first && row <= each.last; };
      if (!marks.loop && double(std::ranges::count_if(found.calls, inside)) < nearly_all * double(found.calls.size()))
        continue;
      if (!marks.times && holder->loops.is_while(loop) && only_asks(times_of_calls(code), times_of(events, chosen)))
        continue;
      Beginning beginning;
      beginning.with = each.first;
      beginning.marks.every = calls.times;
      beginning.source = "the loop in " + holder->name + " calls " + code->name + " ";
      const uint32_t times = calls.times / code->loops.runs_of_call();
      beginning.source += times == 1 ? std::string("once") : std::to_string(times).append(" times");
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
