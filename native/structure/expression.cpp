#include "structure/expression.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace strobe::structure {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr uint32_t max_body = 30000;      // terms
constexpr uint32_t positions_tried = 12;  // earlier occurrences of a term that may have ended the iteration before
constexpr uint64_t base = 0x9E3779B97F4A7C15ull;

uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x7FB5D329728EA185ull;
  return x ^ x >> 29;
}

// A queue of terms, of which only the tail changes. A term is a number: an event or a loop; loops with the same body
// are the same term, whatever their trip counts. So equality of terms is equality of numbers, and equality of stretches
// is checked by prefix hashes first.
class Folder {
 public:
  void push(uint32_t event) {
    const uint32_t term = event_term(event);
    // A loop at the tail may go on as long as what comes looks like its next iteration: an iteration of an outer loop
    // that ends with it is not complete yet.
    while (ends_with_loop() && first_event(queue_.back().term) != term && fold_tail()) {
    }
    append(term, position_++, none);
    fold_tail();
  }

  Expression finish() {
    close_loops();
    return written_out();
  }

 private:
  struct Term {
    uint32_t event = 0;              // of a loop: of its first iteration
    uint32_t begin = 0, length = 0;  // body in bodies_; length 0: an event
  };
  struct Entry {
    uint32_t term;
    uint32_t start;        // position of its first event
    uint32_t execution;    // of a loop
    uint32_t earlier;      // entry with the same term before it
    uint32_t next_due;     // of a loop: see due_
    uint64_t hash_before;  // of all terms before this one
  };
  struct Execution {
    uint32_t loop, start, trips;
  };

  bool is_loop(uint32_t term) const { return terms_[term].length != 0; }
  // As the number of a term.
  uint32_t first_event(uint32_t term) const { return terms_[term].event; }

  uint32_t event_term(uint32_t event) {
    const auto [at, is_new] = events_.try_emplace(event, uint32_t(terms_.size()));
    if (is_new) new_term({uint32_t(terms_.size()), 0, 0}, event);
    return at->second;
  }
  void new_term(Term term, uint32_t event) {
    terms_.push_back(term);
    event_of_.push_back(event);
    newest_.push_back(none);
  }

  void append(uint32_t term, uint32_t start, uint32_t execution) {
    const auto at = uint32_t(queue_.size());
    const uint64_t before = at ? hash_after(at - 1) : 0;
    queue_.push_back({term, start, execution, newest_[term], none, before});
    newest_[term] = at;
    if (powers_.size() <= at + 1) powers_.push_back(powers_.back() * base);
    if (is_loop(term)) {
      const size_t due = at + terms_[term].length;
      if (due_.size() <= due) due_.resize(due + 1, none);
      queue_.back().next_due = due_[due];
      due_[due] = at;
    }
  }
  void pop() {
    const Entry& last = queue_.back();
    newest_[last.term] = last.earlier;
    if (is_loop(last.term)) due_[queue_.size() - 1 + terms_[last.term].length] = last.next_due;
    queue_.pop_back();
  }
  void pop_to(size_t size) {
    while (queue_.size() > size) pop();
  }

  uint64_t hash_after(size_t at) const { return queue_[at].hash_before * base + mixed(queue_[at].term + 1); }
  // Of the terms [begin, end) alone.
  uint64_t hash(size_t begin, size_t end) const {
    return hash_after(end - 1) - queue_[begin].hash_before * powers_[end - begin];
  }
  bool equal(size_t a, size_t b, size_t length) const {
    if (hash(a, a + length) != hash(b, b + length)) return false;
    for (size_t i = 0; i < length; ++i)
      if (queue_[a + i].term != queue_[b + i].term) return false;
    return true;
  }
  bool is_body(const Term& loop, size_t begin) const {
    for (size_t i = 0; i < loop.length; ++i)
      if (queue_[begin + i].term != bodies_[loop.begin + i]) return false;
    return true;
  }

  bool ends_with_loop() const { return !queue_.empty() && is_loop(queue_.back().term); }
  // Loops at the tail that cannot go on may complete an iteration of an outer one.
  void close_loops() {
    while (ends_with_loop() && fold_tail()) {
    }
  }
  // Folds what the last term completes. The tail is a loop then.
  bool fold_tail() { return continue_loop() || begin_loop(); }

  // The tail is one more iteration of the loop right before it.
  bool continue_loop() {
    const size_t last = queue_.size() - 1;
    if (last >= due_.size()) return false;
    for (uint32_t at = due_[last]; at != none; at = queue_[at].next_due) {
      if (!is_body(terms_[queue_[at].term], at + 1)) continue;
      pop_to(at + 1);
      ++executions_[queue_[at].execution].trips;
      return true;
    }
    return false;
  }

  // The tail equals what lies right before it: the first two iterations of a loop.
  bool begin_loop() {
    const size_t size = queue_.size(), last = size - 1;
    uint32_t at = queue_[last].earlier;
    for (uint32_t tried = 0; at != none && tried < positions_tried; at = queue_[at].earlier, ++tried) {
      const size_t length = last - at;
      if (length > max_body || 2 * length > size) return false;
      if (!equal(size - 2 * length, size - length, length)) continue;
      const uint32_t loop = loop_of(size - length, length), start = queue_[size - 2 * length].start;
      pop_to(size - 2 * length);
      close_loops();
      executions_.push_back({loop, start, 2});
      append(loop, start, uint32_t(executions_.size() - 1));
      return true;
    }
    return false;
  }

  uint32_t loop_of(size_t begin, size_t length) {
    for (uint64_t key = mixed(hash(begin, begin + length) + length);; ++key) {
      const auto [at, is_new] = loops_.try_emplace(key, uint32_t(terms_.size()));
      if (!is_new) {
        const Term& known = terms_[at->second];
        if (known.length == length && is_body(known, begin)) return at->second;
        continue;
      }
      const Term term{first_event(queue_[begin].term), uint32_t(bodies_.size()), uint32_t(length)};
      for (size_t i = 0; i < length; ++i) bodies_.push_back(queue_[begin + i].term);
      new_term(term, 0);
      return at->second;
    }
  }

  // --- the result: terms written out, so that each place has the trip counts of its own executions ---

  struct Place {
    uint32_t loop;
    uint32_t element;
    std::vector<Place> inner;
    std::vector<TripRun> runs;
  };

  void write_out(uint32_t term, Expression& expression, std::vector<Place>& places) const {
    const Term& from = terms_[term];
    const size_t element = expression.elements.size();
    expression.elements.push_back({event_of_[term], 0, 0, 0});
    if (from.length == 0) return;
    places.push_back({term, uint32_t(element), {}, {}});
    std::vector<Place> inner;
    for (uint32_t i = 0; i < from.length; ++i) write_out(bodies_[from.begin + i], expression, inner);
    places.back().inner = std::move(inner);
    expression.elements[element].size = uint32_t(expression.elements.size() - element - 1);
  }

  // Executions of one loop come in order of time, wherever they stand.
  void execute(std::vector<Place>& places, std::vector<uint32_t>& next) const {
    for (Place& place : places) {
      const uint32_t trips = executions_[next[place.loop]++].trips;
      if (place.runs.empty() || place.runs.back().trips != trips) place.runs.push_back({trips, 0});
      ++place.runs.back().times;
      if (!place.inner.empty())
        for (uint32_t trip = 0; trip < trips; ++trip) execute(place.inner, next);
    }
  }
  static void collect_runs(const std::vector<Place>& places, Expression& expression) {
    for (const Place& place : places) {
      Element& element = expression.elements[place.element];
      element.runs_begin = uint32_t(expression.runs.size());
      expression.runs.insert(expression.runs.end(), place.runs.begin(), place.runs.end());
      element.runs_end = uint32_t(expression.runs.size());
      collect_runs(place.inner, expression);
    }
  }

  Expression written_out() {
    Expression expression;
    std::vector<Place> places;
    for (const Entry& entry : queue_) write_out(entry.term, expression, places);
    std::ranges::sort(executions_, [](const Execution& a, const Execution& b) {
      return a.loop != b.loop ? a.loop < b.loop : a.start < b.start;
    });
    std::vector<uint32_t> next(terms_.size(), none);
    for (size_t i = executions_.size(); i-- > 0;) next[executions_[i].loop] = uint32_t(i);
    execute(places, next);
    collect_runs(places, expression);
    return expression;
  }

  std::vector<Term> terms_;
  std::vector<uint32_t> event_of_;  // per term, of events
  std::vector<uint32_t> newest_;    // per term: its last entry in the queue
  std::vector<uint32_t> bodies_;
  std::unordered_map<uint32_t, uint32_t> events_;  // term of an event
  std::unordered_map<uint64_t, uint32_t> loops_;   // term of a loop, by hash of its body
  std::vector<Entry> queue_;
  std::vector<uint32_t> due_;  // per position: the last loop whose next iteration would end there
  std::vector<uint64_t> powers_{1};
  std::vector<Execution> executions_;
  uint32_t position_ = 0;
};

}  // namespace

Expression fold(std::span<const uint32_t> events) {
  Folder folder;
  for (const uint32_t event : events) folder.push(event);
  return folder.finish();
}

std::vector<uint32_t> expand(const Expression& expression, size_t most) {
  struct Frame {
    size_t begin, end, at;
    uint32_t left;  // iterations, this one included
  };
  struct Cursor {
    uint32_t run = 0, times = 0;
  };
  const auto& elements = expression.elements;
  std::vector<Cursor> cursors(elements.size());
  std::vector<uint32_t> events;
  std::vector<Frame> stack{{0, elements.size(), 0, 1}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.at == frame.end) {
      frame.at = frame.begin;
      if (--frame.left == 0) stack.pop_back();
      continue;
    }
    const size_t index = frame.at++;
    const Element& element = elements[index];
    if (!element.is_loop()) {
      if (events.size() == most) throw std::invalid_argument("the expression is too long");
      events.push_back(element.event);
      continue;
    }
    Cursor& cursor = cursors[index];
    if (element.size > frame.end - frame.at || element.runs_end > expression.runs.size() ||
        element.runs_begin + cursor.run >= element.runs_end)
      throw std::invalid_argument("the expression is not sound");
    const TripRun& run = expression.runs[element.runs_begin + cursor.run];
    if (run.trips == 0) throw std::invalid_argument("the expression is not sound");
    if (++cursor.times >= run.times) cursor = {cursor.run + 1, 0};
    frame.at += element.size;
    stack.push_back({index + 1, index + 1 + element.size, index + 1, run.trips});
  }
  return events;
}

}  // namespace strobe::structure
