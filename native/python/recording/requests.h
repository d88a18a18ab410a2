// requests.h - requests of a service that have been answered, as its adapter in Python reports them.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject* request_function();
