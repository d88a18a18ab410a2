/* monitoring.c - Python calls on CPython 3.12 and later: sys.monitoring (PEP 669) with C callbacks.
 *
 * The callbacks are objects of a type of our own whose vectorcall is the callback itself: a built-in function's own
 * dispatch would be a fifth of what an event costs. They call no Python. Code that is not recorded answers DISABLE and
 * costs nothing from then on. A tool id of our own leaves the debugger's, coverage's and profiler's ids free for the
 * program. */
#include "python/calls/code_regions.h"

#if PY_VERSION_HEX >= 0x030C0000
#include <structmember.h>
#include <sys/mman.h>

#include "include/strobe.h"
#include "python/calls/c_functions.h"
#include "python/lines/lines_events.h"
#include "python/loops/loops.h"

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
static FAST_TLS CallState now;
static FAST_TLS uint64_t now_of; /* the recording that `now` is of */
static PyObject* disable;        /* sys.monitoring.DISABLE */
static int tool_id = -1;
static int running;
static uint64_t lines_ns; /* what following the lines of loops has cost */
/* By region: executions that have begun and not ended, in all threads. Who throttles a function waits until there is
 * none, so that each leave has its enter. Mapped: only what is used takes memory. */
static uint32_t* open_calls;
enum { REGION_LIMIT = 1 << 22 };

/* A module is called; its call is of the function that runs. Returns its region, 0: it is not recorded. */
static uint32_t module_begins(PyFrameObject* frame) {
  if (now_of != code_base) now.modules = (ModuleCalls){0}, now_of = code_base; /* what had begun ended unseen */
  if (now.modules.depth++ > 0 || now.importing) return 0;
  PyObject* module = frame ? PyFrame_GetVarString(frame, "self") : NULL;
  now.modules.region = module ? module_region(module) : 0;
  if (!module) PyErr_Clear();
  Py_XDECREF(module);
  return now.modules.region;
}

static void module_begin(void) {
  const uint32_t region = module_begins(PyEval_GetFrame());
  if (region) strobe_enter(region);
}

static void module_end(void) {
  if (now_of != code_base || now.modules.depth == 0 || --now.modules.depth > 0) return;
  if (now.modules.region) strobe_leave(now.modules.region);
  now.modules.region = 0;
}

/* Recordings that begin in the middle of a program: at its first event, a thread opens the calls that it is in, as of
 * when the recording began. No other thread can do that for it. */
static uint64_t stacks_of;         /* the recording that does so; 0: none */
static FAST_TLS uint64_t stack_of; /* the recording in which this thread has done so */
static uint64_t stacks_since;      /* ticks */
enum { MOST_OPENED = 4096 };       /* the innermost ones */

static void open_call(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  PyObject* globals = PyFrame_GetGlobals(frame);
  const uintptr_t known = code_region(code, globals);
  uint32_t region = 0;
  if (known == CODE_IMPORT) {
    now.importing++;
  } else if (known == CODE_MODULE) {
    region = module_begins(frame);
  } else if (known >= CODE_FIRST && !now.importing && !is_throttled((uint32_t)(known - CODE_FIRST))) {
    region = (uint32_t)(known - CODE_FIRST);
    open_calls[region]++;
  }
  if (region) strobe_enter_at(region, stacks_since);
  Py_XDECREF(globals), Py_DECREF(code);
}

/* `begins`: the event is the beginning of the innermost call, which is not yet one that the thread was in. */
static void open_stack(int begins) {
  stack_of = stacks_of;
  now = (CallState){0}, now_of = code_base;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyFrameObject** frames = malloc(MOST_OPENED * sizeof *frames);
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  size_t count = 0;
  while (frames && frame && count < MOST_OPENED) {
    frames[count++] = frame;
    frame = PyFrame_GetBack(frame);
  }
  Py_XDECREF(frame);
  for (size_t i = count; i-- > 0; Py_DECREF(frames[i]))
    if (i > 0 || !begins) open_call(frames[i]);
  free(frames);
  PyErr_Restore(type, value, trace);
}

static inline void see_stack(int begins) {
  if (__builtin_expect(stacks_of != 0, 0) && stack_of != stacks_of) open_stack(begins);
}

static inline PyObject* begin(PyObject* const* args, int goes_on, int may_disable) {
  see_stack(1);
  PyCodeObject* code = (PyCodeObject*)args[0];
  LineCode* lines = __builtin_expect(lines_running, 0) ? lines_of(code) : NULL;
  if (lines) lines_begin(lines, args[0], args[1], goes_on), may_disable = 0;
  uintptr_t region = code_region(code, NULL);
  if (__builtin_expect(region >= CODE_FIRST, 1)) {
    region -= CODE_FIRST;
    if (now.importing) Py_RETURN_NONE;
    if (is_throttled((uint32_t)region) && open_calls[region] == 0) {
      code_region_throttle(code, (uint32_t)region);
      return Py_NewRef(may_disable ? disable : Py_None);
    }
    open_calls[region]++;
    strobe_enter((uint32_t)region);
    LoopCode* loops = loops_of((uint32_t)region);
    if (__builtin_expect(loops != NULL, 0)) loops_begin(loops);
    Py_RETURN_NONE;
  }
  if (region == CODE_IMPORT) {
    now.importing++;
    Py_RETURN_NONE;
  }
  if (region == CODE_MODULE) {
    module_begin();
    Py_RETURN_NONE;
  }
  return Py_NewRef(may_disable ? disable : Py_None);
}

static inline PyObject* end(PyObject* const* args, int may_disable) {
  see_stack(0);
  PyCodeObject* code = (PyCodeObject*)args[0];
  LineCode* lines = __builtin_expect(lines_running, 0) ? lines_of(code) : NULL;
  if (lines) lines_end(lines), may_disable = 0;
  uintptr_t region = code_region(code, NULL);
  if (__builtin_expect(region >= CODE_FIRST, 1)) {
    region -= CODE_FIRST;
    if (!now.importing && open_calls[region]) { /* else it began before the recording */
      open_calls[region]--;
      LoopCode* loops = loops_of((uint32_t)region);
      if (__builtin_expect(loops != NULL, 0)) loops_end(loops);
      strobe_leave((uint32_t)region);
    }
    Py_RETURN_NONE;
  }
  if (region == CODE_IMPORT) {
    if (now.importing > 0) now.importing--;
    Py_RETURN_NONE;
  }
  if (region == CODE_MODULE) {
    module_end();
    Py_RETURN_NONE;
  }
  return Py_NewRef(may_disable ? disable : Py_None);
}

#define CALLBACK(name) static PyObject* name(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords)
#define UNUSED (void)self, (void)flags, (void)keywords
CALLBACK(on_begin) { return UNUSED, begin(args, 0, 1); }
CALLBACK(on_resume) { return UNUSED, begin(args, 1, 1); }
CALLBACK(on_end) { return UNUSED, end(args, 1); }
/* PY_UNWIND and PY_THROW are global events: they cannot be switched off per code object. */
CALLBACK(on_throw) { return UNUSED, begin(args, 1, 0); }
CALLBACK(on_unwind) { return UNUSED, end(args, 0); }

/* CALL reports every callable, its C_RETURN or C_RAISE of all but Python functions. */
CALLBACK(on_call) {
  UNUSED;
  see_stack(0);
  if (code_region((PyCodeObject*)args[0], NULL) < CODE_FIRST) return Py_NewRef(disable);
  if (!now.importing) c_function_begin(args[2]);
  Py_RETURN_NONE;
}
CALLBACK(on_c_end) {
  UNUSED;
  if (!now.importing && code_region((PyCodeObject*)args[0], NULL) >= CODE_FIRST) c_function_end(args[2]);
  Py_RETURN_NONE;
}

typedef struct {
  PyObject_HEAD vectorcallfunc call;
} Callback;
static PyMemberDef callback_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Callback, call), READONLY, NULL},
                                         {NULL, 0, 0, 0, NULL}};
static PyType_Slot callback_slots[] = {
    {Py_tp_members, callback_members}, {Py_tp_call, (void*)PyVectorcall_Call}, {0, NULL}};
static PyType_Spec callback_spec = {"strobe.Callback", sizeof(Callback), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, callback_slots};
static PyTypeObject* callback_type;

static const struct {
  const char* event;
  vectorcallfunc call;
  int for_c_functions;
} events[] = {{"PY_START", on_begin, 0}, {"PY_RESUME", on_resume, 0}, {"PY_THROW", on_throw, 0},
              {"PY_RETURN", on_end, 0},  {"PY_YIELD", on_end, 0},     {"PY_UNWIND", on_unwind, 0},
              {"CALL", on_call, 1},      {"C_RETURN", on_c_end, 1},   {"C_RAISE", on_c_end, 1}};

static PyObject* new_callback(vectorcallfunc call) {
  Callback* made = PyObject_New(Callback, callback_type);
  if (made) made->call = call;
  return (PyObject*)made;
}

static int set_callbacks(PyObject* monitoring, int on, int c_functions) {
  PyObject* known = PyObject_GetAttrString(monitoring, "events");
  long mask = 0;
  int failed = known == NULL;
  for (size_t i = 0; !failed && i < sizeof events / sizeof events[0]; i++) {
    if (events[i].for_c_functions && !c_functions) continue;
    PyObject* event = PyObject_GetAttrString(known, events[i].event);
    PyObject* function = on ? new_callback(events[i].call) : Py_NewRef(Py_None);
    PyObject* old = event && function
                        ? PyObject_CallMethod(monitoring, "register_callback", "iOO", tool_id, event, function)
                        : NULL;
    if (old) mask |= PyLong_AsLong(event);
    failed = old == NULL;
    Py_XDECREF(old), Py_XDECREF(function), Py_XDECREF(event);
  }
  PyObject* done = failed ? NULL : PyObject_CallMethod(monitoring, "set_events", "il", tool_id, on ? mask : 0L);
  failed = done == NULL;
  Py_XDECREF(done), Py_XDECREF(known);
  return failed ? -1 : 0;
}

CallState python_calls_switch(CallState next) {
  const CallState was = now;
  now = next;
  return was;
}

static int prepare(PyObject* monitoring) {
  if (!disable && !(disable = PyObject_GetAttrString(monitoring, "DISABLE"))) return -1;
  if (!callback_type && !(callback_type = (PyTypeObject*)PyType_FromSpec(&callback_spec))) return -1;
  if (!open_calls) {
    void* room = mmap(NULL, sizeof(uint32_t) * REGION_LIMIT, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return PyErr_NoMemory(), -1;
    open_calls = room;
  } else {
    madvise(open_calls, sizeof(uint32_t) * REGION_LIMIT, MADV_DONTNEED); /* zeros again */
  }
  return 0;
}

int python_calls_start(int c_functions, int whole_stacks) {
  PyObject* monitoring = PySys_GetObject("monitoring"); /* borrowed */
  if (!monitoring) return PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is missing"), -1;
  if (prepare(monitoring) != 0) return -1;
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
  now.importing = 0;
  stacks_of = whole_stacks ? code_base : 0;
  stacks_since = strobe_ticks();
  if (!c_functions) {
    strobe_hook_cost(&lines_ns, 1);
    loops_start(&lines_ns, 1);
  }
  if (set_callbacks(monitoring, 1, c_functions) != 0 || lines_events_start(monitoring, tool_id) != 0) return -1;
  /* What an earlier recording in this process had switched off. Tools of the program see again what they had switched
   * off: not without need. */
  static int again;
  PyObject* done = again++ ? PyObject_CallMethod(monitoring, "restart_events", NULL) : Py_NewRef(Py_None);
  Py_XDECREF(done);
  running = done != NULL;
  if (running) see_stack(0); /* of this thread now: the recording may end before its first event */
  return done ? 0 : -1;
}

void python_calls_give_up(void) {} /* code that is switched off costs nothing */

void python_calls_stop(void) {
  PyObject* monitoring = PySys_GetObject("monitoring");
  if (!running || !monitoring) return;
  running = 0;
  loops_stop();
  if (set_callbacks(monitoring, 0, 1) != 0) PyErr_Clear();
  PyObject* done = PyObject_CallMethod(monitoring, "free_tool_id", "i", tool_id);
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
}
#endif
