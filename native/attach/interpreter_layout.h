/* interpreter_layout.h - where a version of CPython keeps what is read of it from outside, as offsets in bytes.
 * Addresses in `frames` are those of one process, and filled in when that is known. */
#pragma once
#include "python/calls/frame_layout.h"

/* An offset that 3.13 and later publish in _Py_DebugOffsets at the beginning of _PyRuntime, and what it is there. */
struct published_offset {
  size_t at, value; /* `at`: of _PyRuntime */
  const char* name;
};

struct interpreter_layout {
  int minor; /* of 3.minor */
  struct frame_layout frames;
  size_t text_header_ascii, text_header; /* of a str of ASCII, and of any other: its characters follow */
  /* _PyRuntimeState, PyInterpreterState, PyThreadState */
  size_t main_interpreter;
  size_t gil;          /* 3.11: of the runtime; later: of the interpreter, which points to it */
  int gil_is_pointer;  /* ... */
  size_t modules;      /* of the interpreter: sys.modules */
  size_t thread_ident; /* as threading.get_ident() */
  /* dict, its keys, its values if they are apart */
  size_t dict_keys, dict_values;
  size_t keys_index_bytes, keys_kind, keys_count, keys_data; /* the second is log2 */
  size_t values_data;
  /* module, type, int */
  size_t module_dict;
  size_t type_flags, type_basic_bytes, type_keys;
  size_t int_tag, int_digits;
  struct published_offset published[40]; /* the last has no name */
};
