/* loop_events.c - lines of loops on CPython 3.12 and later: LINE events of the code that holds them. A line that comes
 * too often is switched off for itself, and those around it go on. */
#include "python/loops/loop_activations.h"

#if PY_VERSION_HEX >= 0x030C0000
#include "include/strobe.h"
#include "python/calls/innermost_frame.h"

void loops_reset(void) {}

void loops_begin(LoopCode* code) {
  if (!loops_watched()) return;
  void* frame = innermost_frame(PyThreadState_Get());
  loops_pop(frame);
  loops_push(code, frame);
}

void loops_end(LoopCode* code) {
  (void)code;
  if (loops_watched()) loops_pop(innermost_frame(PyThreadState_Get()));
}

/* Whether this line alone costs too much; the loop that begins with it is not followed any more. */
static int is_hot(Activation* at, uint32_t offset) {
  LoopCode* code = at->code;
  const int64_t cost_ns = (int64_t)code->hits[offset / 2] * EVENT_NS;
  if (cost_ns < MOST_AT_ONCE_NS / 4 || cost_ns < code->watched_ns / SHARE) return 0;
  for (size_t i = 0; i < code->count; i++) {
    if (code->loops[i].at.begin != offset) continue;
    for (size_t k = 0; k < at->depth; k++)
      if (at->open[k].loop == &code->loops[i]) loops_leave(at, k);
    code->loops[i].gone = 1;
  }
  code->spent_ns -= cost_ns;
  return 1;
}

int loops_line(LoopCode* code) {
  if (!loops_watched()) return 0;
  void* frame = innermost_frame(PyThreadState_Get());
  Activation* at = loops_find(frame);
  if (at && at->code != code) { /* one at the same place whose end was not reported */
    loops_pop(frame);
    at = NULL;
  }
  if (!at && (at = loops_push(code, frame))) at->last = 0; /* it was running when the recording began */
  if (!at || !code->hits) return 0;
  const int lasti = PyFrame_GetLasti(PyEval_GetFrame());
  if (lasti < 0) return 0;
  const uint32_t offset = (uint32_t)lasti;
  code->hits[offset / 2]++;
  if (loops_too_fast(at) && is_hot(at, offset)) return 1;
  loops_see(at, offset, strobe_ticks());
  return 0;
}
#endif
