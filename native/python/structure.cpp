// structure.cpp - the kernels of the structure layer as functions over numpy arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "structure/levels.h"

namespace nb = nanobind;

namespace {

template <typename T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> view(const Input<T>& array) {
  return {array.data(), array.shape(0)};
}

// The array takes the vector over: no copy.
nb::object owned(std::vector<uint32_t> values) {
  auto* kept = new std::vector<uint32_t>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<uint32_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::object source_of(const strobe::structure::Item& marker) {
  return marker.is_node() ? nb::none() : nb::object(nb::int_(marker.source));
}

// One tuple per level, in the order of the fields of strobe.structure.levels.Level.
nb::list find_levels(Input<uint32_t> ids, Input<int64_t> times, uint32_t min_count, uint32_t max_levels) {
  if (ids.shape(0) != times.shape(0)) throw std::invalid_argument("ids and times differ in length");
  std::vector<strobe::structure::Level> levels;
  {
    nb::gil_scoped_release unlocked;
    levels = strobe::structure::find_levels(view(ids), view(times), {min_count, max_levels});
  }
  nb::list result;
  for (auto& level : levels)
    result.append(nb::make_tuple(owned(std::move(level.positions)), level.count, level.spine, level.coverage, level.cvn,
                                 level.score, level.parent, level.trips_min, level.trips_median, level.trips_max,
                                 source_of(level.marker), level.marker.target));
  return result;
}

}  // namespace

void register_structure(nb::module_& m) {
  m.def("find_levels", &find_levels, nb::arg("ids"), nb::arg("times"), nb::arg("min_count"), nb::arg("max_levels"),
        "Loop levels of an event sequence, best score first; see strobe.structure.levels");
}
