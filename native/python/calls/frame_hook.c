/* frame_hook.c - Python calls on CPython 3.11: a frame evaluation function (PEP 523).
 *
 * Why not PyEval_SetProfile: the interpreter's own dispatch of a profile hook that does nothing costs 43-128 ns a call
 * on 3.11, more than half of what VizTracer adds; this hook does nothing for 0-8 ns. Price: Python-to-Python calls use
 * the C stack again (guarded below), and C functions are not seen. torch.compile's own hook saves the one it finds and
 * calls it (torch/csrc/dynamo/eval_frame.c).
 *
 * C functions, on request: the interpreter reports them by its profile hook only. It is put in beside the frame hook,
 * which still records what is Python: so Python's spans stay whole whatever the program does with profile hooks. A
 * profiler of the program has the hook for itself as long as it wants. */
#include "python/calls/code_regions.h"

#if PY_VERSION_HEX < 0x030C0000
#include "python/calls/c_functions.h"
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <pthread.h>

#include "include/strobe.h"
#include "python/lines/lines_frames.h"
#include "python/loops/loops.h"

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
/* Below this address half of the thread's C stack is used. Unset it is above everything, so that the first frame comes
 * to evaluate_deep. */
static FAST_TLS char* stack_limit = (char*)UINTPTR_MAX;
static FAST_TLS CallState now;
static int c_functions; /* are recorded, too */
/* Python functions that ran while the hook was in, and what each of them pays for that: the interpreter does not inline
 * calls then. Measured: 280 instructions, 25 to 30 ns. */
static uint64_t frames;
static const double frame_ns = 27;
/* The C function that runs in this thread, innermost, if it is recorded. */
static FAST_TLS PyObject* running_c_function;

static void find_stack_limit(void) {
  pthread_attr_t attributes;
  void* low;
  size_t size;
  stack_limit = (char*)1;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  /* The main thread's mapping may be as large as `ulimit -s` allows; half of at most 8 MiB is enough room either way.
   */
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    size_t used = size > (8u << 20) ? 4u << 20 : size / 2;
    stack_limit = (char*)low + size - used;
  }
  pthread_attr_destroy(&attributes);
}

/* Calls that would be recorded if the recursion were not too deep; see evaluate_deep. */
static int too_deep;
static uint64_t calls_too_deep;

static int is_recorded(PyFrameObject* frame) {
  return !now.importing && code_region(frame->f_frame->f_code, frame->f_frame->f_globals) >= CODE_FIRST;
}

/* The profile hook: C functions only, and the number of calls while the frame hook is out. */
static int on_profile(PyObject* self, PyFrameObject* frame, int what, PyObject* callable) {
  (void)self;
  if (what == PyTrace_CALL && too_deep && is_recorded(frame)) calls_too_deep++;
  if (!c_functions) return 0;
  if (what != PyTrace_C_CALL && what != PyTrace_C_RETURN && what != PyTrace_C_EXCEPTION) return 0;
  if (!callable || !is_recorded(frame)) return 0;
  if (what == PyTrace_C_CALL) {
    if (c_function_begin(callable)) running_c_function = callable;
  } else {
    c_function_end(callable);
    running_c_function = NULL;
  }
  return 0;
}

/* Not by PyEval_SetProfile: that raises an audit event which the program did not cause. */
static void set_profile(PyThreadState* tstate, Py_tracefunc function) {
  tstate->c_profilefunc = function;
  tstate->cframe->use_tracing = tstate->c_tracefunc || function ? 255 : 0;
}

/* Deep recursion: without a hook 3.11 runs Python-to-Python calls without C stack, with one it does not. Below the
 * limit the program gets its plain interpreter back until it has returned, so that it never overflows a stack that it
 * would not overflow alone. Meanwhile the profile hook, which needs no C stack, counts the calls of all threads; where
 * the program has a profile hook of its own, their number is not known. */
static PyObject* evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing);
static PyObject* evaluate_deep(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  if (stack_limit == (char*)UINTPTR_MAX) {
    find_stack_limit();
    return evaluate(tstate, frame, throwing);
  }
  PyInterpreterState* interpreter = tstate->interp;
  _PyFrameEvalFunction hook = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  for (PyThreadState* each = PyInterpreterState_ThreadHead(interpreter); each; each = PyThreadState_Next(each))
    if (!each->c_profilefunc) set_profile(each, on_profile);
  too_deep = 1;
  calls_too_deep = 0;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
  too_deep = 0;
  if (tstate->c_profilefunc != on_profile) strobe_count("deep_recursion_not_recorded", 1);
  strobe_count("calls_too_deep", calls_too_deep);
  for (PyThreadState* each = PyInterpreterState_ThreadHead(interpreter); each; each = PyThreadState_Next(each))
    if (!c_functions && each->c_profilefunc == on_profile) set_profile(each, NULL);
  return result;
}

/* The hook is not in: a new thread, or the program has put in its own, or has just taken it out. */
static void see_c_functions(PyThreadState* tstate) {
  if (running_c_function) { /* the one that did so: its return will not be reported */
    c_function_end(running_c_function);
    running_c_function = NULL;
    if (tstate->c_profilefunc) strobe_count("c_functions_hidden_by_a_profiler", 1);
  }
  if (!tstate->c_profilefunc) set_profile(tstate, on_profile);
}

/* Runs a frame with or without C functions. The interpreter's dispatch of a profile hook slows every instruction, so it
 * is on in recorded code alone; where the program traces or profiles itself it stays as it is. */
static PyObject* evaluate_and_profile(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, int on) {
  if (tstate->c_profilefunc != on_profile || tstate->c_tracefunc || tstate->tracing)
    return _PyEval_EvalFrameDefault(tstate, frame, throwing);
  const uint8_t was = tstate->cframe->use_tracing;
  tstate->cframe->use_tracing = on ? 255 : 0;
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  if (tstate->c_profilefunc == on_profile && !tstate->c_tracefunc) tstate->cframe->use_tracing = was;
  return result;
}

static inline PyObject* evaluate_with(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, int c) {
  if (__builtin_expect(c_functions, 0)) return evaluate_and_profile(tstate, frame, throwing, c);
  return _PyEval_EvalFrameDefault(tstate, frame, throwing);
}

/* What the call of a generator or coroutine function runs is only what makes the object; sys.setprofile and
 * sys.monitoring do not report it either. */
static inline int makes_generator(const struct _PyInterpreterFrame* frame) {
  return (frame->f_code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) &&
         frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/* A frame that calls a module: its first argument. */
static PyObject* evaluate_module(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  if (now.modules.depth++ == 0 && !now.importing) {
    now.modules.region = module_region(frame->localsplus[0]);
    if (now.modules.region) strobe_enter(now.modules.region);
  }
  PyObject* result = evaluate_with(tstate, frame, throwing, 0);
  if (--now.modules.depth == 0 && now.modules.region) {
    strobe_leave(now.modules.region);
    now.modules.region = 0;
  }
  return result;
}

static PyObject* evaluate_recorded(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  uintptr_t region = code_region(frame->f_code, frame->f_globals);
  frames++;
  if (__builtin_expect((char*)__builtin_frame_address(0) < stack_limit, 0))
    return evaluate_deep(tstate, frame, throwing);
  if (region >= CODE_FIRST && !now.importing && !makes_generator(frame)) {
    region -= CODE_FIRST;
    if (is_throttled((uint32_t)region)) {
      code_region_throttle(frame->f_code, (uint32_t)region);
      return _PyEval_EvalFrameDefault(tstate, frame, throwing);
    }
    if (__builtin_expect(c_functions, 0) && tstate->c_profilefunc != on_profile) see_c_functions(tstate);
    strobe_enter((uint32_t)region);
    LoopCode* loops = loops_of((uint32_t)region);
    PyObject* result = __builtin_expect(loops != NULL, 0) ? loops_evaluate(tstate, frame, throwing, loops)
                                                          : evaluate_with(tstate, frame, throwing, 1);
    strobe_leave((uint32_t)region);
    return result;
  }
  if (region == CODE_MODULE) return evaluate_module(tstate, frame, throwing);
  if (region != CODE_IMPORT) return evaluate_with(tstate, frame, throwing, 0);
  now.importing++;
  PyObject* result = evaluate_with(tstate, frame, throwing, 0);
  now.importing--;
  return result;
}

static PyObject* evaluate_others(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing);

/* Most frames of most programs are not recorded: in a server on asyncio 86 of 89. Their way is short: no register is
 * saved, and the interpreter's function takes the place of this one on the stack. 30 instructions, where one way for
 * all took 59. */
static PyObject* evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  const uint64_t known = (uint64_t)extra_of(frame->f_code, code_extra_index) - code_base;
  const int plain = known == CODE_SKIP && !c_functions && !lines_running && tstate->c_tracefunc != loops_trace;
  const char here = 0; /* __builtin_frame_address would save a register */
  if (__builtin_expect(plain && &here >= stack_limit, 1)) {
    frames++;
    return _PyEval_EvalFrameDefault(tstate, frame, throwing);
  }
  return evaluate_others(tstate, frame, throwing);
}

static __attribute__((noinline)) PyObject* evaluate_others(PyThreadState* tstate, struct _PyInterpreterFrame* frame,
                                                           int throwing) {
  if (__builtin_expect(tstate->c_tracefunc == loops_trace, 0)) return loops_beside(tstate, frame, throwing, evaluate);
  if (__builtin_expect(lines_running, 0)) return lines_evaluate(tstate, frame, throwing, evaluate_recorded);
  return evaluate_recorded(tstate, frame, throwing);
}

CallState python_calls_switch(CallState next) {
  const CallState was = now;
  now = next;
  return was;
}

int python_calls_start(int with_c_functions, int whole_stacks) {
  (void)whole_stacks; /* nobody asks for it: programs of this version cannot be attached to */
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != _PyEval_EvalFrameDefault) {
    PyErr_SetString(PyExc_RuntimeError, "another tool evaluates frames in this process");
    return -1;
  }
  c_functions = with_c_functions;
  strobe_hook_cost(&frames, frame_ns);
  if (!c_functions && !lines_running) loops_start(&frames, frame_ns); /* both need the trace function */
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
  return 0;
}

void python_calls_give_up(void) {
  if (!lines_running) python_calls_stop();
}

void python_calls_stop(void) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  c_functions = 0;
  loops_stop();
  for (PyThreadState* each = PyInterpreterState_ThreadHead(interpreter); each; each = PyThreadState_Next(each))
    if (each->c_profilefunc == on_profile) set_profile(each, NULL);
  /* Somebody who hooked in after us still calls us; then we stay, and record nothing because the session has ended. */
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate)
    _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
}
#endif
