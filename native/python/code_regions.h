/* code_regions.h - which Python code is recorded, decided once per code object and remembered in its co_extra slot, so
 * that the decision lives and dies with the code object. Plain C: pycore headers of CPython 3.11 do not compile as C++.
 */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a code object's slot holds: one of these, or CODE_FIRST + region. */
enum { CODE_UNKNOWN = 0, CODE_SKIP = 1, CODE_IMPORT = 2, CODE_FIRST = 3 };

/* Prefixes of file names: excluded ones are not recorded unless a longer included one matches. `strings`: record code
 * compiled from "<string>" (the program came from -c). Returns 0, or -1 with a Python exception set. */
int code_regions_setup(PyObject* excluded, PyObject* included, int strings);
extern Py_ssize_t code_extra_index;
/* Decides at first sight. Never fails. */
uintptr_t code_region_slowly(PyCodeObject* code);

#ifndef __cplusplus
/* The slot's value for `code`. */
static inline uintptr_t code_region(PyCodeObject* code) {
#if PY_VERSION_HEX < 0x030E0000
  /* _PyCodeObjectExtra of Objects/codeobject.c, the same from 3.6 to 3.13: spares a checked call per event. */
  const struct {
    Py_ssize_t size;
    void* values[1];
  }* extra = code->co_extra;
  if (__builtin_expect(extra != NULL && extra->size > code_extra_index && extra->values[code_extra_index] != NULL, 1))
    return (uintptr_t)extra->values[code_extra_index];
#endif
  return code_region_slowly(code);
}
#endif

/* Start and stop of the mechanism that suits this interpreter: frame evaluation hook (3.11) or sys.monitoring (3.12 and
 * later). 0, or -1 with a Python exception set. */
int python_calls_start(void);
void python_calls_stop(void);

#ifdef __cplusplus
}
#endif
