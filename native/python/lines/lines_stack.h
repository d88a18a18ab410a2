/* lines_stack.h - which chosen functions are open: a stack of activations for each stack of frames, that is for each
 * thread, and for each greenlet.
 *
 * An activation is known by its frame. What was not reported (a function that was running when counting began, a
 * greenlet that is not followed) is found by the next line that it runs, and leaves nothing behind. All of these run
 * with the GIL. */
#pragma once
#include "python/lines/lines.h"

struct LineStack {
  uint32_t start;      /* the lines_start that its activations belong to */
  uint64_t away, left; /* ticks while the thread ran other greenlets; when it began to */
  int traced;          /* when it was left */
  size_t depth, room;
  LineActivation activations[];
};
/* Of this thread. NULL: nothing was open yet. */
extern __thread LineStack* lines_stack __attribute__((tls_model("initial-exec")));

/* The stack of this thread, or NULL. What was open in an earlier recording window does not count. */
static inline LineStack* lines_stack_here(void) {
  LineStack* stack = lines_stack;
  if (stack && stack->start != lines_starts) stack->start = lines_starts, stack->depth = 0;
  return stack;
}

/* An execution begins. NULL: no memory. */
LineActivation* lines_push(LineCode* code, void* frame);
/* The open one of this frame, or NULL; those above it have ended. Mostly it is the innermost one. */
LineActivation* lines_find_below(LineStack* stack, LineCode* code, void* frame);
static inline LineActivation* lines_find(LineCode* code, void* frame) {
  LineStack* stack = lines_stack_here();
  if (!stack || stack->depth == 0) return NULL;
  LineActivation* top = &stack->activations[stack->depth - 1];
  return __builtin_expect(top->frame == frame && top->code == code, 1) ? top : lines_find_below(stack, code, frame);
}
/* It ends, or rests: its time goes to its line. Does nothing where it is not open. */
void lines_pop(LineCode* code, void* frame);
/* All that are open on the stack of this thread, outermost first. */
const LineActivation* lines_activations(size_t* count);
/* Ticks of this stack: it has none while the thread runs another greenlet. */
static inline uint64_t lines_ticks(void) { return strobe_ticks() - (lines_stack ? lines_stack->away : 0); }
