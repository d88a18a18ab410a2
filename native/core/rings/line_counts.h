// line_counts.h - counters of source lines, in parts of the rings file, so that they survive a kill; and the rows of
// the side table `lines` that they become.
#pragma once
#include <stdint.h>
#include <atomic>
#include <string>

#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe {

constexpr uint32_t kLinesMagic = 0x324e494c;  // "LIN2": a slot of the rings file that holds counters of lines
static_assert(sizeof(strobe_line) == 48);
// Who knows which lines a thread is in.
inline std::atomic<strobe_open_lines> open_lines{nullptr};

// Appends chunks of the side table `lines`: those of `count` counters that ever counted. `clock` is of the whole
// recording.
void append_lines(std::string& out, uint32_t location, const strobe_line* lines, uint64_t count,
                  const ClockLine& clock);

}  // namespace strobe
