// strobe_functions.h - the interface between a program built with `strobe cc` and the core.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A function begins or ends: its address, where it was called, and its frame (what its frame pointer is). Found by name
// in libstrobe when the first function of a module runs in a recorded process.
struct strobe_functions {
  uint32_t version;  // 1
  void (*enter)(void* function, void* call_site, uintptr_t frame);
  void (*leave)(void* function, uintptr_t frame);
  void (*unloaded)(void* inside);  // the module that holds this address goes away
};
// Starts recording where the process is to be recorded and is not yet; NULL where it is not.
__attribute__((visibility("default"))) const struct strobe_functions* strobe_functions_begin(void);

#ifdef __cplusplus
}
#endif
