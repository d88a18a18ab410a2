// Loop levels of random programs keep what defines them: markers alternate strictly, levels nest, figures are in range.
#include "structure/levels.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/check.h"

using namespace strobe::structure;

namespace {

// Nested loops with random bodies and trip counts, between random events.
std::vector<uint32_t> random_program(std::mt19937& random) {
  const auto events = [&](size_t most) {
    std::vector<uint32_t> ids(random() % (most + 1));
    for (uint32_t& id : ids) id = random() % 17 == 0 ? random() : random() % 24;
    return ids;
  };
  std::vector<uint32_t> ids = events(50);
  const std::vector<uint32_t> outer = events(8), inner = events(5);
  for (size_t trips = random() % 60; trips > 0; --trips) {
    ids.insert(ids.end(), outer.begin(), outer.end());
    for (size_t k = random() % 6; k > 0; --k) ids.insert(ids.end(), inner.begin(), inner.end());
  }
  return ids;
}

void check_level(const Level& level, const std::vector<uint32_t>& ids, size_t levels) {
  CHECK(level.count == level.positions.size() && level.count >= 3);
  CHECK(std::ranges::is_sorted(level.positions) && level.positions.back() < ids.size());
  for (uint32_t at : level.positions) {
    CHECK(ids[at] == level.marker.target);
    if (!level.marker.is_node()) CHECK(at > 0 && ids[at - 1] == level.marker.source);
  }
  CHECK(level.spine >= 1 && level.coverage >= 0 && level.coverage <= 1 && level.cvn >= 0);
  CHECK(level.parent >= -1 && level.parent < static_cast<int32_t>(levels));
  CHECK(level.trips_min <= level.trips_median && level.trips_median <= level.trips_max);
}

}  // namespace

int main() {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; round++) {
    const std::vector<uint32_t> ids = random_program(random);
    std::vector<int64_t> times(ids.size());
    for (size_t i = 1; i < times.size(); i++) times[i] = times[i - 1] + random() % 1000;
    const std::vector<Level> levels = find_levels(ids, times, {});
    for (const Level& level : levels) {
      check_level(level, ids, levels.size());
      if (level.parent >= 0) CHECK(levels[static_cast<size_t>(level.parent)].count < level.count);
    }
    CHECK(std::ranges::is_sorted(levels, std::greater<>(), &Level::score));
  }
  // Everything once per round, in any order: more classes of one count than are open at a time.
  for (const size_t rounds : {2, 3, 12, 30}) {
    std::vector<uint32_t> ids, round(3000);
    std::iota(round.begin(), round.end(), 0);
    for (size_t k = 0; k < rounds; k++) {
      std::ranges::shuffle(round, random);
      ids.insert(ids.end(), round.begin(), round.end());
    }
    std::vector<int64_t> times(ids.size());
    std::iota(times.begin(), times.end(), 0);
    const std::vector<Level> levels = find_levels(ids, times, {});
    CHECK(levels.empty() == (rounds < 3));
    for (const Level& level : levels) check_level(level, ids, levels.size());
  }
  // Every member of an unrolled loop occurs once per iteration: 5 nodes and the 5 transitions between them.
  std::vector<uint32_t> ids;
  std::vector<int64_t> times;
  for (uint32_t i = 0; i < 500; i++) ids.push_back(i % 5), times.push_back(i);
  const Level best = find_levels(ids, times, {})[0];
  CHECK(best.count == 100 && best.cvn == 0 && best.marker.is_node() && best.marker.target == 0);
  CHECK(best.spine == 9.5);  // the transition back occurs one time less: it is a soft member
}
