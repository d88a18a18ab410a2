// What a suspended task is in: the functions from its own to the one that waits, without making a frame of each.
#include <Python.h>

#include <array>
#include <climits>

#include "python/requests/request.h"

namespace strobe::requests {
namespace {

constexpr int kMostAwaits = 200;

struct Names {
  PyObject *code, *awaited, *frame;
};
Names interned(const char* code, const char* awaited, const char* frame) {
  return {PyUnicode_InternFromString(code), PyUnicode_InternFromString(awaited), PyUnicode_InternFromString(frame)};
}

// The attributes that a coroutine, or what stands for one, has; nullptr: none of them.
const Names* names_of(PyObject* object) {
  static const std::array<Names, 3> all = {interned("cr_code", "cr_await", "cr_frame"),
                                           interned("gi_code", "gi_yieldfrom", "gi_frame"),
                                           interned("ag_code", "ag_await", "ag_frame")};
  if (PyCoro_CheckExact(object)) return &all[0];
  if (PyGen_CheckExact(object)) return &all[1];
  if (PyAsyncGen_CheckExact(object)) return &all[2];
  for (const Names& names : all)  // those of Cython, too
    if (PyObject_HasAttr(object, names.code)) return &names;
  return nullptr;
}

// The line that a coroutine is in; 0: it has no frame.
long line_of(PyObject* object, const Names& names) {
  PyObject* frame = PyObject_GetAttr(object, names.frame);
  if (!frame) PyErr_Clear();
  const long line = frame && PyFrame_Check(frame) ? PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame)) : 0;
  Py_XDECREF(frame);
  return line;
}

// (coroutine, known, look, generator) -> (number, code or None, line): the least of the numbers of all functions that
// it is in, and the innermost one that is the program's; of others, the outermost. known: id of code -> (number,
// whether it is the program's, code), `look` makes what is missing. generator(step): whose step it is, or None.
PyObject* awaited_by(PyObject*, PyObject* args) {
  PyObject *coroutine, *known, *look, *generator, *shown = nullptr;
  const Names* names_of_shown = nullptr;
  if (!PyArg_ParseTuple(args, "OO!OO", &coroutine, &PyDict_Type, &known, &look, &generator)) return nullptr;
  long least = LONG_MAX;
  Py_INCREF(coroutine);
  for (int depth = 0; coroutine != Py_None && depth < kMostAwaits; depth++) {
    const Names* names = names_of(coroutine);
    if (!names) {
      PyObject* stepped = PyObject_CallOneArg(generator, coroutine);
      Py_SETREF(coroutine, stepped ? stepped : Py_NewRef(Py_None));
      if (!stepped) break;
      continue;
    }
    PyObject* code = PyObject_GetAttr(coroutine, names->code);
    PyObject* key = code ? PyLong_FromVoidPtr(code) : nullptr;
    PyObject* facts = key ? Py_XNewRef(PyDict_GetItemWithError(known, key)) : nullptr;
    if (key && !facts && !PyErr_Occurred()) facts = PyObject_CallOneArg(look, code);
    Py_XDECREF(key);
    long number = 0;
    int own = 0;
    PyObject* of_code = nullptr;
    const bool read = facts && PyArg_ParseTuple(facts, "lpO", &number, &own, &of_code);
    if (read) {
      least = number < least ? number : least;
      if (own || !shown) {
        Py_XSETREF(shown, Py_NewRef(coroutine));
        names_of_shown = names;
      }
    }
    Py_XDECREF(facts);
    Py_XDECREF(code);
    PyObject* next = read ? PyObject_GetAttr(coroutine, names->awaited) : nullptr;
    Py_SETREF(coroutine, next ? next : Py_NewRef(Py_None));
  }
  Py_DECREF(coroutine);
  PyObject* found = nullptr;
  if (!PyErr_Occurred() && !shown) found = Py_BuildValue("(lOi)", least, Py_None, 0);
  if (!PyErr_Occurred() && shown)
    found =
        Py_BuildValue("(lNl)", least, PyObject_GetAttr(shown, names_of_shown->code), line_of(shown, *names_of_shown));
  Py_XDECREF(shown);
  return found;
}

PyMethodDef functions[] = {{"requests_awaited", awaited_by, METH_VARARGS, nullptr}, {}};

}  // namespace

bool add_awaits(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace strobe::requests
