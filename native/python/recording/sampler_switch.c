#include "python/recording/sampler_switch.h"

#include "adapters/sampling/sampler.h"
#include "python/calls/frame_layout.h"
#include "python/recording/after_fork.h"

static double wanted; /* samples a second; 0: the sampler is not to run */
static int forking;   /* threads that are about to fork */

static int start(void) {
  struct frame_layout layout;
  void* interpreter = frame_layout_fill(&layout);
  return strobe_sampler_start(&layout, interpreter, wanted);
}

/* The sampler never takes the GIL, but may wait for the disk. */
static void stop(int goes_on) {
  PyThreadState* saved = PyEval_SaveThread();
  strobe_sampler_stop(goes_on);
  PyEval_RestoreThread(saved);
}

static void go_on(void) {
  if (wanted && !forking && start() != 0) strobe_count("not_resumed_after_fork", 1);
}

int sampling_start(double samples_per_s) {
  wanted = samples_per_s;
  const int error = forking ? 0 : start();
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
  go_on();
}
