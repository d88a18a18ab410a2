#include "python/recording/after_fork.h"

#if PY_VERSION_HEX < 0x030C0000
void after_fork_call(void (*start)(void)) { start(); }
#else
#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* 3.12 has it as a macro in its open headers, and as a function in those below */
#include <internal/pycore_ceval.h>
#undef Py_BUILD_CORE
#include "include/strobe.h"
#include "python/calls/innermost_frame.h"

/* The interpreter makes up to 100 pending calls in a row, of which each can be this one again: some 10 ms. */
enum { MOST_LOOKS = 100000, MOST_WAITING = 4 };

/* Guarded by the GIL, as all here. */
static void (*waiting[MOST_WAITING])(void);
static int waiting_count, queued;
static PyThreadState* forker; /* the thread that forked last, */
static void* forked_at;       /* the frame in which it called os.fork() */
static int looks;             /* it may never come back to that frame: an exception that goes on to its callers */

/* In the thread that forked, any other frame is that of a handler. Should another thread be here first, then the
 * program has several threads of its own, and is warned of them in any case. */
static int is_over(PyThreadState* tstate) {
  return tstate != forker || innermost_frame(tstate) == forked_at || ++looks >= MOST_LOOKS;
}

static void queue(void);

static int call_waiting(void* nothing) {
  (void)nothing;
  queued = 0;
  if (!is_over(PyThreadState_Get())) return queue(), 0;
  while (waiting_count) waiting[--waiting_count]();
  return 0;
}

/* Not the main thread's queue, which Py_AddPendingCall fills: that thread may be in C code for as long as it lives. */
static void queue(void) {
  if (queued) return;
  queued = _PyEval_AddPendingCall(PyInterpreterState_Main(), call_waiting, NULL, 0) == 0 ||
           Py_AddPendingCall(call_waiting, NULL) == 0;
  if (!queued) strobe_count("not_resumed_after_fork", 1), waiting_count = 0;
}

void after_fork_call(void (*start)(void)) {
  forker = PyThreadState_Get();
  forked_at = innermost_frame(forker);
  looks = 0;
  int n = 0;
  while (n < waiting_count && waiting[n] != start) n++;
  if (n == waiting_count && n < MOST_WAITING) waiting[waiting_count++] = start;
  queue();
}
#endif
