/* lines.h - hits and time of source lines, in chosen functions only.
 *
 * Both ways of hooking Python calls (frame_hook.c on 3.11, monitoring.c from 3.12 on) ask `lines_of` what a code object
 * is while `lines_running`; code that was not chosen pays for that question, and its lines for nothing. A line's time
 * is as line_profiler counts it: from its begin to the begin of the function's next line, with everything that it
 * calls. Time in which a generator rests is nobody's, and so is time in which the thread runs another greenlet. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "include/strobe.h"
#include "python/calls/code_extra.h"

/* Choose functions by patterns (fnmatch): `module.function`, `Class.method`, `*.py`; none: only those that
 * lines_add names only. Returns 0, or -1 with a Python exception set. */
int lines_start(PyObject* patterns);
/* No further line is counted; what was counted is in the files of the session. */
void lines_stop(void);
/* A session begins: functions that lines_add named before are forgotten. */
void lines_forget(void);
/* Choose this code object, now and at later starts of this session. Returns 0, or -1 with a Python exception set. */
int lines_add(PyObject* code);
extern int lines_running;
extern uint32_t lines_starts; /* how often lines_start was called */

/* What is open on one stack of frames of a thread. */
typedef struct LineStack LineStack;
/* The thread goes on with another greenlet: with what is open in there, NULL: nothing. Returns what was open in the one
 * that it leaves, for when it comes back. */
LineStack* lines_switch(LineStack* to);
/* Of a greenlet that has ended. */
void lines_stack_free(LineStack* stack);

#ifndef __cplusplus
/* A chosen function. Never freed: an execution of it may still hold it. */
typedef struct LineCode {
  char *file, *name;
  int function_line, first, count; /* lines [first, first + count) */
  strobe_line* lines;              /* NULL: no room */
  uint32_t epoch;                  /* in which `lines` count: a fork, or another recording, begins a new one */
  uint32_t start;                  /* when it was decided whether it is chosen */
  uint32_t named_in;               /* session in which the program named it */
  int chosen;
} LineCode;

/* The slot of a code object holds a LineCode, or, of one that was never chosen, the start that decided it: 2 N + 1. */
extern Py_ssize_t lines_extra_index;
LineCode* lines_of_slowly(PyCodeObject* code);
/* NULL: not chosen. Decides at first sight; never fails. */
static inline LineCode* lines_of(PyCodeObject* code) {
  const uintptr_t bits = extra_of(code, lines_extra_index);
  if (bits == (uintptr_t)lines_starts * 2 + 1) return NULL;
  LineCode* known = (LineCode*)bits;
  if (__builtin_expect(bits && !(bits & 1) && known->start == lines_starts, 1)) return known->chosen ? known : NULL;
  return lines_of_slowly(code);
}

/* One execution of a chosen function, or the part of it between two rests of a generator. */
typedef struct LineActivation {
  LineCode* code;
  void* frame;       /* whose lines these are: an address to compare */
  strobe_line* open; /* that is being executed; NULL: none yet */
  uint64_t since;    /* lines_ticks */
} LineActivation;

/* A line begins. */
void lines_line(LineActivation* activation, int line);
/* The function goes on in a line that had begun before. */
void lines_resume(LineActivation* activation, int line);
/* The function ends or rests. */
void lines_close(LineActivation* activation);
#endif
