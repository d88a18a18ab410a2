// library.h - the CUPTI that this process uses: found, opened, asked what it can. Nothing of it is linked, and nothing
// is called unless the program has loaded the CUDA driver itself.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "adapters/cupti/functions.h"

namespace strobe::cupti {

struct Library : Functions {             // a function that the library lacks is NULL
  void* handle = nullptr;                // never closed: its threads may run
  std::string path;                      // the file; empty without a library
  uint32_t version = 0;                  // as from cuptiGetVersion: 18 (CUDA 11.8) to 28, then 130001 (13.0) and so on
  int cuda_major = 0;                    // of CUPTI: 11, 12, 13
  int driver = 0;                        // as from cuDriverGetVersion: 13000
  std::string failure;                   // why there is none, one sentence; empty with a library
  std::vector<std::string> refused;      // what was found and not taken: "PATH: why"
  std::array<uint32_t, kKinds> sizes{};  // bytes of a record, by kind; 0: unknown

  explicit operator bool() const { return handle != nullptr; }
  // "CUDA 13.0", or what is known of it.
  std::string release() const;
  // What one of its results means, in its own words where it has some.
  std::string text_of(Result result) const;
};

// The environment: a file that is to be taken, and files to try, with colons, that `strobe run` has found.
constexpr const char kFileVariable[] = "STROBE_CUPTI";
constexpr const char kCandidatesVariable[] = "STROBE_CUPTI_CANDIDATES";

// Find and open it. From any thread; slow (10 ms).
Library open_library();

}  // namespace strobe::cupti
