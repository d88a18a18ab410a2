/* code_regions.h - which Python code is recorded, decided once per code object and remembered in its co_extra slot, so
 * that the decision lives and dies with the code object. Plain C: pycore headers of CPython 3.11 do not compile as C++.
 */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "python/calls/code_extra.h"
#include "python/calls/loops_of_code.h"
#include "python/calls/module_calls.h"

/* What is known of a code object: one of these, or CODE_FIRST + region. Its slot holds code_base + that. */
enum { CODE_SKIP = 1, CODE_IMPORT = 2, CODE_MODULE = 3, CODE_FIRST = 4 };

typedef struct {
  PyObject* excluded; /* prefixes of file names that are not recorded unless a rule includes them */
  PyObject* rules;    /* see filter.h */
  int strings;        /* record code compiled from "<string>" (the program came from -c) */
  int imports;        /* record what runs because of an import */
} CodeOptions;
/* Copies of the texts of a sequence instead of those that are there. 0, or -1 with a Python exception set. */
int take_texts(PyObject* list, char*** texts, size_t* count);
/* Decisions of an earlier recording count no more. Returns 0, or -1 with a Python exception set. */
int code_regions_setup(const CodeOptions* options);
extern Py_ssize_t code_extra_index;
extern uint64_t code_base;           /* of this recording; the lower 32 bits are 0 */
extern const uint8_t* code_throttle; /* strobe_throttle_flags() */
enum { THROTTLED_REGIONS = 1 << 16 };

/* What `code` is. Its loops, as loops_of_code writes them, in `loops` of LOOPS_TEXT bytes: empty unless it is recorded.
 * For any interpreter. Never fails. */
uintptr_t code_region_decide(PyCodeObject* code, PyObject* globals, char* loops);
/* Decides at first sight. `globals` NULL: those of the running frame. Never fails. */
uintptr_t code_region_slowly(PyCodeObject* code, PyObject* globals);
/* The code is not recorded from now on, because it is called too often for what it does. */
void code_region_throttle(PyCodeObject* code, uint32_t region);

#ifndef __cplusplus
/* What is known of `code`. */
static inline uintptr_t code_region(PyCodeObject* code, PyObject* globals) {
  const uint64_t known = (uint64_t)extra_of(code, code_extra_index) - code_base;
  return __builtin_expect(known < (UINT64_C(1) << 32), 1) ? (uintptr_t)known : code_region_slowly(code, globals);
}
static inline int is_throttled(uint32_t region) {
  return __builtin_expect(region < THROTTLED_REGIONS && ((const volatile uint8_t*)code_throttle)[region], 0);
}
#endif

/* Start and stop of the mechanism that suits this interpreter: frame evaluation hook (3.11) or sys.monitoring (3.12 and
 * later). With `c_functions`, calls of C functions by recorded code, too; with `whole_stacks` (3.12 and later), each
 * thread begins with the calls that it is in. 0, or -1 with a Python exception set. */
int python_calls_start(int c_functions, int whole_stacks);
void python_calls_stop(void);
/* The budget allows no recording of functions any more: the mechanism ends if it costs something nevertheless. */
void python_calls_give_up(void);
/* What a thread is in; for programs that go on with another stack on the same thread. Returns what it was in. */
typedef struct {
  int importing; /* depth of import machinery: code that an import runs is not recorded */
  ModuleCalls modules;
} CallState;
CallState python_calls_switch(CallState next);
