/* filter.h - rules about which functions are recorded: --include, --exclude, and Score-P's filter files. They are
 * asked once per code object, never per call. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What a rule's pattern is matched against (record/options/filters.py has the same numbers). */
enum {
  RULE_PATH = 0,   /* the file: a wildcard pattern, or a file or folder by its absolute path */
  RULE_NAME = 1,   /* "module.qualified_name", or any dotted name above it */
  RULE_FILE = 2,   /* Score-P: the file */
  RULE_REGION = 3, /* Score-P: "module:qualified_name", the qualified name, or the last name */
};

/* `rules`: a sequence of (kind, included, pattern). Returns 0, or -1 with a Python exception set. */
int filter_setup(PyObject* rules);
/* Whether the function is recorded, where `recorded` is what holds without rules. `file` may be NULL: a C function. */
int filter_allows(const char* file, const char* module, const char* name, int recorded);
