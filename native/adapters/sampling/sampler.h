// sampler.h - what every Python thread is doing, at a fixed rate: a thread of our own that never takes the GIL, stops
// nobody, and reads the interpreter's structures as foreign memory. Its states are explained in docs/decisions/0012.
#pragma once
#include "include/strobe.h"
#include "python/calls/frame_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

// `interpreter`: whose threads. `delay_ms`: before the first look. 0, or an errno value. Does nothing if it runs.
STROBE_API int strobe_sampler_start(const struct frame_layout* layout, void* interpreter, double samples_per_s,
                                    unsigned delay_ms);
// `goes_on`: it will be started again soon, and the threads' time until then is to be part of their next sample.
STROBE_API void strobe_sampler_stop(int goes_on);

#ifdef __cplusplus
}
#endif
