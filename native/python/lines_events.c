/* lines_events.c - source lines on CPython 3.12 and later: LINE events of sys.monitoring, for the chosen code only.
 *
 * monitoring.c tells of begins and ends; what is open in a thread is a stack of activations here. */
#include "lines.h"

#if PY_VERSION_HEX >= 0x030C0000
#include <pthread.h>

#include "lines_events.h"

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
typedef struct {
  size_t depth, room;
  LineActivation activations[];
} Stack;
static FAST_TLS Stack* stack;
static pthread_key_t stack_key; /* its destructor frees the stack of a thread that ends */
static pthread_once_t stack_key_made = PTHREAD_ONCE_INIT;
static PyObject *monitoring, *tool; /* sys.monitoring, the number of the tool */
static long line_event;

static void make_key(void) { pthread_key_create(&stack_key, free); }

static int grow(void) {
  size_t room = stack ? stack->room * 2 : 64;
  Stack* grown = realloc(stack, sizeof *grown + room * sizeof(LineActivation));
  if (!grown) return -1;
  if (!stack) grown->depth = 0;
  grown->room = room;
  stack = grown;
  pthread_once(&stack_key_made, make_key);
  pthread_setspecific(stack_key, stack);
  return 0;
}

void lines_push(LineCode* code, PyObject* py_code, PyObject* offset, int goes_on) {
  if ((!stack || stack->depth == stack->room) && grow() != 0) return;
  LineActivation* activation = &stack->activations[stack->depth++];
  *activation = (LineActivation){.code = code};
  if (goes_on) lines_resume(activation, PyCode_Addr2Line((PyCodeObject*)py_code, (int)PyLong_AsLong(offset)));
}

void lines_pop(LineCode* code) {
  /* Executions that were open when counting began are not on the stack. */
  if (!stack || !stack->depth || stack->activations[stack->depth - 1].code != code) return;
  lines_close(&stack->activations[--stack->depth]);
}

static PyObject* on_line(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  (void)self, (void)n;
  if (!lines_running) Py_RETURN_NONE;
  LineCode* code = lines_of((PyCodeObject*)args[0]);
  if (!code) Py_RETURN_NONE;
  if (!stack || !stack->depth || stack->activations[stack->depth - 1].code != code)
    lines_push(code, args[0], NULL, 0); /* it was running when counting began */
  if (stack && stack->depth) lines_line(&stack->activations[stack->depth - 1], (int)PyLong_AsLong(args[1]));
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
