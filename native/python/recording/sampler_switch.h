/* sampler_switch.h - when the sampler (adapters/sampler.h) runs in a Python program: while it is wanted, and not while
 * the process forks. All of these need the GIL. */
#pragma once

/* 0, or an errno value. */
int sampling_start(double samples_per_s);
void sampling_stop(void);

/* For os.register_at_fork. */
void sampling_before_fork(void);
void sampling_after_fork(void);
void sampling_forked(void);
