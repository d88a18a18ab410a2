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
/* The slot's value for `code`; classifies it at first sight. Never fails. */
uintptr_t code_region(PyCodeObject* code);

/* Start and stop of the mechanism that suits this interpreter: frame evaluation hook (3.11) or sys.monitoring (3.12 and
 * later). 0, or -1 with a Python exception set. */
int python_calls_start(void);
void python_calls_stop(void);

#ifdef __cplusplus
}
#endif
