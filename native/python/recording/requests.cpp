// requests.cpp - requests of a service that have been answered, as its adapter in Python reports them.
#include "python/recording/requests.h"

#include <vector>

#include "adapters/requests.h"
#include "include/strobe.h"

namespace {

constexpr Py_ssize_t kNumbers = 11, kNumbersOfPart = 6;

bool numbers_of(PyObject* const* from, Py_ssize_t count, int64_t* to) {
  for (Py_ssize_t i = 0; i < count; i++)
    if ((to[i] = PyLong_AsLongLong(from[i])) == -1 && PyErr_Occurred()) return false;
  return true;
}

// A span of the whole request, with its parts inside, and a row for each of them.
PyObject* request(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != kNumbers + 1 || !PyTuple_Check(args[kNumbers])) {
    PyErr_SetString(PyExc_TypeError, "a request has eleven numbers and a tuple of parts");
    return nullptr;
  }
  int64_t v[kNumbers];
  if (!numbers_of(args, kNumbers, v)) return nullptr;
  const int64_t number = v[4];
  std::vector<strobe_stream_span> spans{
      {uint32_t(v[0]),
       STROBE_ROW_REQUEST,
       v[1],
       v[2],
       v[1],
       {STROBE_TWO(v[3], number), STROBE_TWO(v[5], v[6]), v[2] - v[1], v[7], v[8], v[9]}}};
  std::vector<strobe_stream_span> rows;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[kNumbers]); i++) {
    PyObject* part = PyTuple_GET_ITEM(args[kNumbers], i);
    if (!PyTuple_Check(part) || PyTuple_GET_SIZE(part) != kNumbersOfPart) {
      PyErr_SetString(PyExc_TypeError, "a part of a request has six numbers");
      return nullptr;
    }
    int64_t p[kNumbersOfPart];
    if (!numbers_of(reinterpret_cast<PyTupleObject*>(part)->ob_item, kNumbersOfPart, p)) return nullptr;
    spans.push_back({uint32_t(p[0]), 0, p[1], p[2], v[1], {}});
    rows.push_back({0,
                    STROBE_ROW_REQUEST_PART,
                    p[1],
                    p[2],
                    v[1],
                    {STROBE_THREE(p[3], p[4], p[5]), STROBE_TWO(number, v[10]), p[2] - p[1]}});
  }
  strobe_request(spans.data(), spans.size(), rows.data());
  Py_RETURN_NONE;
}

PyMethodDef request_def = {
    "request", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(request)), METH_FASTCALL,
    "request(region, start_ns, end_ns, route, number, status, server, start_delay_ns, running_ns, collecting_ns, "
    "thread_id, parts) -> None: a request that is over; each part: (region, start_ns, end_ns, kind, code, cause)"};

}  // namespace

PyObject* request_function() { return PyCFunction_New(&request_def, nullptr); }
