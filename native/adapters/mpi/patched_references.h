// patched_references.h - calls that a preloaded definition does not catch: functions that came with MPI 4, and the
// Fortran bindings of Open MPI.
#pragma once
#include "adapters/mpi/mpi_library.h"

namespace strobe::mpi {

// Points references of the loaded objects at our wrappers, as far as `library` has the functions: those to
// MPI_LATER_CALLS in the program and its libraries, those to PMPI_* in Open MPI's Fortran bindings.
void redirect_references(const Library& library);

void* wrapper_of(int call);  // wrappers.cpp

}  // namespace strobe::mpi
