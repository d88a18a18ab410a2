/* call_watch.c - a frame evaluation function (PEP 523) that looks for one function; costs a comparison of pointers a
 * call, and only while a window waits for it. */
#include "python/calls/call_watch.h"

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <string.h>

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
static FAST_TLS char* stack_top; /* of this thread, as far as we know */
/* Deeper than this Python-to-Python calls go without C stack again, as in a plain interpreter. */
static const ptrdiff_t kDeep = 1 << 20;

static PyObject *whole_name, *last_part, *begin, *end;
static _PyFrameEvalFunction before; /* who evaluated frames when we came */

static PyObject* watching(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing);

static void notify(PyObject* callback) {
  if (!callback || callback == Py_None) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_INCREF(callback);
  PyObject* result = PyObject_CallNoArgs(callback);
  Py_DECREF(callback);
  if (!result) PyErr_Clear();
  Py_XDECREF(result);
  PyErr_Restore(type, value, trace);
}

/* Whether a frame is of MODULE.QUALNAME. */
static int is_wanted(struct _PyInterpreterFrame* frame) {
  PyObject* module = PyDict_GetItemString(frame->f_globals, "__name__");
  if (!module || !PyUnicode_Check(module)) return 0;
  PyObject* name = PyUnicode_FromFormat("%U.%U", module, frame->f_code->co_qualname);
  int same = name && PyUnicode_Compare(name, whole_name) == 0;
  if (!name) PyErr_Clear();
  Py_XDECREF(name);
  return same;
}

static PyObject* watching(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  PyInterpreterState* interpreter = tstate->interp;
  char* here = (char*)__builtin_frame_address(0);
  if (!stack_top || here > stack_top) stack_top = here;
  if (__builtin_expect(stack_top - here > kDeep, 0)) {
    _PyFrameEvalFunction hook = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, before);
    PyObject* result = before(tstate, frame, throwing);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
    return result;
  }
  /* Names of code are interned. */
  if (frame->f_code->co_name != last_part || throwing || !is_wanted(frame)) return before(tstate, frame, throwing);
  PyObject* name = Py_NewRef(whole_name);
  notify(begin);
  /* The window that has opened now may have brought a hook of its own. */
  _PyFrameEvalFunction hook = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  PyObject* result = (hook == watching ? before : hook)(tstate, frame, throwing);
  /* Another function may be awaited by now. */
  if (whole_name && PyUnicode_Compare(name, whole_name) == 0) notify(end);
  Py_DECREF(name);
  return result;
}

int call_watch_start(PyObject* name, PyObject* at_begin, PyObject* at_end) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  Py_ssize_t length = PyUnicode_GetLength(name);
  Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, length, -1);
  PyObject* part = PyUnicode_Substring(name, dot + 1, length);
  if (!part) return -1;
  PyUnicode_InternInPlace(&part);
  Py_XSETREF(last_part, part);
  Py_INCREF(name), Py_INCREF(at_begin), Py_INCREF(at_end);
  Py_XSETREF(whole_name, name);
  Py_XSETREF(begin, at_begin);
  Py_XSETREF(end, at_end);
  _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (now != watching) {
    before = now;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, watching);
  }
  return 0;
}

void call_watch_stop(void) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  /* Somebody who hooked in after us still calls us: then we stay, and look for nothing. */
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == watching)
    _PyInterpreterState_SetEvalFrameFunc(interpreter, before);
  Py_CLEAR(last_part);
  Py_CLEAR(whole_name);
  Py_CLEAR(begin);
  Py_CLEAR(end);
}
#else
int call_watch_start(PyObject* name, PyObject* at_begin, PyObject* at_end) {
  (void)name, (void)at_begin, (void)at_end;
  PyErr_SetString(PyExc_RuntimeError, "sys.monitoring watches calls in this Python");
  return -1;
}
void call_watch_stop(void) {}
#endif
