#include "python/recording/sampler_switch.h"

#include "adapters/sampling/sampler.h"
#include "python/calls/callees.h"
#include "python/calls/frame_layout.h"
#include "python/loops/loops.h"
#include "python/recording/after_fork.h"

static double wanted; /* samples a second; 0: the sampler is not to run */
static int forking;   /* threads that are about to fork */

/* Many a forked child only starts another program: a look would make it a process of the trace. */
enum { CHILD_DELAY_MS = 100 };

static int start(unsigned delay_ms) {
  struct frame_layout layout;
  void* interpreter = frame_layout_fill(&layout);
  layout.callee = callees_at;
#if PY_VERSION_HEX < 0x030C0000
  layout.look = loops_look;
#endif
  return strobe_sampler_start(&layout, interpreter, wanted, delay_ms);
}

/* The sampler never takes the GIL, but may wait for the disk. */
static void stop(int goes_on) {
  PyThreadState* saved = PyEval_SaveThread();
  strobe_sampler_stop(goes_on);
  PyEval_RestoreThread(saved);
}

static void go_on_after(unsigned delay_ms) {
  if (wanted && !forking && start(delay_ms) != 0) strobe_count("not_resumed_after_fork", 1);
}

static void go_on(void) { go_on_after(0); }

int sampling_start(double samples_per_s) {
  wanted = samples_per_s;
  const int error = forking ? 0 : start(0);
  if (error) wanted = 0;
  return error;
}

void sampling_stop(void) {
  wanted = 0;
  stop(0);
}

void sampling_before_fork(void) {
  forking++;
  stop(1);
}

void sampling_after_fork(void) {
  if (forking) forking--;
  if (wanted && !forking) after_fork_call(go_on);
}

void sampling_forked(void) {
  forking = 0; /* the threads that were about to fork as well are not here */
  go_on_after(CHILD_DELAY_MS);
}
