// clock_map.h - from the clock of a process to that of the trace: straight lines between points, and beyond the first
// and the last of them. It never turns back, so what is in order stays so.
#pragma once
#include <math.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

namespace strobe {

class ClockMap {
 public:
  struct Point {
    int64_t local_ns, trace_ns;
  };
  ClockMap() = default;
  // In order, no two of them at one moment of either clock; one alone shifts.
  explicit ClockMap(std::vector<Point> points) : points_(std::move(points)) {}

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }

  int64_t at(int64_t local_ns) const {
    if (points_.empty()) return local_ns;
    auto after = std::upper_bound(points_.begin(), points_.end(), local_ns,
                                  [](int64_t ns, const Point& each) { return ns < each.local_ns; });
    if (points_.size() == 1) return fitting(__int128(local_ns) - points_[0].local_ns + points_[0].trace_ns);
    const size_t last = std::clamp<size_t>(size_t(after - points_.begin()), 1, points_.size() - 1);
    const Point &a = points_[last - 1], &b = points_[last];
    const __int128 since = __int128(local_ns) - a.local_ns, wide = __int128(b.local_ns) - a.local_ns;
    const __int128 gained = (__int128(b.trace_ns) - a.trace_ns) - wide;
    const double more = floor(double(since) * double(gained) / double(wide));
    return fitting(a.trace_ns + since + __int128(std::clamp(more, -kMost, kMost)));
  }

 private:
  static constexpr double kMost = double(int64_t(1) << 61);
  static int64_t fitting(__int128 ns) {  // a damaged file may hold any number
    return int64_t(std::clamp<__int128>(ns, -(int64_t(1) << 62), int64_t(1) << 62));
  }
  std::vector<Point> points_;
};

}  // namespace strobe
