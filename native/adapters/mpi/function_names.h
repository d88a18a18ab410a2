// function_names.h - names of the functions in which addresses lie, from the symbol tables of the loaded objects.
#pragma once
#include <stdint.h>
#include <string>

namespace strobe::mpi {

struct Place {
  std::string function;  // empty where no table names it
  uint64_t offset = 0;   // from the start of the function, or of the object
  std::string object;    // file name without its folder
  std::string path;      // of that file
  uint64_t address = 0;  // in that file: from where the object is loaded
  const void* base = nullptr;
};

// Slow (it reads the object's file): for the first sight of an address only. dladdr alone would know exported functions
// only, of an executable usually none.
Place find_place(const void* address);
// "main+0x1f" of the place before a return address: a call may be the last instruction of its function.
std::string call_site(const Place& place);

}  // namespace strobe::mpi
