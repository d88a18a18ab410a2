// standalone.h - recording of a process without Python.
#pragma once

namespace strobe::mpi {

// Starts the session that the environment describes (STROBE_SESSION, as src/strobe/record/config.py writes it), unless
// this process records already: a Python has started its session long before it calls MPI.
void start_standalone();

}  // namespace strobe::mpi
