// recover_process.h - completes the block file of a process that ended without closing it.
#pragma once
#include <stdint.h>
#include <string>

namespace strobe {

// Also removes the rings of any process that ended. Returns records recovered; throws as ProcessFile does.
uint64_t recover_process(const std::string& blocks_path, const std::string& rings_path);

}  // namespace strobe
