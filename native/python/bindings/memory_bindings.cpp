// memory_bindings.cpp - the free pieces of a caching allocator's memory.
#include <nanobind/nanobind.h>

#include <stdexcept>

#include "kernels/memory/free_blocks.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

nb::object largest_free(Input<uint8_t> action, Input<int64_t> address, Input<int64_t> size_bytes, bool expandable) {
  if (address.shape(0) != action.shape(0) || size_bytes.shape(0) != action.shape(0))
    throw std::invalid_argument("columns differ in length");
  return owned(
      unlocked([&] { return largest_free_blocks({view(action), view(address), view(size_bytes)}, expandable); }));
}

}  // namespace

void register_memory(nb::module_& m) {
  m.def("largest_free_blocks", &largest_free, nb::arg("action"), nb::arg("address"), nb::arg("size_bytes"),
        nb::arg("expandable"),
        "Bytes of the largest free piece of an allocator's memory after each event, -1 where unknown: "
        "native/kernels/memory/free_blocks.h.");
}
