/* c_functions.h - which C functions are recorded (built-in functions and methods, as sys.setprofile reports them), and
 * under which region: decided once per definition. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "include/strobe.h"
#include "python/calls/code_regions.h"

typedef struct {
  const PyMethodDef* definition; /* NULL: a free place of the table */
  PyCFunction function;          /* a definition may be freed and its place taken by another one's */
  uint32_t region;               /* 0: not recorded */
  uint32_t open;                 /* calls that have not returned, of all threads */
  uint64_t base;                 /* code_base of the recording that decided */
} CFunction;

/* NULL where `callable` is not a C function. Valid until the next call. */
CFunction* c_function_slowly(PyObject* callable, const PyMethodDef* definition);
extern CFunction* c_function_table;
extern size_t c_function_mask;

static inline const PyMethodDef* definition_of(PyObject* callable) {
  if (PyCFunction_CheckExact(callable) || PyCMethod_CheckExact(callable)) return ((PyCFunctionObject*)callable)->m_ml;
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) return ((PyMethodDescrObject*)callable)->d_method;
  return NULL;
}

static inline CFunction* c_function(PyObject* callable) {
  const PyMethodDef* definition = definition_of(callable);
  if (!definition) return NULL;
  if (__builtin_expect(c_function_table != NULL, 1)) {
    CFunction* first = &c_function_table[((uintptr_t)definition >> 4) & c_function_mask];
    if (__builtin_expect(
            first->definition == definition && first->function == definition->ml_meth && first->base == code_base, 1))
      return first;
  }
  return c_function_slowly(callable, definition);
}

/* Returns whether the call is recorded; then c_function_end must follow. */
static inline int c_function_begin(PyObject* callable) {
  CFunction* f = c_function(callable);
  if (!f || !f->region) return 0;
  if (is_throttled(f->region) && f->open == 0) {
    strobe_note_throttled(f->region);
    f->region = 0;
    return 0;
  }
  f->open++;
  strobe_enter(f->region);
  return 1;
}

static inline void c_function_end(PyObject* callable) {
  CFunction* f = c_function(callable);
  if (!f || !f->open) return; /* began before the recording */
  f->open--;
  strobe_leave(f->region);
}
