#include "python/calls/c_functions.h"

#include <stdlib.h>
#include <string.h>

#include "python/calls/filter.h"

CFunction* c_function_table;
size_t c_function_mask;
static size_t used;

static size_t place_of(const PyMethodDef* definition) { return ((uintptr_t)definition >> 4) & c_function_mask; }

static int grow(void) {
  const size_t size = c_function_table ? (c_function_mask + 1) * 2 : 4096;
  CFunction* table = calloc(size, sizeof(CFunction));
  if (!table) return -1;
  CFunction* old = c_function_table;
  const size_t old_size = old ? c_function_mask + 1 : 0;
  c_function_table = table;
  c_function_mask = size - 1;
  for (size_t i = 0; i < old_size; i++) {
    if (!old[i].definition) continue;
    size_t at = place_of(old[i].definition);
    while (table[at].definition) at = (at + 1) & c_function_mask;
    table[at] = old[i];
  }
  free(old);
  return 0;
}

/* The name of the type or module that the function belongs to; the module's, in `module`. */
static const char* owner_of(PyObject* callable, const char** module) {
  PyObject* owner = NULL;
  PyObject* of_module = NULL;
  *module = "builtins";
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
    owner = (PyObject*)PyDescr_TYPE(callable);
  } else {
    PyCFunctionObject* function = (PyCFunctionObject*)callable;
    of_module = function->m_module;
    if (function->m_self && !PyModule_Check(function->m_self))
      owner = PyType_Check(function->m_self) ? function->m_self : (PyObject*)Py_TYPE(function->m_self);
  }
  if (owner) return ((PyTypeObject*)owner)->tp_name;
  if (of_module && PyUnicode_Check(of_module)) {
    const char* text = PyUnicode_AsUTF8(of_module);
    if (text) *module = text;
    PyErr_Clear();
  }
  return NULL;
}

static void describe(PyObject* callable, const PyMethodDef* definition, CFunction* into) {
  const char* module;
  char name[512], home[256];
  const char* owner = owner_of(callable, &module);
  if (owner) { /* tp_name: "module.Type", or "Type" of what is built in */
    const char* dot = strrchr(owner, '.');
    if (dot && (size_t)(dot - owner) < sizeof home) {
      memcpy(home, owner, (size_t)(dot - owner));
      home[dot - owner] = 0;
      module = home;
    }
    snprintf(name, sizeof name, "%s.%s", dot ? dot + 1 : owner, definition->ml_name);
  } else {
    snprintf(name, sizeof name, "%s", definition->ml_name);
  }
  into->region = 0;
  if (!filter_allows(NULL, module, name, 1)) return;
  char full[1024]; /* what is built in has its own name alone, as in Python */
  snprintf(full, sizeof full, "%s.%s", module, name);
  strobe_region_info info = {0};
  info.name = strcmp(module, "builtins") == 0 ? name : full;
  info.module = module;
  info.paradigm = STROBE_PYTHON;
  info.role = STROBE_ROLE_FUNCTION;
  into->region = strobe_region(&info);
}

CFunction* c_function_slowly(PyObject* callable, const PyMethodDef* definition) {
  if (used * 2 >= (c_function_table ? c_function_mask + 1 : 0) && grow() != 0) return NULL;
  size_t at = place_of(definition);
  while (c_function_table[at].definition && c_function_table[at].definition != definition)
    at = (at + 1) & c_function_mask;
  CFunction* f = &c_function_table[at];
  if (f->definition == definition && f->function == definition->ml_meth && f->base == code_base) return f;
  if (!f->definition) used++;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  *f = (CFunction){definition, definition->ml_meth, 0, 0, code_base};
  describe(callable, definition, f);
  PyErr_Restore(type, value, trace);
  return f;
}
