#include "lines.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "code_extra.h"
#include "lines_events.h"

/* Never freed: an execution of the function may still hold it. */
struct LineCode {
  char *file, *name;
  int function_line, first, count; /* lines [first, first + count) */
  strobe_line* lines;              /* NULL: no room */
  uint32_t epoch;                  /* in which `lines` count: a fork, or another recording, begins a new one */
};

static LineCode not_chosen;
static Py_ssize_t lines_extra_index = -1;
static char** patterns;
static size_t pattern_count;
int lines_running;

/* `package/module.py` and `Class.method` match `module.Class.method`, `Class.method`, `package.module`, `*.py`. */
static int matches(const char* pattern, const char* file, const char* name) {
  char dotted[PATH_MAX + 1024], with_tail[600];
  size_t length = strlen(pattern);
  if (strchr(pattern, '/') || (length > 3 && strcmp(pattern + length - 3, ".py") == 0)) {
    snprintf(dotted, sizeof dotted, "*/%s", pattern);
    return fnmatch(pattern, file, 0) == 0 || fnmatch(dotted, file, 0) == 0;
  }
  if (fnmatch(pattern, name, 0) == 0) return 1;
  size_t stem = strlen(file);
  if (stem > 3 && strcmp(file + stem - 3, ".py") == 0) stem -= 3;
  if (stem > 9 && strncmp(file + stem - 9, "/__init__", 9) == 0) stem -= 9;
  if (stem + strlen(name) + 2 > sizeof dotted) return 0;
  snprintf(dotted, sizeof dotted, ".%.*s.%s", (int)stem, file, name);
  for (char* at = dotted; at < dotted + stem + 1; at++)
    if (*at == '/') *at = '.';
  snprintf(with_tail, sizeof with_tail, "*.%s", pattern);
  if (fnmatch(with_tail, dotted, 0) == 0) return 1;
  dotted[stem + 1] = 0; /* the module alone: all of its functions */
  return fnmatch(with_tail, dotted, 0) == 0;
}

static LineCode* make(PyCodeObject* code, const char* file, const char* name) {
  int first = INT_MAX, last = 0;
  PyObject* ranges = PyObject_CallMethod((PyObject*)code, "co_lines", NULL);
  PyObject* each;
  while (ranges && (each = PyIter_Next(ranges))) {
    PyObject* number = PyTuple_GetItem(each, 2); /* borrowed; None: no line of the source */
    int line = number && PyLong_Check(number) ? (int)PyLong_AsLong(number) : 0;
    if (line > 0 && line < first) first = line;
    if (line > last) last = line;
    Py_DECREF(each);
  }
  Py_XDECREF(ranges);
  LineCode* made = last > 0 ? PyMem_RawCalloc(1, sizeof *made) : NULL;
  if (!made) return PyErr_Clear(), &not_chosen;
  made->file = strdup(file), made->name = strdup(name);
  made->function_line = code->co_firstlineno, made->first = first, made->count = last - first + 1;
  return made;
}

static LineCode* choose(PyCodeObject* code, int always) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
  LineCode* chosen = &not_chosen;
  int wanted = always;
  if (!name) PyErr_Clear();
  for (size_t i = 0; name && !wanted && i < pattern_count; i++) wanted = matches(patterns[i], file, name);
  if (name && wanted) chosen = make(code, file, name);
  if (set_extra((PyObject*)code, lines_extra_index, chosen) != 0) PyErr_Clear(), chosen = &not_chosen;
#if PY_VERSION_HEX >= 0x030C0000
  if (chosen != &not_chosen && lines_watch((PyObject*)code) != 0) PyErr_Clear(), chosen = &not_chosen;
#endif
  return chosen;
}

LineCode* lines_of(PyCodeObject* code) {
  void* extra = NULL;
  get_extra((PyObject*)code, lines_extra_index, &extra);
  if (__builtin_expect(extra == NULL, 0)) {
    /* An exception may be set already: a generator that is resumed by throw. */
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    extra = choose(code, 0);
    PyErr_Restore(type, value, trace);
  }
  return extra == &not_chosen ? NULL : extra;
}

static strobe_line* line_of(LineCode* code, int line) {
  if (__builtin_expect(code->epoch != strobe_lines_epoch, 0)) {
    code->epoch = strobe_lines_epoch;
    code->lines = strobe_lines(code->file, code->name, (uint32_t)code->function_line, (uint32_t)code->first,
                               (uint32_t)code->count);
  }
  unsigned at = (unsigned)(line - code->first);
  return code->lines && at < (unsigned)code->count ? &code->lines[at] : NULL;
}

/* All of these run with the GIL: plain additions. */
static void add(LineActivation* activation, uint64_t now) {
  if (activation->open && activation->code->epoch == strobe_lines_epoch)
    activation->open->ticks += now - activation->since;
}

void lines_line(LineActivation* activation, int line) {
  uint64_t now = strobe_ticks();
  add(activation, now);
  activation->open = line_of(activation->code, line);
  if (activation->open) activation->open->hits++;
  activation->since = now;
}

void lines_resume(LineActivation* activation, int line) {
  activation->open = line_of(activation->code, line);
  activation->since = strobe_ticks();
}

void lines_close(LineActivation* activation) {
  add(activation, strobe_ticks());
  activation->open = NULL;
}

int lines_start(PyObject* list) {
  Py_ssize_t n = PySequence_Size(list);
  if (n < 0) return -1;
  if (lines_extra_index < 0) lines_extra_index = request_index(NULL);
  if (lines_extra_index < 0)
    return PyErr_SetString(PyExc_RuntimeError, "the interpreter has no co_extra slot left"), -1;
  char** taken = PyMem_RawCalloc((size_t)n + 1, sizeof *taken);
  if (!taken) return PyErr_NoMemory(), -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PySequence_GetItem(list, i);
    const char* text = item ? PyUnicode_AsUTF8(item) : NULL;
    taken[i] = text ? strdup(text) : NULL;
    Py_XDECREF(item);
    if (!taken[i]) return -1;
  }
  patterns = taken, pattern_count = (size_t)n;
  lines_running = 1;
  return 0;
}

void lines_stop(void) { lines_running = 0; }

int lines_add(PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_SetString(PyExc_TypeError, "a code object is needed"), -1;
  if (lines_running) choose((PyCodeObject*)code, 1);
  return 0;
}
