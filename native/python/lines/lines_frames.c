/* lines_frames.c - source lines on CPython 3.11: a trace function that is switched on for the chosen functions alone.
 *
 * The frame evaluation hook sees each call, so the interpreter's tracing can be on while the innermost Python function
 * is a chosen one, and off in everything that it calls: other code runs at its usual speed. Where the program traces
 * itself (a debugger, coverage), that goes on and lines are not counted. */
#include "python/lines/lines.h"

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include "python/lines/lines_frames.h"
#include "python/lines/lines_stack.h"

static int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* argument) {
  (void)self, (void)argument;
  if ((what != PyTrace_LINE && what != PyTrace_CALL) || !lines_running) return 0;
  LineCode* code = lines_of(frame->f_frame->f_code);
  if (!code) return 0;
  LineActivation* activation = lines_find(code, frame->f_frame);
  if (!activation) activation = lines_push(code, frame->f_frame); /* it was running when counting began */
  if (!activation) return 0;
  if (what == PyTrace_LINE) lines_line(activation, frame->f_lineno);
  /* A generator goes on where it rested. At its begin this is the line of its `def`, which does not run. */
  if (what == PyTrace_CALL && frame->f_lineno != frame->f_frame->f_code->co_firstlineno)
    lines_resume(activation, frame->f_lineno);
  return 0;
}

int lines_tracing(int on) {
  PyThreadState* tstate = PyThreadState_Get();
  const int was = tstate->c_tracefunc == on_event;
  if (was && !on) tstate->c_tracefunc = NULL;
  if (on && !tstate->c_tracefunc) tstate->c_tracefunc = on_event;
  return was;
}

static inline void set_tracing(PyThreadState* tstate, int lines) {
  tstate->cframe->use_tracing = lines || tstate->c_profilefunc ? 255 : 0;
}

PyObject* lines_evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing,
                         _PyFrameEvalFunction evaluate) {
  LineCode* code = lines_of(frame->f_code);
  const int ours = tstate->c_tracefunc == on_event;
  if (!code) {
    if (!ours) return evaluate(tstate, frame, throwing);
    set_tracing(tstate, 0);
    PyObject* result = evaluate(tstate, frame, throwing);
    if (tstate->c_tracefunc == on_event) set_tracing(tstate, 1);
    return result;
  }
  if (tstate->c_tracefunc && !ours) {
    strobe_count("calls_without_lines_while_traced", 1);
    return evaluate(tstate, frame, throwing);
  }
  /* While a trace or profile function of the program itself runs, nothing is traced. */
  if (tstate->tracing) return evaluate(tstate, frame, throwing);
  lines_push(code, frame);
  tstate->c_tracefunc = on_event;
  set_tracing(tstate, 1);
  PyObject* result = evaluate(tstate, frame, throwing);
  lines_pop(code, frame);
  if (tstate->c_tracefunc == on_event) { /* else the program began to trace itself meanwhile */
    if (!ours) tstate->c_tracefunc = NULL;
    set_tracing(tstate, ours);
  }
  return result;
}
#endif
