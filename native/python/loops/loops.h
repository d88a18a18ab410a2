/* loops.h - loops of Python whose usual iteration calls nothing that is recorded: NumPy, files, locks, sleep. Each of
 * their iterations becomes a span, so that such a loop is found, counted and cut like any other. Where a loop calls
 * nothing but in a loop within it that only repeats something, or goes through the item, the beginning of each of its
 * iterations becomes one.
 *
 * Lines of the code that holds a loop are followed in the main thread, as python/lines follows those of chosen
 * functions: on 3.11 by a trace function that is in for that frame alone, later by LINE events of that code. Lines that
 * come too fast are left alone: what following costs stays below a fiftieth of the code's time. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The calling thread's loops are watched from now on. What that costs is counted as so many more of `calls`. */
void loops_start(uint64_t* calls, double call_ns);
void loops_stop(void);
/* `code` is recorded as this region from now on. `text`: what its loops call, as loops_of_code writes it. */
void loops_add(PyCodeObject* code, uint32_t region, const char* text);

typedef struct LoopCode LoopCode;
enum { LOOP_REGIONS = 1 << 16 };
extern LoopCode* loop_codes[LOOP_REGIONS];
/* NULL: nothing of it is watched. */
static inline LoopCode* loops_of(uint32_t region) { return region < LOOP_REGIONS ? loop_codes[region] : NULL; }

#if PY_VERSION_HEX < 0x030C0000
struct _PyInterpreterFrame;
typedef PyObject* (*Evaluate)(PyThreadState*, struct _PyInterpreterFrame*, int);
/* The trace function; what else runs while it is in is evaluated beside it. */
int loops_trace(PyObject* self, PyFrameObject* frame, int what, PyObject* argument);
PyObject* loops_beside(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, Evaluate evaluate);
/* Runs a frame of `code`. */
PyObject* loops_evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing, LoopCode* code);
/* For the sampler's thread, at each look: code that was too fast is followed again. Needs no GIL. */
void loops_look(void);
#else
/* A call of `code` begins, and ends. */
void loops_begin(LoopCode* code);
void loops_end(LoopCode* code);
/* One of its lines begins. Returns whether it comes too often to be followed. */
int loops_line(LoopCode* code);
#endif
