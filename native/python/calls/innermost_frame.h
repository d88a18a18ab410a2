/* innermost_frame.h - the Python frame that a thread is in, as an address: no frame object is made for it. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* NULL: none. `tstate` is the calling thread's own. */
static inline void* innermost_frame(PyThreadState* tstate) {
#if PY_VERSION_HEX < 0x030D0000
  return tstate->cframe->current_frame;
#else
  return tstate->current_frame;
#endif
}
