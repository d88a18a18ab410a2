/* toy.h - a vendor of GPUs that is none: its runtime, and what it tells the one tool that the variable TOY_TOOL names. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toy_record { /* a kernel that has run; its kind is 1. Times of CLOCK_MONOTONIC. */
  uint32_t kind, correlation, device, stream;
  const char* name;
  uint64_t start_ns, end_ns;
};
struct toy_tool {
  void (*called)(int begins, uint32_t correlation);
  uint8_t* (*request)(size_t* bytes);
  void (*complete)(uint8_t* buffer, size_t valid);
};

void toyInit(void);
void toyLaunch(const char* kernel, uint32_t stream, uint64_t ns);
void toyFlush(void); /* by the tool: buffers with records are complete */
void toy_tool_begin(struct toy_tool* tool); /* the tool's own */

#ifdef __cplusplus
}
#endif
