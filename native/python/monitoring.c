/* monitoring.c - Python calls on CPython 3.12 and later: sys.monitoring (PEP 669) with C callbacks.
 *
 * The callbacks are builtin functions that the interpreter reaches by vectorcall; they call no Python. Code that is not
 * recorded answers DISABLE and costs nothing from then on. A tool id of our own leaves the debugger's, coverage's and
 * profiler's ids free for the program. */
#include "code_regions.h"

#if PY_VERSION_HEX >= 0x030C0000
#include "include/strobe.h"
#include "lines_events.h"

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
static FAST_TLS int importing;
static PyObject* disable; /* sys.monitoring.DISABLE */
static int tool_id = -1;
static int running;

static inline PyObject* begin(PyObject* const* args, int goes_on) {
  LineCode* lines = __builtin_expect(lines_running, 0) ? lines_of((PyCodeObject*)args[0]) : NULL;
  if (lines) lines_push(lines, args[0], args[1], goes_on);
  uintptr_t region = code_region((PyCodeObject*)args[0]);
  if (region >= CODE_FIRST) {
    if (!importing) strobe_enter((uint32_t)(region - CODE_FIRST));
    Py_RETURN_NONE;
  }
  if (region == CODE_IMPORT) {
    importing++;
    Py_RETURN_NONE;
  }
  if (lines) Py_RETURN_NONE;
  return Py_NewRef(disable);
}

static inline PyObject* end(PyObject* const* args, int may_disable) {
  LineCode* lines = __builtin_expect(lines_running, 0) ? lines_of((PyCodeObject*)args[0]) : NULL;
  if (lines) lines_pop(lines);
  uintptr_t region = code_region((PyCodeObject*)args[0]);
  if (region >= CODE_FIRST) {
    if (!importing) strobe_leave((uint32_t)(region - CODE_FIRST));
    Py_RETURN_NONE;
  }
  if (region == CODE_IMPORT) {
    if (importing > 0) importing--;
    Py_RETURN_NONE;
  }
  if (may_disable && !lines) return Py_NewRef(disable);
  Py_RETURN_NONE;
}

/* PY_UNWIND and PY_THROW are global events: they cannot be switched off per code object. */
static PyObject* on_begin(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return (void)self, (void)n, begin(args, 0);
}
static PyObject* on_resume(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return (void)self, (void)n, begin(args, 1);
}
static PyObject* on_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  (void)self, (void)n;
  LineCode* lines = __builtin_expect(lines_running, 0) ? lines_of((PyCodeObject*)args[0]) : NULL;
  if (lines) lines_push(lines, args[0], args[1], 1);
  uintptr_t region = code_region((PyCodeObject*)args[0]);
  if (region >= CODE_FIRST && !importing) strobe_enter((uint32_t)(region - CODE_FIRST));
  if (region == CODE_IMPORT) importing++;
  Py_RETURN_NONE;
}
static PyObject* on_end(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return (void)self, (void)n, end(args, 1);
}
static PyObject* on_unwind(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return (void)self, (void)n, end(args, 0);
}

static PyMethodDef callbacks[] = {
    {"PY_START", (PyCFunction)(void (*)(void))on_begin, METH_FASTCALL, NULL},
    {"PY_RESUME", (PyCFunction)(void (*)(void))on_resume, METH_FASTCALL, NULL},
    {"PY_THROW", (PyCFunction)(void (*)(void))on_throw, METH_FASTCALL, NULL},
    {"PY_RETURN", (PyCFunction)(void (*)(void))on_end, METH_FASTCALL, NULL},
    {"PY_YIELD", (PyCFunction)(void (*)(void))on_end, METH_FASTCALL, NULL},
    {"PY_UNWIND", (PyCFunction)(void (*)(void))on_unwind, METH_FASTCALL, NULL},
};

static int set_callbacks(PyObject* monitoring, int on) {
  PyObject* events = PyObject_GetAttrString(monitoring, "events");
  long mask = 0;
  int failed = events == NULL;
  for (size_t i = 0; !failed && i < sizeof callbacks / sizeof callbacks[0]; i++) {
    PyObject* event = PyObject_GetAttrString(events, callbacks[i].ml_name);
    PyObject* function = on ? PyCFunction_New(&callbacks[i], NULL) : Py_NewRef(Py_None);
    PyObject* old = event && function
                        ? PyObject_CallMethod(monitoring, "register_callback", "iOO", tool_id, event, function)
                        : NULL;
    if (old) mask |= PyLong_AsLong(event);
    failed = old == NULL;
    Py_XDECREF(old), Py_XDECREF(function), Py_XDECREF(event);
  }
  PyObject* done = failed ? NULL : PyObject_CallMethod(monitoring, "set_events", "il", tool_id, on ? mask : 0L);
  failed = done == NULL;
  Py_XDECREF(done), Py_XDECREF(events);
  return failed ? -1 : 0;
}

int python_calls_start(void) {
  PyObject* monitoring = PySys_GetObject("monitoring"); /* borrowed */
  if (!monitoring) return PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is missing"), -1;
  if (!disable && !(disable = PyObject_GetAttrString(monitoring, "DISABLE"))) return -1;
  for (tool_id = 4; tool_id >= 3; tool_id--) {
    PyObject* done = PyObject_CallMethod(monitoring, "use_tool_id", "is", tool_id, "strobe");
    if (done) {
      Py_DECREF(done);
      break;
    }
    PyErr_Clear();
  }
  if (tool_id < 3)
    return PyErr_SetString(PyExc_RuntimeError, "no free tool id in sys.monitoring (3 and 4 are taken)"), -1;
  importing = 0;
  if (set_callbacks(monitoring, 1) != 0 || lines_events_start(monitoring, tool_id) != 0) return -1;
  /* What an earlier recording in this process had switched off. */
  PyObject* done = PyObject_CallMethod(monitoring, "restart_events", NULL);
  Py_XDECREF(done);
  running = done != NULL;
  return done ? 0 : -1;
}

void python_calls_stop(void) {
  PyObject* monitoring = PySys_GetObject("monitoring");
  if (!running || !monitoring) return;
  running = 0;
  if (set_callbacks(monitoring, 0) != 0) PyErr_Clear();
  PyObject* done = PyObject_CallMethod(monitoring, "free_tool_id", "i", tool_id);
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
}
#endif
