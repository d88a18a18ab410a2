/* lines_stack.h - which chosen functions are open: a stack of activations for each stack of frames, that is for each
 * thread, and for each greenlet.
 *
 * An activation is known by its frame. What was not reported (a function that was running when counting began, a
 * greenlet that is not followed) is found by the next line that it runs, and leaves nothing behind. All of these run
 * with the GIL. */
#pragma once
#include "python/lines/lines.h"

/* An execution begins. NULL: no memory. */
LineActivation* lines_push(LineCode* code, void* frame);
/* The open one of this frame, or NULL; those above it have ended. */
LineActivation* lines_find(LineCode* code, void* frame);
/* It ends, or rests: its time goes to its line. Does nothing where it is not open. */
void lines_pop(LineCode* code, void* frame);
/* All that are open on the stack of this thread, outermost first. */
const LineActivation* lines_activations(size_t* count);
/* Ticks of this stack: it has none while the thread runs another greenlet. */
uint64_t lines_ticks(void);
