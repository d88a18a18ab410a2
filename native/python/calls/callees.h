/* callees.h - what the calls in recorded functions call, by name: for the sampler, which sees that a thread is in C
 * code and not in which. `list.sort` and `in` are the interpreter's own work, `zlib.compress` and NumPy are not. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Learns a function. Needs the GIL. */
void callees_add(PyCodeObject* code);
/* What C code an instruction runs (frame_layout.h), by its offset in code units. Needs no GIL; `code` is never
 * followed.
 */
int callees_at(uintptr_t code, uint32_t unit);
