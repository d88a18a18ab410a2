// later_calls.h - functions that came with MPI 4, in all objects that refer to them.
#pragma once
#include "adapters/mpi/library.h"

namespace strobe::mpi {

// Points the references of all loaded objects to MPI_LATER_CALLS at our wrappers, as far as `library` has the
// functions.
void redirect_later_calls(const Library& library);

void* later_wrapper(int call);  // wrappers.cpp

}  // namespace strobe::mpi
