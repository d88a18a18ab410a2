// show_library.cpp - prints as JSON what open_library() finds, with the driver loaded that the first argument names;
// the other arguments are loaded before it looks, as a program that is linked with them does.
#include <dlfcn.h>
#include <stdio.h>

#include "adapters/cupti/library.h"

using namespace strobe::cupti;

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    if (*argv[i] && !dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) return fprintf(stderr, "%s\n", dlerror()), 2;
  const Library library = open_library();
  printf(
      "{\"path\": \"%s\", \"version\": %u, \"cuda_major\": %d, \"driver\": %d, \"release\": \"%s\", \"failure\": "
      "\"%s\"",
      library.path.c_str(), library.version, library.cuda_major, library.driver, library.release().c_str(),
      library.failure.c_str());
  printf(", \"refused\": [");
  for (size_t i = 0; i < library.refused.size(); i++) printf("%s\"%s\"", i ? ", " : "", library.refused[i].c_str());
  printf("], \"sizes\": [");
  for (uint32_t kind = 0; kind < kKinds; kind++) printf("%s%u", kind ? ", " : "", library.sizes[kind]);
  printf("], \"absent\": [");
  const char* comma = "";
#define SHOW(needed, member, name, parameters) \
  if (library && !library.member) printf("%s\"%s\"", comma, #name), comma = ", ";
  STROBE_CUPTI_FUNCTIONS(SHOW)
  const bool priority = library.sizes[kConcurrentKernel] >= STROBE_CUPTI_END(KernelRecord, priority);
  printf("], \"priority\": %s}\n", priority ? "true" : "false");
}
