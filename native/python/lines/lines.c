#include "python/lines/lines.h"
#include "python/loops/loops.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "python/calls/code_regions.h"
#include "python/lines/lines_events.h"
#include "python/lines/lines_stack.h"

uint32_t lines_starts = 1;
static uint32_t session = 1;
Py_ssize_t lines_extra_index = -1;
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
  if (!made) return PyErr_Clear(), NULL;
  made->file = strdup(file), made->name = strdup(name);
  made->function_line = code->co_firstlineno, made->first = first, made->count = last - first + 1;
  return made;
}

/* What a code object is from this start on; NULL: not chosen. */
static LineCode* choose(PyCodeObject* code, int named) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
  const uintptr_t before = extra_of(code, lines_extra_index);
  LineCode* known = before & 1 ? NULL : (LineCode*)before;
  if (known && known->named_in == session) named = 1;
  int wanted = named;
  if (!name) PyErr_Clear();
  for (size_t i = 0; name && !wanted && i < pattern_count; i++) wanted = matches(patterns[i], file, name);
  if (name && wanted && !known) known = make(code, file, name);
  if (known) {
    known->start = lines_starts, known->chosen = wanted;
    if (named) known->named_in = session;
  }
  const uintptr_t now = known ? (uintptr_t)known : (uintptr_t)lines_starts * 2 + 1;
  if (now != before && set_extra((PyObject*)code, lines_extra_index, (void*)now) != 0) return PyErr_Clear(), NULL;
  if (!known || !wanted) return NULL;
#if PY_VERSION_HEX >= 0x030C0000
  if (lines_watch((PyObject*)code) != 0) return PyErr_Clear(), NULL;
#endif
  return known;
}

LineCode* lines_of_slowly(PyCodeObject* code) {
  /* An exception may be set already: a generator that is resumed by throw. */
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  LineCode* known = choose(code, 0);
  PyErr_Restore(type, value, trace);
  return known;
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
  uint64_t now = lines_ticks();
  add(activation, now);
  const int prepares = activation->code->epoch != strobe_lines_epoch; /* that is not time of the line */
  activation->open = line_of(activation->code, line);
  if (activation->open) activation->open->hits++;
  activation->since = prepares ? lines_ticks() : now;
}

void lines_resume(LineActivation* activation, int line) {
  activation->open = line_of(activation->code, line);
  activation->since = lines_ticks();
}

void lines_close(LineActivation* activation) {
  add(activation, lines_ticks());
  activation->open = NULL;
}

/* For whoever launches something, with the GIL or without: it is the stack of the calling thread. */
static size_t open_lines(strobe_line** lines, size_t most) {
  if (!lines_running) return 0;
  size_t depth, n = 0;
  const LineActivation* activations = lines_activations(&depth);
  for (size_t i = depth; i-- > 0 && n < most;) {
    strobe_line* line = activations[i].open;
    if (!line || activations[i].code->epoch != strobe_lines_epoch) continue;
    size_t known = 0; /* of a recursion each counts once */
    while (known < n && lines[known] != line) known++;
    if (known == n) lines[n++] = line;
  }
  return n;
}

static int need_extra_index(void) {
  if (lines_extra_index < 0) lines_extra_index = request_index(NULL);
  if (lines_extra_index >= 0) return 0;
  PyErr_SetString(PyExc_RuntimeError, "the interpreter has no co_extra slot left");
  return -1;
}

int lines_start(PyObject* list) {
  if (need_extra_index() != 0 || take_texts(list, &patterns, &pattern_count) != 0) return -1;
  lines_starts++;
#if PY_VERSION_HEX < 0x030C0000
  loops_stop(); /* there is one trace function */
#endif
  lines_running = 1;
  strobe_lines_open_with(open_lines);
  return 0;
}

void lines_stop(void) { lines_running = 0; }

void lines_forget(void) { session++; }

int lines_add(PyObject* object) {
  if (!PyCode_Check(object)) return PyErr_SetString(PyExc_TypeError, "a code object is needed"), -1;
  if (need_extra_index() != 0) return -1;
  LineCode* known = choose((PyCodeObject*)object, 1);
  if (known && !lines_running) known->start = 0; /* the next start sees to its lines */
  return 0;
}
