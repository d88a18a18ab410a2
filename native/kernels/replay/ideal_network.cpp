#include "kernels/replay/ideal_network.h"

#include <algorithm>

namespace strobe {

std::vector<int64_t> on_ideal_network(const Moments& moments, size_t ranks, size_t meetings) {
  std::vector<int64_t> now(ranks), computed(ranks), met(meetings, INT64_MIN), out(moments.rank.size());
  for (size_t i = 0; i < out.size(); i++) {
    const auto rank = size_t(moments.rank[i]);
    now[rank] += moments.computed_ns[i] - computed[rank];
    computed[rank] = moments.computed_ns[i];
    if (moments.meeting[i] >= 0) {
      int64_t& meeting = met[size_t(moments.meeting[i])];
      if (moments.needs[i])
        now[rank] = std::max(now[rank], meeting);
      else
        meeting = std::max(meeting, now[rank]);
    }
    out[i] = now[rank];
  }
  return out;
}

}  // namespace strobe
