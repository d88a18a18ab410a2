/* frame_hook.c - Python calls on CPython 3.11: a frame evaluation function (PEP 523).
 *
 * Why not PyEval_SetProfile: the interpreter's own dispatch of a profile hook that does nothing costs 43-128 ns a call
 * on 3.11, more than half of what VizTracer adds; this hook does nothing for 0-8 ns. Price: Python-to-Python calls use
 * the C stack again (guarded below), and C functions are not seen. torch.compile's own hook saves the one it finds and
 * calls it (torch/csrc/dynamo/eval_frame.c). */
#include "code_regions.h"

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <pthread.h>

#include "include/strobe.h"
#include "lines_frames.h"

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))
/* Below this address half of the thread's C stack is used. Unset it is above everything, so that the first frame comes
 * to evaluate_deep. */
static FAST_TLS char* stack_limit = (char*)UINTPTR_MAX;
static FAST_TLS int importing; /* depth of import machinery: code that an import runs is not recorded */

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

/* Deep recursion: without a hook 3.11 runs Python-to-Python calls without C stack, with one it does not. Below the
 * limit the program gets its plain interpreter back until it has returned, so that it never overflows a stack that it
 * would not overflow alone. */
static PyObject* evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing);
static PyObject* evaluate_deep(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  if (stack_limit == (char*)UINTPTR_MAX) {
    find_stack_limit();
    return evaluate(tstate, frame, throwing);
  }
  PyInterpreterState* interpreter = tstate->interp;
  _PyFrameEvalFunction hook = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  strobe_count("deep_recursion_not_recorded", 1);
  _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
  return result;
}

static PyObject* evaluate_recorded(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  uintptr_t region = code_region(frame->f_code);
  if (__builtin_expect((char*)__builtin_frame_address(0) < stack_limit, 0))
    return evaluate_deep(tstate, frame, throwing);
  if (region >= CODE_FIRST && !importing) {
    region -= CODE_FIRST;
    strobe_enter((uint32_t)region);
    PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
    strobe_leave((uint32_t)region);
    return result;
  }
  if (region != CODE_IMPORT) return _PyEval_EvalFrameDefault(tstate, frame, throwing);
  importing++;
  PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, throwing);
  importing--;
  return result;
}

static PyObject* evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing) {
  if (__builtin_expect(lines_running, 0)) return lines_evaluate(tstate, frame, throwing, evaluate_recorded);
  return evaluate_recorded(tstate, frame, throwing);
}

int python_calls_start(void) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != _PyEval_EvalFrameDefault) {
    PyErr_SetString(PyExc_RuntimeError, "another tool evaluates frames in this process");
    return -1;
  }
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
  return 0;
}

void python_calls_stop(void) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  /* Somebody who hooked in after us still calls us; then we stay, and record nothing because the session has ended. */
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate)
    _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
}
#endif
