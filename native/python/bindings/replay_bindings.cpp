// replay_bindings.cpp - the replay of synchronisations on an ideal network.
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <utility>

#include "kernels/replay/ideal_network.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

nb::object replayed(Input<int64_t> rank, Input<int64_t> computed_ns, Input<int64_t> meeting, Input<uint8_t> needs,
                    size_t ranks, size_t meetings) {
  const size_t count = rank.shape(0);
  if (computed_ns.shape(0) != count || meeting.shape(0) != count || needs.shape(0) != count)
    throw std::invalid_argument("columns differ in length");
  for (size_t i = 0; i < count; i++)
    if (rank.data()[i] < 0 || size_t(rank.data()[i]) >= ranks ||
        (meeting.data()[i] >= 0 && size_t(meeting.data()[i]) >= meetings))
      throw std::invalid_argument("a rank or a meeting that is not there");
  return owned(unlocked(
      [&] { return on_ideal_network({view(rank), view(computed_ns), view(meeting), view(needs)}, ranks, meetings); }));
}

}  // namespace

void register_replay(nb::module_& m) {
  m.def("on_ideal_network", &replayed, nb::arg("rank"), nb::arg("computed_ns"), nb::arg("meeting"), nb::arg("needs"),
        nb::arg("ranks"), nb::arg("meetings"),
        "When moments of ranks come on a network that transfers everything at once, ns: "
        "native/kernels/replay/ideal_network.h.");
}
