/* lines_frames.h - what frame_hook.c asks of lines_frames.c (CPython 3.11). */
#pragma once
#include "python/lines/lines.h"

/* Evaluates a frame by `evaluate`, and counts its lines if its function was chosen. */
PyObject* lines_evaluate(PyThreadState* tstate, struct _PyInterpreterFrame* frame, int throwing,
                         _PyFrameEvalFunction evaluate);

/* The trace function of this thread is ours, or not; returns whether it was. One of the program stays. */
int lines_tracing(int on);
