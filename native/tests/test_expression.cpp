// SEQ/LOOP expressions: what is folded comes back, known loops get the expression that a person would write.
#include "structure/expression.h"

#include <random>
#include <stdexcept>

#include "tests/check.h"

using namespace strobe::structure;

namespace {

using Events = std::vector<uint32_t>;

void append_random(Events& events, std::mt19937& random, int depth, uint32_t alphabet) {
  for (uint32_t parts = 1 + random() % 4; parts > 0; --parts) {
    const size_t before = events.size();
    if (depth == 0 || random() % 2) {
      events.push_back(random() % alphabet);
      continue;
    }
    append_random(events, random, depth - 1, alphabet);
    const Events body(events.begin() + static_cast<ptrdiff_t>(before), events.end());
    for (uint32_t trips = random() % 6; trips > 0 && events.size() < 3000; --trips)
      events.insert(events.end(), body.begin(), body.end());
  }
}

std::string text(const Expression& expression, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end;) {
    const Element& element = expression.elements[i++];
    if (!element.is_loop()) {
      out += static_cast<char>('A' + element.event);
      continue;
    }
    for (uint32_t r = element.runs_begin; r < element.runs_end; ++r)
      out += (r > element.runs_begin ? "," : "") + std::to_string(expression.runs[r].trips) + "*" +
             std::to_string(expression.runs[r].times);
    out += "[" + text(expression, i, i + element.size) + "]";
    i += element.size;
  }
  return out;
}
std::string text(const Events& events) {
  const Expression expression = fold(events);
  CHECK(expand(expression) == events);
  return text(expression, 0, expression.elements.size());
}

void known_loops() {
  Events events{0};
  for (int i = 0; i < 100; ++i) {
    events.push_back(1);
    for (int j = 0; j < 20; ++j) events.insert(events.end(), {2, 1});
    events.push_back(3);
  }
  CHECK(text(events) == "A100*1[20*100[BC]BD]");

  events.clear();
  for (const uint32_t trips : {3, 5, 5, 2}) {  // varying trip counts; an iteration that is nothing but loops
    for (uint32_t i = 0; i < trips; ++i) events.insert(events.end(), {0, 1});
    for (uint32_t i = 0; i < trips; ++i) events.insert(events.end(), {0, 2});
  }
  CHECK(text(events) == "4*1[3*1,5*2,2*1[AB]3*1,5*2,2*1[AC]]");

  CHECK(text(Events{}).empty() && text(Events{4}) == "E");
  CHECK(text(Events(1000000, 0)) == "1000000*1[A]");
}

void unsound() {
  const auto refused = [](const Expression& expression, size_t most = 1000) {
    try {
      expand(expression, most);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused({{{0, 1, 0, 1}, {7}}, {{1000, 1}}}) && refused({{{0, 1, 0, 1}, {7}}, {{1001, 1}}}));  // too long
  CHECK(refused({{{0, 2, 0, 1}, {7}}, {{2, 1}}}));                                                     // no such body
  CHECK(refused({{{0, 1, 0, 1}, {7}}, {}}) && refused({{{0, 1, 0, 1}, {7}}, {{0, 1}}}));
  CHECK(refused({{{0, 2, 0, 1}, {0, 1, 1, 2}, {7}}, {{2, 1}, {3, 1}}}));  // the second execution has no trip count
}

}  // namespace

int main() {
  std::mt19937 random(1);
  for (int round = 0; round < 10000; ++round) {
    Events events;
    append_random(events, random, static_cast<int>(random() % 4), 1 + random() % 5);
    const Expression expression = fold(events);
    CHECK(expand(expression) == events && expression.elements.size() <= events.size());
  }
  known_loops();
  unsound();
}
