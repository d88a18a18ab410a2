/* call_watch.h - waits for calls of one Python function, for recording windows. CPython 3.11 only: later versions have
 * sys.monitoring, see record/program/call_watch.py. */
#pragma once
#include <Python.h>

/* `name` is MODULE.QUALNAME. `at_begin` is called before each call of it, `at_end` after each, without arguments; what
 * they raise is dropped. -1 with an exception where this cannot be. */
int call_watch_start(PyObject* name, PyObject* at_begin, PyObject* at_end);
void call_watch_stop(void);
