/* lines_events.c - source lines on CPython 3.12 and later: LINE events of sys.monitoring, for the chosen code only.
 * monitoring.c reports begins and ends. */
#include "python/lines/lines.h"

#if PY_VERSION_HEX >= 0x030C0000
#include "python/calls/code_regions.h"
#include "python/calls/innermost_frame.h"
#include "python/lines/lines_events.h"
#include "python/lines/lines_stack.h"
#include "python/loops/loops.h"

static PyObject *monitoring, *tool, *disable; /* sys.monitoring, the number of the tool */
static long line_event;

void lines_begin(LineCode* code, PyObject* py_code, PyObject* offset, int goes_on) {
  LineActivation* activation = lines_push(code, innermost_frame(PyThreadState_Get()));
  if (activation && goes_on)
    lines_resume(activation, PyCode_Addr2Line((PyCodeObject*)py_code, (int)PyLong_AsLong(offset)));
}

void lines_end(LineCode* code) { lines_pop(code, innermost_frame(PyThreadState_Get())); }

static PyObject* on_line(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  (void)self, (void)n;
  LineCode* code = lines_running ? lines_of((PyCodeObject*)args[0]) : NULL;
  if (!code) {
    const uintptr_t region = code_region((PyCodeObject*)args[0], NULL);
    LoopCode* loops = region >= CODE_FIRST ? loops_of((uint32_t)(region - CODE_FIRST)) : NULL;
    return Py_NewRef(loops && !loops_line(loops) ? Py_None : disable);
  }
  void* frame = innermost_frame(PyThreadState_Get());
  LineActivation* activation = lines_find(code, frame);
  if (!activation) activation = lines_push(code, frame); /* it was running when counting began */
  if (activation) lines_line(activation, (int)PyLong_AsLong(args[1]));
  Py_RETURN_NONE;
}
static PyMethodDef on_line_definition = {"LINE", (PyCFunction)(void (*)(void))on_line, METH_FASTCALL, NULL};

int lines_watch(PyObject* code) {
  if (!monitoring) return 0; /* before the hooks are in place; lines_events_start restarts */
  PyObject* had = PyObject_CallMethod(monitoring, "get_local_events", "OO", tool, code);
  long events = had ? PyLong_AsLong(had) | line_event : line_event;
  PyObject* done = had ? PyObject_CallMethod(monitoring, "set_local_events", "OOl", tool, code, events) : NULL;
  int failed = done == NULL;
  Py_XDECREF(had), Py_XDECREF(done);
  return failed ? -1 : 0;
}

int lines_events_start(PyObject* monitoring_module, int tool_id) {
  Py_XSETREF(monitoring, Py_NewRef(monitoring_module));
  Py_XSETREF(tool, PyLong_FromLong(tool_id));
  if (!disable && !(disable = PyObject_GetAttrString(monitoring_module, "DISABLE"))) return -1;
  PyObject* events = PyObject_GetAttrString(monitoring, "events");
  PyObject* event = events ? PyObject_GetAttrString(events, "LINE") : NULL;
  PyObject* function = event ? PyCFunction_New(&on_line_definition, NULL) : NULL;
  PyObject* old = function ? PyObject_CallMethod(monitoring, "register_callback", "OOO", tool, event, function) : NULL;
  if (old) line_event = PyLong_AsLong(event);
  int failed = old == NULL;
  Py_XDECREF(old), Py_XDECREF(function), Py_XDECREF(event), Py_XDECREF(events);
  return failed ? -1 : 0;
}
#endif
