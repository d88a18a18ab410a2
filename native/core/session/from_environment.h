// from_environment.h - recording of a process without Python, with the settings that `strobe run` left in the
// environment.
#pragma once
#include <string>

namespace strobe {

// Start recording if the environment names a session that has this adapter ("" for any) and nothing is recorded yet.
// Returns whether this process is recorded. What goes wrong is one sentence on stderr.
bool start_from_environment(const char* adapter);

// The text of an option of `strobe run`, as the session in the environment has it; empty without one.
std::string session_option(const char* name);

// Whether this level of an adapter is asked for: --trace +cuda+memory. Taken from the session in the environment, or
// where the program records itself from STROBE_LEVELS.
bool session_asks(const char* adapter, const char* level);

}  // namespace strobe
