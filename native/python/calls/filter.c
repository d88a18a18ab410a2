#include "python/calls/filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int kind, included;
  char* pattern;
} Rule;

static Rule* rules;
static size_t rule_count;

int filter_setup(PyObject* list) {
  for (size_t i = 0; i < rule_count; i++) free(rules[i].pattern);
  rule_count = 0;
  Py_ssize_t n = PySequence_Size(list);
  if (n < 0) return -1;
  Rule* room = realloc(rules, ((size_t)n + 1) * sizeof(Rule));
  if (!room) return PyErr_NoMemory(), -1;
  rules = room;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = PySequence_GetItem(list, i);
    int kind, included;
    const char* pattern;
    int sound = item && PyTuple_Check(item) && PyArg_ParseTuple(item, "ips", &kind, &included, &pattern);
    if (sound) rules[rule_count++] = (Rule){kind, included, strdup(pattern)};
    Py_XDECREF(item);
    if (!sound) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a rule is (kind, included, pattern)");
      return -1;
    }
  }
  return 0;
}

static int matches(const char* pattern, const char* text) { return fnmatch(pattern, text, 0) == 0; }

static int matches_path(const char* pattern, const char* file) {
  if (matches(pattern, file)) return 1;
  size_t size = strlen(pattern);
  while (size > 1 && pattern[size - 1] == '/') size--;
  if (strncmp(pattern, file, size) == 0 && (file[size] == '/' || file[size] == 0)) return 1; /* a folder */
  char below[4096];
  if (size + 3 > sizeof below) return 0;
  memcpy(below, pattern, size);
  memcpy(below + size, "/*", 3);
  return matches(below, file);
}

/* `full` and every dotted name above it: a package, a module, a class, a function. */
static int matches_name(const char* pattern, const char* full) {
  char above[2048];
  size_t size = strlen(full);
  if (size >= sizeof above) size = sizeof above - 1;
  memcpy(above, full, size);
  above[size] = 0;
  for (;;) {
    if (matches(pattern, above)) return 1;
    char* dot = strrchr(above, '.');
    if (!dot) return 0;
    *dot = 0;
  }
}

static int joined(char* into, size_t room, const char* module, char between, const char* name) {
  int n = snprintf(into, room, "%s%c%s", module, between, name);
  return n > 0 && (size_t)n < room;
}

static int matches_region(const char* pattern, const char* module, const char* name) {
  char full[2048];
  const char* last = strrchr(name, '.');
  return matches(pattern, name) || (last && matches(pattern, last + 1)) ||
         (joined(full, sizeof full, module, ':', name) && matches(pattern, full));
}

/* The script's functions may be named by its file, too: train.* for what Python calls __main__. */
static const char* stem_of(const char* file, char* room, size_t size) {
  const char* base = file ? strrchr(file, '/') : NULL;
  base = base ? base + 1 : file;
  if (!base || strlen(base) >= size) return NULL;
  strcpy(room, base);
  char* dot = strrchr(room, '.');
  if (dot) *dot = 0;
  return room;
}

int filter_allows(const char* file, const char* module, const char* name, int recorded) {
  char full[2048], script[2048] = "", stem[256];
  if (!rule_count) return recorded;
  if (!joined(full, sizeof full, module, '.', name)) full[0] = 0;
  if (strcmp(module, "__main__") == 0 && stem_of(file, stem, sizeof stem))
    joined(script, sizeof script, stem, '.', name);
  int of_file = 1, of_region = 1;
  for (size_t i = 0; i < rule_count; i++) {
    const Rule* rule = &rules[i];
    switch (rule->kind) {
      case RULE_PATH:
        if (file && matches_path(rule->pattern, file)) recorded = rule->included;
        break;
      case RULE_NAME:
        if (matches_name(rule->pattern, full) || (script[0] && matches_name(rule->pattern, script)))
          recorded = rule->included;
        break;
      case RULE_FILE: /* the last rule that matches counts; a file that is out is out, whatever its functions are */
        if (file && matches(rule->pattern, file)) of_file = rule->included;
        break;
      default:
        if (matches_region(rule->pattern, module, name)) of_region = rule->included;
    }
  }
  return recorded && of_file && of_region;
}
