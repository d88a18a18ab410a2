// collector.h - a thread of our own that makes rows of samples of what the program's threads have noted.
#pragma once

namespace strobe::threads {

// False: the thread could not be started.
bool start_collector();
// Makes rows of everything until now. Nothing is collected afterwards.
void stop_collector();

}  // namespace strobe::threads
