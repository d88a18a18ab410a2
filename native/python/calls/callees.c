#include "python/calls/callees.h"

#include <stdlib.h>
#include <string.h>

#include "python/calls/frame_layout.h"
#include "python/calls/loops_of_code.h"

enum { SLOTS = 1 << 14, MOST_BYTES = 8 << 20 };

/* By address of the code object; published with its kinds complete, and never freed: the sampler may read them. */
typedef struct {
  uint32_t units;
  unsigned char kinds[];
} Kinds;
static struct {
  uintptr_t code;
  Kinds* kinds;
} slots[SLOTS];
static size_t bytes;

/* Functions of Python that work on its own objects; and methods of these, or functions of its modules, that neither an
 * array nor a table of a package has. */
static const char* const functions[] = {"sorted",    "sum",  "min",       "max",      "any", "all",
                                        "list",      "dict", "set",       "tuple",    "str", "int",
                                        "frozenset", "zip",  "enumerate", "reversed", "map", "filter"};
static const char* const methods[] = {"popleft",     "appendleft",   "setdefault", "heappush",    "heappop",
                                      "heapify",     "nlargest",     "nsmallest",  "deepcopy",    "bisect",
                                      "bisect_left", "bisect_right", "insort",     "most_common", "splitlines"};
/* C code of the standard library that computes on bytes. */
static const char* const others[] = {
    "compress", "decompress",  "crc32",  "adler32", "digest",      "hexdigest",     "md5",
    "sha1",     "sha224",      "sha256", "sha384",  "sha512",      "blake2b",       "blake2s",
    "sha3_256", "pbkdf2_hmac", "scrypt", "execute", "executemany", "executescript", "fetchall",
    "fetchone", "commit",      "read",   "write",   "readline",    "readlines",
};

static int is_one_of(const char* name, const char* const* names, size_t count) {
  for (size_t i = 0; name && i < count; i++)
    if (strcmp(name, names[i]) == 0) return 1;
  return 0;
}

static unsigned char kind_of(const char* name, int attribute) {
  if (is_one_of(name, others, sizeof others / sizeof *others)) return CALLEE_OTHER;
  const int own = attribute ? is_one_of(name, methods, sizeof methods / sizeof *methods)
                            : is_one_of(name, functions, sizeof functions / sizeof *functions);
  return own ? CALLEE_OWN : CALLEE_UNKNOWN;
}

static void set_kind(void* argument, const CodeCall* call) {
  Kinds* kinds = argument;
  const unsigned char kind = call->contains ? CALLEE_OWN : kind_of(call->name, call->attribute);
  if (call->end <= kinds->units) memset(kinds->kinds + call->begin, kind, call->end - call->begin);
}

void callees_add(PyCodeObject* code) {
  const uint32_t units = (uint32_t)Py_SIZE(code);
  if (bytes + units > MOST_BYTES) return;
  Kinds* kinds = calloc(1, sizeof *kinds + units);
  if (!kinds) return;
  kinds->units = units;
  calls_in_code(code, set_kind, kinds);
  const uintptr_t at = (uintptr_t)code;
  for (size_t i = (at >> 4) % SLOTS, looked = 0; looked < 16; i = (i + 1) % SLOTS, looked++) {
    if (slots[i].code && slots[i].code != at) continue;
    if (slots[i].code && slots[i].kinds->units == units) { /* it was learnt in a recording before */
      memcpy(slots[i].kinds->kinds, kinds->kinds, units);
      break;
    }
    __atomic_store_n(&slots[i].kinds, kinds, __ATOMIC_RELEASE);
    __atomic_store_n(&slots[i].code, at, __ATOMIC_RELEASE);
    bytes += units;
    return;
  }
  free(kinds);
}

int callees_at(uintptr_t code, uint32_t unit) {
  for (size_t i = (code >> 4) % SLOTS, looked = 0; looked < 16; i = (i + 1) % SLOTS, looked++) {
    const uintptr_t at = __atomic_load_n(&slots[i].code, __ATOMIC_ACQUIRE);
    if (!at) break;
    if (at != code) continue;
    const Kinds* kinds = __atomic_load_n(&slots[i].kinds, __ATOMIC_ACQUIRE);
    return unit < kinds->units ? kinds->kinds[unit] : CALLEE_UNKNOWN;
  }
  return CALLEE_OF_UNKNOWN;
}
