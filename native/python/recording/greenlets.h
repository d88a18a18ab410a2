// greenlets.h - see greenlets.cpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

// 0: the trace function that records switches; 1 and 2: settrace and gettrace for the program. A new reference.
PyObject* greenlet_function(int index);
