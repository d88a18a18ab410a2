// calls.h - the functions of the runtime and the driver that are recorded.
#pragma once
#include <vector>

#include "adapters/cupti/functions.h"
#include "adapters/gpu/vendor.h"

namespace strobe::cupti {

using Calls = std::vector<gpu::Call>;  // by callback id

// Of the runtime or of the driver; asks the library for their names.
Calls chosen_calls(const Functions& call, Domain domain, gpu::Sink& sink);

}  // namespace strobe::cupti
