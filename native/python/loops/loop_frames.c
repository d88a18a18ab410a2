/* loop_frames.c - lines of loops on CPython 3.11: a trace function that is in while the innermost Python function is
 * one that holds a loop. Where the program traces itself (a debugger, coverage), that goes on instead. */
#include "python/loops/loop_activations.h"

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include "include/strobe.h"

enum { FIRST_RETRY_NS = 5000000, LAST_RETRY_NS = 1000000000 }; /* twice as long each time */

/* When the innermost call, which is not followed, is to be followed again, for the sampler's thread. */
static int64_t retry_at_ns = INT64_MAX;

/* Only in a function that is called once: another would be followed in some calls and not in others. */
static void set_retry(void) {
  const Activation* at = loops_innermost();
  const int retry = at && !at->followed && at->code->calls == 1;
  __atomic_store_n(&retry_at_ns, retry ? loops_now_ns() + at->code->retry_ns : INT64_MAX, __ATOMIC_RELAXED);
}

static void set_trace(PyThreadState* tstate, int on) {
  tstate->c_tracefunc = on ? loops_trace : NULL;
  tstate->cframe->use_tracing = on || tstate->c_profilefunc ? 255 : 0;
}

void loops_reset(void) {
  set_retry();
  PyThreadState* tstate = PyThreadState_Get();
  if (tstate->c_tracefunc == loops_trace) set_trace(tstate, 0);
}

int loops_trace(PyObject* self, PyFrameObject* frame, int what, PyObject* argument) {
  (void)self, (void)argument;
  if (what != PyTrace_LINE) return 0;
  Activation* at = loops_watched() ? loops_find(frame->f_frame) : NULL;
  if (!at || !at->followed) return 0;
  if (loops_too_fast(at)) {
    loops_leave(at, 0);
    at->followed = 0;
    at->code->retry_ns = at->code->retry_ns ? Py_MIN(2 * at->code->retry_ns, LAST_RETRY_NS) : FIRST_RETRY_NS;
    set_retry();
    PyThreadState_Get()->c_tracefunc = NULL; /* the interpreter looks at it when this returns */
    return 0;
  }
  loops_see(at, (uint32_t)(_PyInterpreterFrame_LASTI(frame->f_frame) * (int)sizeof(_Py_CODEUNIT)), strobe_ticks());
  return 0;
}

PyObject* loops_beside(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, Evaluate evaluate) {
  set_trace(tstate, 0);
  const unsigned recording = loops_recordings;
  PyObject* result = evaluate(tstate, frame, throwing);
  /* Else the program began to trace itself meanwhile. */
  if (!tstate->c_tracefunc && recording == loops_recordings) set_trace(tstate, 1);
  return result;
}

PyObject* loops_evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, LoopCode* code) {
  const int free = !code->retry_ns && code->code == frame->f_code && !tstate->c_tracefunc && !tstate->tracing;
  Activation* at = free && loops_watched() ? loops_push(code, frame) : NULL;
  if (!at) return _PyEval_EvalFrameDefault(tstate, frame, throwing);
  const unsigned recording = loops_recordings;
  set_retry();
  set_trace(tstate, 1);
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  if (tstate->c_tracefunc == loops_trace) set_trace(tstate, 0);
  if (recording == loops_recordings) loops_pop(frame);
  set_retry();
  return result;
}

/* Runs in the main thread between two instructions. */
static int follow_again(void* unused) {
  (void)unused;
  PyThreadState* tstate = PyThreadState_Get();
  Activation* at = loops_watched() ? loops_innermost() : NULL;
  if (!at || at->followed || tstate->c_tracefunc || tstate->tracing) return 0;
  if (at->frame != tstate->cframe->current_frame) { /* it is in something that it called */
    set_retry();
    return 0;
  }
  at->followed = 1;
  at->last = 0; /* what has begun already is not whole */
  at->since_ns = loops_now_ns();
  at->code->spent_ns = at->code->watched_ns / SHARE; /* it may cost as much as at first */
  set_trace(tstate, 1);
  return 0;
}

void loops_look(void) {
  if (loops_now_ns() < __atomic_load_n(&retry_at_ns, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&retry_at_ns, INT64_MAX, __ATOMIC_RELAXED);
  if (Py_AddPendingCall(follow_again, NULL) != 0) __atomic_store_n(&retry_at_ns, loops_now_ns(), __ATOMIC_RELAXED);
}
#endif
