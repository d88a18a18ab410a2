/* module_calls.h - calls of PyTorch's modules whose `forward` is not recorded, because a library made them: the
 * outermost ones, by class. They show where a model begins to work with what it is given. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The calls of modules that a thread is in, and the region of the outermost one; 0: it is not recorded. */
typedef struct {
  int depth;
  uint32_t region;
} ModuleCalls;

/* The region of a module's calls; 0: its `forward` is recorded itself. Never fails. */
uint32_t module_region(PyObject* module);
