// greenlets.cpp - programs that go on with another stack on the same thread (greenlet, gevent): what is open on the
// stack that is left ends there and goes on when the program comes back to it. greenlet reports every switch to its
// trace function, of which a thread has one: ours hands on to the program's own.
#include "python/recording/greenlets.h"

#include <unordered_map>
#include <utility>

#include "include/strobe.h"
extern "C" {
#include "python/calls/code_regions.h"
#include "python/lines/lines.h"
}

namespace {

struct Stack {
  uint32_t number = 0;  // 0: the one that a thread begins with
  CallState calls{};
  LineStack* lines = nullptr;  // while it does not run
};
std::unordered_map<PyObject*, Stack> stacks;  // guarded by the GIL, as all here
uint32_t last_number = 0;
thread_local PyObject* guest = nullptr;  // the program's own trace function

bool is_true(PyObject* object, const char* attribute, bool compare_none) {
  PyObject* value = PyObject_GetAttrString(object, attribute);
  if (!value) PyErr_Clear();
  const bool found = value && (compare_none ? value == Py_None : PyObject_IsTrue(value) == 1);
  Py_XDECREF(value);
  return found;
}

Stack& stack_of(PyObject* greenlet) {
  const auto [at, fresh] = stacks.try_emplace(greenlet);
  if (fresh && !is_true(greenlet, "parent", true)) at->second.number = ++last_number;
  return at->second;
}

void follow(PyObject* from, PyObject* to) {
  Stack& next = stack_of(to);
  Stack& left = stack_of(from);
  left.calls = python_calls_switch(next.calls);
  lines_stack_free(left.lines);  // of a time when nobody followed
  left.lines = lines_switch(std::exchange(next.lines, nullptr));
  strobe_switch_stack(next.number);
  if (is_true(from, "dead", false)) {
    lines_stack_free(left.lines);
    stacks.erase(from);
  }
}

PyObject* switched(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n == 2 && PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) == 2) {
    PyObject *from = PyTuple_GET_ITEM(args[1], 0), *to = PyTuple_GET_ITEM(args[1], 1);
    if (from != to) follow(from, to);  // a greenlet may switch to itself
  }
  if (!guest || n != 2) Py_RETURN_NONE;
  PyObject* function = Py_NewRef(guest);
  PyObject* result = PyObject_Vectorcall(function, args, 2, nullptr);
  Py_DECREF(function);
  return result;
}

// greenlet.settrace and gettrace as the program sees them: it is alone.
PyObject* set_guest(PyObject*, PyObject* function) {
  PyObject* before = guest;
  guest = function == Py_None ? nullptr : Py_NewRef(function);
  return before ? before : Py_NewRef(Py_None);
}
PyObject* get_guest(PyObject*, PyObject*) { return Py_NewRef(guest ? guest : Py_None); }

PyMethodDef methods[] = {
    {"greenlet_switched", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(switched)), METH_FASTCALL,
     "a trace function for greenlet"},
    {"settrace", set_guest, METH_O, "Sets a new tracing function and returns the previous one."},
    {"gettrace", get_guest, METH_NOARGS, "Returns the currently set tracing function, or None."},
};

}  // namespace

PyObject* greenlet_function(int index) { return PyCFunction_New(&methods[index], nullptr); }
