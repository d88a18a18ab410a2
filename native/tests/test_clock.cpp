// Ticks become nanoseconds: the same ones whenever they are converted, in order, and those of the clock at each pair.
#include "core/system/clock.h"

#include "tests/check.h"

using namespace strobe;

namespace {

// A clock whose rate changes from pair to pair.
ClockPair pair(uint64_t n) { return {1000 * n, int64_t(700 * n + (n % 3) * 20)}; }

void what_was_converted_stays() {
  ClockCurve curve;
  curve.begin(pair(0));
  std::vector<int64_t> found;
  for (uint64_t n = 1; n <= 100; n++) {
    curve.add(pair(n));
    for (uint64_t t = 1000 * (n - 1); t < 1000 * n; t += 250) found.push_back(curve.at(t));
  }
  for (size_t i = 0; i < found.size(); i++) {
    CHECK(curve.at(250 * i) == found[i]);
    CHECK(i == 0 || found[i] >= found[i - 1]);
    CHECK(i % 4 || found[i] == pair(i / 4).ns);
  }
}

void old_pairs_are_forgotten() {
  ClockCurve curve;
  curve.begin(pair(0));
  for (uint64_t n = 1; n <= 20'000; n++) curve.add(pair(n));
  CHECK(curve.at(19'000'000) == pair(19'000).ns);
  CHECK(curve.at(0) <= curve.at(1'000'000) && std::abs(curve.at(0)) < 1'000'000);
  CHECK(curve.ends_with(pair(20'000)));
}

void a_clock_that_stands_still_changes_nothing() {
  ClockCurve curve;
  curve.begin({1000, 500});
  curve.add({2000, 1500});
  curve.add({2000, 1600}), curve.add({3000, 1500});
  CHECK(curve.at(2000) == 1500 && curve.at(1500) == 1000 && curve.at(2500) == 2000);
}

}  // namespace

int main() {
  what_was_converted_stays();
  old_pairs_are_forgotten();
  a_clock_that_stands_still_changes_nothing();
}
