/* after_fork.h - threads of ours rest while the process forks; this is how they go on in the parent. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* From a function of C that os.register_at_fork has as `after_in_parent`: have `start` called once the fork is over.
 * CPython 3.12 and later warn of a fork in a process of several threads, and count them when all handlers of the
 * program have run: there `start` is called when os.fork() has returned to the code that called it. On 3.11 at once.
 * `start` runs with the GIL, in whatever thread of the program; what it starts may run already, or be wanted no more:
 * it has to look. */
void after_fork_call(void (*start)(void));
