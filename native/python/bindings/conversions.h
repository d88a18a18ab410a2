// conversions.h - what the bindings share: arrays of numpy, bytes, and work without the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace strobe {

template <class T>
using Input = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// For functions that need nothing of the interpreter.
using Unlocked = nanobind::call_guard<nanobind::gil_scoped_release>;

// For a part of a function.
template <class Work>
auto unlocked(Work&& work) {
  nanobind::gil_scoped_release release;
  return work();
}

// The array takes the vector over: no copy. Without a shape it has one dimension.
template <class T>
nanobind::object owned(std::vector<T> values, std::vector<size_t> shape = {}) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (shape.empty()) shape.push_back(kept->size());
  return nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape.size(), shape.data(), owner).cast();
}

// One member of every element of a vector, or what a function makes of it.
template <class T, class Member>
nanobind::object column(const std::vector<T>& rows, Member member) {
  std::vector<std::decay_t<std::invoke_result_t<Member, const T&>>> values;
  values.reserve(rows.size());
  for (const T& row : rows) values.push_back(std::invoke(member, row));
  return owned(std::move(values));
}

template <class T>
std::span<const T> view(const Input<T>& array) {
  return {array.data(), array.shape(0)};
}
inline std::string_view view(const nanobind::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline nanobind::bytes bytes_of(std::string_view text) { return nanobind::bytes(text.data(), text.size()); }

}  // namespace strobe
