// requests.h - requests of a service as spans beside the threads, which overlap in a thread of an event loop.
#pragma once
#include "include/strobe.h"

extern "C" {
// A request that is over: its span with its row, and behind it the spans of its parts, which lie in it one after the
// other; `rows` are theirs, one each. What could not be recorded is counted.
STROBE_API void strobe_request(const strobe_stream_span* spans, size_t count, const strobe_stream_span* rows);
}
