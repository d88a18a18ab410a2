/* lines_events.h - what monitoring.c reports to lines_events.c (CPython 3.12 and later). */
#pragma once
#include "python/lines/lines.h"

/* Registers for LINE events. 0, or -1 with a Python exception set. */
int lines_events_start(PyObject* monitoring_module, int tool_id);
/* A chosen function begins; with `goes_on` where it rested, at the instruction `offset`. */
void lines_begin(LineCode* code, PyObject* py_code, PyObject* offset, int goes_on);
/* It ends or rests. */
void lines_end(LineCode* code);
/* Asks for the LINE events of a code object. 0, or -1 with a Python exception set. */
int lines_watch(PyObject* code);
