/* compiled_functions.c - the hooks of -finstrument-functions, linked into every executable and library that `strobe cc`
 * builds.
 *
 * They are hidden: in a Python the C library's empty hooks would be found first. They need no library of ours: a
 * program so built runs anywhere, and finds the core only where `strobe run` started it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/strobe_functions.h"

#define PLAIN __attribute__((no_instrument_function))
#define HIDDEN __attribute__((no_instrument_function, visibility("hidden")))

static const struct strobe_functions nothing = {0, 0, 0, 0};
static const struct strobe_functions* found = &nothing;
static int looked; /* 0 no, 1 somebody does, 2 yes */

/* The line `library=` of the session is the path of the core. */
PLAIN static const struct strobe_functions* look(void) {
  const char *line = getenv("STROBE_SESSION"), *disabled = getenv("STROBE_DISABLE");
  char path[4096];
  if (!line || (disabled && *disabled && strcmp(disabled, "0") != 0)) return 0;
  while (line && strncmp(line, "library=", 8) != 0) {
    line = strchr(line, '\n');
    if (line) line++;
  }
  if (!line) return 0;
  line += 8;
  size_t n = strcspn(line, "\n");
  if (n == 0 || n >= sizeof path) return 0;
  memcpy(path, line, n);
  path[n] = 0;
  void* core = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!core) return 0;
  const struct strobe_functions* (*begin)(void);
  *(void**)&begin = dlsym(core, "strobe_functions_begin");
  const struct strobe_functions* functions = begin ? begin() : 0;
  return functions && functions->version == 1 ? functions : 0;
}

/* What the frame pointer of the caller of a hook is: `strobe cc` builds with frame pointers. A hook that is the last
 * jump of its function sees that of the function around it. */
#define CALLERS_FRAME (*(uintptr_t*)__builtin_frame_address(0))

PLAIN static void look_once(void) {
  int no = 0, error = errno;
  if (!__atomic_compare_exchange_n(&looked, &no, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
  const struct strobe_functions* functions = look();
  if (functions) __atomic_store_n(&found, functions, __ATOMIC_RELEASE);
  __atomic_store_n(&looked, 2, __ATOMIC_RELEASE);
  errno = error;
}

HIDDEN void __cyg_profile_func_enter(void* function, void* call_site) {
  if (__builtin_expect(__atomic_load_n(&looked, __ATOMIC_RELAXED) == 0, 0)) look_once();
  const struct strobe_functions* to = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (to->enter) to->enter(function, call_site, CALLERS_FRAME);
}

HIDDEN void __cyg_profile_func_exit(void* function, void* call_site) {
  (void)call_site;
  const struct strobe_functions* to = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (to->leave) to->leave(function, CALLERS_FRAME);
}

__attribute__((destructor)) PLAIN static void gone(void) {
  const struct strobe_functions* to = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (to->unloaded) to->unloaded((void*)&look);
}
