// errors.h - what C++ throws, as what Python raises; the work runs without the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <system_error>

namespace strobe {

// std::system_error becomes OSError with the path that its text begins with, std::runtime_error ValueError.
template <class Work>
void translated(Work&& work) {
  namespace nb = nanobind;
  try {
    nb::gil_scoped_release release;
    work();
  } catch (const std::system_error& e) {
    nb::gil_scoped_acquire held;
    std::string message = e.code().message(), path = e.what();
    if (size_t at = path.rfind(": " + message); at != path.npos) path.resize(at);
    PyErr_SetObject(PyExc_OSError, nb::make_tuple(e.code().value(), message, path).ptr());
    throw nb::python_error();
  } catch (const std::runtime_error& e) {
    nb::gil_scoped_acquire held;
    PyErr_SetString(PyExc_ValueError, e.what());
    throw nb::python_error();
  }
}

}  // namespace strobe
