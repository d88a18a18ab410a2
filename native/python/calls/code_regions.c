#include "python/calls/code_regions.h"

#include <pthread.h>
#include <string.h>

#include "include/strobe.h"
#include "python/calls/callees.h"
#include "python/calls/filter.h"
#include "python/loops/loops.h"

/* Interpreters with a GIL of their own decide while the main one may begin another recording. Nothing of Python runs
 * while it is held, which could wait for a GIL. */
static pthread_mutex_t deciding = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static void before_fork(void) { pthread_mutex_lock(&deciding); }
static void after_fork(void) { pthread_mutex_unlock(&deciding); }
static void prepare(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static char** prefixes; /* of files that are not recorded */
static size_t prefix_count;
static int record_strings, record_imports;
Py_ssize_t code_extra_index = -1;
uint64_t code_base = 0;
const uint8_t* code_throttle;

int take_texts(PyObject* list, char*** texts, size_t* count) {
  for (size_t i = 0; i < *count; i++) free((*texts)[i]);
  *count = 0;
  Py_ssize_t n = PySequence_Size(list);
  if (n < 0) return -1;
  char** room = realloc(*texts, ((size_t)n + 1) * sizeof(char*));
  if (!room) return PyErr_NoMemory(), -1;
  *texts = room;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PySequence_GetItem(list, i);
    const char* text = item ? PyUnicode_AsUTF8(item) : NULL;
    if (text) room[(*count)++] = strdup(text);
    Py_XDECREF(item);
    if (!text) return -1;
  }
  return 0;
}

int code_regions_setup(const CodeOptions* options) {
  record_strings = options->strings;
  record_imports = options->imports;
  code_throttle = strobe_throttle_flags();
  if (code_extra_index < 0) code_extra_index = request_index(NULL);
  if (code_extra_index < 0) {
    PyErr_SetString(PyExc_RuntimeError, "the interpreter has no co_extra slot left");
    return -1;
  }
  pthread_once(&prepared, prepare);
  pthread_mutex_lock(&deciding);
  code_base += UINT64_C(1) << 32;
  const int failed = take_texts(options->excluded, &prefixes, &prefix_count) || filter_setup(options->rules);
  pthread_mutex_unlock(&deciding);
  return failed ? -1 : 0;
}

static int of_the_user(const char* file) {
  int found = 0;
  pthread_mutex_lock(&deciding);
  for (size_t i = 0; i < prefix_count && !found; i++) found = strncmp(file, prefixes[i], strlen(prefixes[i])) == 0;
  pthread_mutex_unlock(&deciding);
  return !found;
}

static int is_allowed(const char* file, const char* module, const char* name, int recorded) {
  pthread_mutex_lock(&deciding);
  const int allowed = filter_allows(file, module, name, recorded);
  pthread_mutex_unlock(&deciding);
  return allowed;
}

/* Borrowed UTF-8 of a text among globals, or NULL. */
static const char* global_text(PyObject* globals, const char* name) {
  PyObject* value = globals && PyDict_Check(globals) ? PyDict_GetItemString(globals, name) : NULL;
  return value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;
}

/* Code that came from no file is the user's where its module is: what exec, dataclasses, attrs made there. */
static int recorded_without_file(const char* file, PyObject* globals, const char* module) {
  if (strncmp(file, "<frozen ", 8) == 0 || strncmp(file, "<__array_function__", 19) == 0) return 0;
  const char* home = global_text(globals, "__file__");
  if (home) return of_the_user(home);
  if (!globals || strcmp(module, "__main__") == 0) return record_strings || strcmp(file, "<string>") != 0;
  return module[0] == 0; /* exec with a namespace of its own */
}

/* Functions of PyTorch that are a part of every training step, and that its own ranges leave out: what the engine runs
 * in a backward pass until the last gradient has come (DDP waits for other ranks there), and the making of a loader's
 * iterator. They are recorded as what they are, whatever is filtered: structure/region_names.cpp knows their names. */
static const struct {
  const char *module, *function, *name;
  uint8_t role;
} of_torch[] = {
    {"torch.autograd.graph", "_engine_run_backward", "autograd::engine::run_backward", STROBE_ROLE_FUNCTION},
    {"torch.utils.data.dataloader", "DataLoader.__iter__", "DataLoader.__iter__", STROBE_ROLE_DATA},
};

static uint32_t region_of_torch(const char* module, const char* function) {
  if (strncmp(module, "torch.", 6) != 0) return 0;
  for (size_t i = 0; i < sizeof of_torch / sizeof *of_torch; i++) {
    if (strcmp(module, of_torch[i].module) != 0 || strcmp(function, of_torch[i].function) != 0) continue;
    strobe_region_info info = {0};
    info.name = of_torch[i].name;
    info.paradigm = STROBE_TORCH;
    info.role = of_torch[i].role;
    return strobe_region(&info);
  }
  return 0;
}

/* What calls a module: _wrapped_call_impl since PyTorch 2.0, which runs on all Pythons that have sys.monitoring. */
static int calls_module(const char* module, const char* function) {
  if (strcmp(module, "torch.nn.modules.module") != 0) return 0;
  return strcmp(function, "Module._wrapped_call_impl") == 0 ||
         (PY_VERSION_HEX < 0x030C0000 && strcmp(function, "Module._call_impl") == 0);
}

uintptr_t code_region_decide(PyCodeObject* code, PyObject* globals, char* loops) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
  uintptr_t known = CODE_SKIP;
  loops[0] = 0;
  if (!name) {
    PyErr_Clear(); /* a name that is not UTF-8 */
  } else if (strcmp(file, "<frozen importlib._bootstrap>") == 0 && strcmp(name, "_find_and_load") == 0) {
    known = record_imports ? CODE_SKIP : CODE_IMPORT;
  } else {
    const char* module = global_text(globals, "__name__");
    PyErr_Clear();
    if (!module) module = "";
    int recorded = file[0] == '<' ? recorded_without_file(file, globals, module) : of_the_user(file);
    PyErr_Clear();
    const uint32_t torch = region_of_torch(module, name);
    if (torch) {
      known = CODE_FIRST + (uintptr_t)torch;
    } else if (calls_module(module, name)) {
      known = CODE_MODULE;
    } else if (is_allowed(file, module, name, recorded)) {
      strobe_region_info info = {0};
      info.name = name;
      info.file = file;
      info.line = (uint32_t)code->co_firstlineno;
      info.paradigm = STROBE_PYTHON;
      info.role = STROBE_ROLE_FUNCTION;
      loops_of_code(code, loops, LOOPS_TEXT);
      info.loops = loops;
      known = CODE_FIRST + (uintptr_t)strobe_region(&info);
    }
  }
  return known;
}

static uintptr_t classify(PyCodeObject* code, PyObject* globals) {
  char loops[LOOPS_TEXT];
  const uintptr_t known = code_region_decide(code, globals, loops);
  if (known >= CODE_FIRST) {
    if (loops[0]) loops_add(code, (uint32_t)(known - CODE_FIRST), loops);
    callees_add(code);
  }
  if (set_extra((PyObject*)code, code_extra_index, (void*)(uintptr_t)(code_base + known)) != 0) PyErr_Clear();
  return known;
}

uintptr_t code_region_slowly(PyCodeObject* code, PyObject* globals) {
  /* Classifying allocates and may meet an exception that is already set (a generator resumed by throw). */
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (!globals) globals = PyEval_GetGlobals(); /* of the frame that begins, where it is there already */
  uintptr_t region = classify(code, globals);
  PyErr_Restore(type, value, trace);
  return region;
}

void code_region_throttle(PyCodeObject* code, uint32_t region) {
  if (set_extra((PyObject*)code, code_extra_index, (void*)(uintptr_t)(code_base + CODE_SKIP)) != 0) {
    PyErr_Clear();
    return;
  }
  strobe_note_throttled(region);
  if (strobe_functions_given_up()) python_calls_give_up();
}
