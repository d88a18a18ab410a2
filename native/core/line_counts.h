// line_counts.h - counters of source lines, in parts of the rings file, so that they survive a kill; and the rows of
// the side table `lines` that they become.
#pragma once
#include <stdint.h>
#include <string>

#include "core/clock.h"
#include "include/strobe.h"

namespace strobe {

constexpr uint32_t kLinesMagic = 0x314e494c;  // "LIN1": a slot of the rings file that holds counters of lines
static_assert(sizeof(strobe_line) == 32);

// Appends chunks of the side table `lines`: those of `count` counters that ever counted. `clock` is of the whole
// recording.
void append_lines(std::string& out, uint32_t location, const strobe_line* lines, uint64_t count,
                  const ClockLine& clock);

}  // namespace strobe
