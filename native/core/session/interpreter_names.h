// interpreter_names.h - names of threads that run an interpreter of Python beside the main one.
#pragma once
#include "include/strobe.h"

#ifdef __cplusplus
extern "C" {
#endif

// The calling thread's name ends with this number from now on, unless it is the main thread.
STROBE_API void strobe_name_interpreter(int64_t interpreter);

#ifdef __cplusplus
}
#endif
