#include "code_regions.h"

#include <string.h>

#include "include/strobe.h"

#if PY_VERSION_HEX >= 0x030C0000
#define request_index PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_index _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

typedef struct {
  char* text;
  size_t size;
  int included;
} Prefix;

static Prefix* prefixes;
static size_t prefix_count;
static int record_strings;
Py_ssize_t code_extra_index = -1;

static int add_prefixes(PyObject* list, int included) {
  Py_ssize_t n = PySequence_Size(list);
  if (n < 0) return -1;
  Prefix* grown = PyMem_RawRealloc(prefixes, (prefix_count + (size_t)n + 1) * sizeof(Prefix));
  if (!grown) return PyErr_NoMemory(), -1;
  prefixes = grown;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PySequence_GetItem(list, i);
    if (!item) return -1;
    const char* text = PyUnicode_AsUTF8(item);
    if (!text) return Py_DECREF(item), -1;
    prefixes[prefix_count].text = strdup(text);
    prefixes[prefix_count].size = strlen(text);
    prefixes[prefix_count++].included = included;
    Py_DECREF(item);
  }
  return 0;
}

int code_regions_setup(PyObject* excluded, PyObject* included, int strings) {
  for (size_t i = 0; i < prefix_count; i++) free(prefixes[i].text);
  prefix_count = 0;
  record_strings = strings;
  if (code_extra_index < 0) code_extra_index = request_index(NULL);
  if (code_extra_index < 0) {
    PyErr_SetString(PyExc_RuntimeError, "the interpreter has no co_extra slot left");
    return -1;
  }
  return add_prefixes(excluded, 0) || add_prefixes(included, 1) ? -1 : 0;
}

static int recorded_file(const char* file) {
  /* "<frozen ...>", "<attrs generated ...>", "<__array_function__ internals>": machinery, not the user's code. */
  if (file[0] == '<') return record_strings && strcmp(file, "<string>") == 0;
  size_t longest = 0;
  int recorded = 1;
  for (size_t i = 0; i < prefix_count; i++)
    if (prefixes[i].size > longest && strncmp(file, prefixes[i].text, prefixes[i].size) == 0) {
      longest = prefixes[i].size;
      recorded = prefixes[i].included;
    }
  return recorded;
}

static uintptr_t classify(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
  uintptr_t value = CODE_SKIP;
  if (!name) {
    PyErr_Clear(); /* a name that is no UTF-8 */
  } else if (strcmp(file, "<frozen importlib._bootstrap>") == 0 && strcmp(name, "_find_and_load") == 0) {
    value = CODE_IMPORT;
  } else if (recorded_file(file)) {
    strobe_region_info info = {0};
    info.name = name;
    info.file = file;
    info.line = (uint32_t)code->co_firstlineno;
    info.paradigm = STROBE_PYTHON;
    info.role = STROBE_ROLE_FUNCTION;
    value = CODE_FIRST + (uintptr_t)strobe_region(&info);
  }
  if (set_extra((PyObject*)code, code_extra_index, (void*)value) != 0) PyErr_Clear();
  return value;
}

uintptr_t code_region_slowly(PyCodeObject* code) {
  void* extra = NULL;
  get_extra((PyObject*)code, code_extra_index, &extra);
  if (__builtin_expect(extra != NULL, 1)) return (uintptr_t)extra;
  /* Classifying allocates and may meet an exception that is already set (a generator resumed by throw). */
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  uintptr_t region = classify(code);
  PyErr_Restore(type, value, trace);
  return region;
}
