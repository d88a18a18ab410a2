// probe.h - whether CUPTI works, tried out in a process that is there for nothing else
// (src/strobe/record/cupti_probe.py).
#pragma once
#include <string>

namespace strobe::cupti {

// The file that such a process writes into what it found; null: this is none.
const char* probe_file();
void probe(const char* file);

// What the probe found, where there is one: waits for it. Empty: nothing is wrong, or nobody knows.
std::string verdict();

}  // namespace strobe::cupti
