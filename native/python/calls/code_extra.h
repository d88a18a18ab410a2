// A slot of our own in every code object: what CPython calls it, by version.
#pragma once
#include <Python.h>
#include <stdint.h>

#if PY_VERSION_HEX >= 0x030C0000
#define request_index PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_index _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

#ifndef __cplusplus
/* What is in the slot; 0: nothing yet. */
static inline uintptr_t extra_of(PyCodeObject* code, Py_ssize_t index) {
#if PY_VERSION_HEX < 0x030E0000
  /* _PyCodeObjectExtra of Objects/codeobject.c, the same from 3.6 to 3.13: spares a checked call per event. */
  const struct {
    Py_ssize_t size;
    void* values[1];
  }* extra = code->co_extra;
  return __builtin_expect(extra != NULL && extra->size > index, 1) ? (uintptr_t)extra->values[index] : 0;
#else
  void* extra = NULL;
  get_extra((PyObject*)code, index, &extra);
  return (uintptr_t)extra;
#endif
}
#endif
