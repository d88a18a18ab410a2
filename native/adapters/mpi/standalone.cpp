#include "adapters/mpi/standalone.h"

#include "include/strobe.h"

namespace strobe::mpi {

// The library is preloaded only where MPI calls are to be recorded.
void start_standalone() { strobe_begin(); }

}  // namespace strobe::mpi
