/* interpreters.c - Python calls in an interpreter with a GIL of its own (concurrent.futures.InterpreterPoolExecutor),
 * CPython 3.12 and later. `_native` is for the main interpreter alone; this second module of the same file may be
 * loaded by any. What is recorded is what the main interpreter has decided on; C functions, lines and loops are left to
 * it, and functions are not throttled. All that is of one interpreter is in the module's state. */
#include "python/calls/code_regions.h"

#if PY_VERSION_HEX >= 0x030C0000
#include "core/session/interpreter_names.h"
#include "include/strobe.h"

typedef struct {
  Py_ssize_t extra_index; /* of the slot in this interpreter's code objects */
  PyObject* disable;      /* sys.monitoring.DISABLE */
} Interpreter;

static __thread struct {
  uint64_t base; /* the recording that the others are of */
  uint32_t open; /* calls that have begun in it */
  int importing;
} here;

static uintptr_t known_of(const Interpreter* interpreter, PyCodeObject* code) {
  const uint64_t base = code_base, known = (uint64_t)extra_of(code, interpreter->extra_index) - base;
  if (here.base != base) here.base = base, here.open = 0, here.importing = 0;
  if (__builtin_expect(known < (UINT64_C(1) << 32), 1)) return (uintptr_t)known;
  PyObject *type, *value, *trace; /* a generator that is resumed by throw() has an exception already */
  PyErr_Fetch(&type, &value, &trace);
  char loops[LOOPS_TEXT];
  const uintptr_t decided = code_region_decide(code, PyEval_GetGlobals(), loops);
  if (set_extra((PyObject*)code, interpreter->extra_index, (void*)(uintptr_t)(base + decided)) != 0) PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return decided;
}

static PyObject* begin(PyObject* self, PyObject* code, int may_disable) {
  const Interpreter* interpreter = PyModule_GetState(self);
  const uintptr_t region = known_of(interpreter, (PyCodeObject*)code);
  if (region >= CODE_FIRST) {
    if (!here.importing) here.open++, strobe_enter((uint32_t)(region - CODE_FIRST));
  } else if (region == CODE_IMPORT) {
    here.importing++;
  } else if (may_disable) {
    return Py_NewRef(interpreter->disable);
  }
  Py_RETURN_NONE;
}

static PyObject* end(PyObject* self, PyObject* code, int may_disable) {
  const Interpreter* interpreter = PyModule_GetState(self);
  const uintptr_t region = known_of(interpreter, (PyCodeObject*)code);
  if (region >= CODE_FIRST) {
    if (!here.importing && here.open) here.open--, strobe_leave((uint32_t)(region - CODE_FIRST));
  } else if (region == CODE_IMPORT) {
    if (here.importing) here.importing--;
  } else if (may_disable) {
    return Py_NewRef(interpreter->disable);
  }
  Py_RETURN_NONE;
}

#define CALLBACK(name) static PyObject* name(PyObject* self, PyObject* const* args, Py_ssize_t n)
CALLBACK(on_begin) { return (void)n, begin(self, args[0], 1); }
CALLBACK(on_end) { return (void)n, end(self, args[0], 1); }
/* PY_UNWIND and PY_THROW cannot be switched off per code object. */
CALLBACK(on_throw) { return (void)n, begin(self, args[0], 0); }
CALLBACK(on_unwind) { return (void)n, end(self, args[0], 0); }

#define METHOD(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL
static struct {
  const char* event;
  PyMethodDef definition;
} events[] = {{"PY_START", {"begin", METHOD(on_begin)}}, {"PY_RESUME", {"begin", METHOD(on_begin)}},
              {"PY_THROW", {"throw", METHOD(on_throw)}}, {"PY_RETURN", {"end", METHOD(on_end)}},
              {"PY_YIELD", {"end", METHOD(on_end)}},     {"PY_UNWIND", {"unwind", METHOD(on_unwind)}}};

static int take_tool(PyObject* monitoring) {
  for (int tool = 4; tool >= 3; tool--) {
    PyObject* done = PyObject_CallMethod(monitoring, "use_tool_id", "is", tool, "strobe");
    Py_XDECREF(done);
    if (done) return tool;
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_RuntimeError, "no free tool id in sys.monitoring (3 and 4 are taken)");
  return -1;
}

static int watch(PyObject* self, PyObject* monitoring, PyObject* known) {
  const int tool = take_tool(monitoring);
  if (tool < 0) return -1;
  long mask = 0;
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    PyObject* event = PyObject_GetAttrString(known, events[i].event);
    PyObject* function = event ? PyCFunction_New(&events[i].definition, self) : NULL;
    PyObject* old =
        function ? PyObject_CallMethod(monitoring, "register_callback", "iOO", tool, event, function) : NULL;
    if (old) mask |= PyLong_AsLong(event);
    Py_XDECREF(event), Py_XDECREF(function), Py_XDECREF(old);
    if (!old) return -1;
  }
  PyObject* done = PyObject_CallMethod(monitoring, "set_events", "il", tool, mask);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static PyObject* start(PyObject* self, PyObject* nothing) {
  (void)nothing;
  if (!code_base) Py_RETURN_FALSE; /* Python calls are not recorded, or not yet */
  Interpreter* interpreter = PyModule_GetState(self);
  PyObject* monitoring = PySys_GetObject("monitoring"); /* borrowed */
  if (!monitoring) return PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is missing"), NULL;
  interpreter->extra_index = request_index(NULL);
  if (interpreter->extra_index < 0)
    return PyErr_SetString(PyExc_RuntimeError, "the interpreter has no co_extra slot left"), NULL;
  if (!(interpreter->disable = PyObject_GetAttrString(monitoring, "DISABLE"))) return NULL;
  PyObject* known = PyObject_GetAttrString(monitoring, "events");
  const int failed = !known || watch(self, monitoring, known) != 0;
  Py_XDECREF(known);
  if (failed) return NULL;
  strobe_name_interpreter(PyInterpreterState_GetID(PyInterpreterState_Get()));
  Py_RETURN_TRUE;
}

static PyObject* name_thread(PyObject* self, PyObject* text) {
  (void)self;
  PyObject* name = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
  if (!name) return NULL;
  strobe_name_thread(PyBytes_AsString(name));
  Py_DECREF(name);
  strobe_name_interpreter(PyInterpreterState_GetID(PyInterpreterState_Get()));
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start", start, METH_NOARGS, "start() -> bool: records calls of this interpreter; False where calls are not."},
    {"name_thread", name_thread, METH_O,
     "name_thread(name) -> None: the calling thread, which is of this interpreter."},
    {NULL, NULL, 0, NULL}};

static int traverse(PyObject* self, visitproc visit, void* arg) {
  Interpreter* interpreter = PyModule_GetState(self);
  Py_VISIT(interpreter->disable);
  return 0;
}
/* `disable` stays until the module goes: callbacks may come until then. */
static void release(void* self) {
  Interpreter* interpreter = PyModule_GetState(self);
  Py_CLEAR(interpreter->disable);
}

static PyModuleDef_Slot slots[] = {{Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_interpreter", .m_size = sizeof(Interpreter),
                                 .m_methods = methods,  .m_slots = slots,         .m_traverse = traverse,
                                 .m_free = release};
PyMODINIT_FUNC PyInit__interpreter(void) { return PyModuleDef_Init(&definition); }
#endif
