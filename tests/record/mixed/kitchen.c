// An extension module: bake(KNEAD, HEAT) computes for so many ns of CPU time in each of two functions, and returns what
// they measured by the clock of the thread.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

static volatile double sink;

static long long cpu_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return at.tv_sec * 1000000000ll + at.tv_nsec;
}

__attribute__((noinline, noclone)) static long long knead(long long ns) {
  const long long begin = cpu_ns();
  while (cpu_ns() - begin < ns)
    for (int i = 0; i < 100000; i++) sink = sink * 1.0000001 + 1e-9;
  return cpu_ns() - begin;
}

__attribute__((noinline, noclone)) static long long heat(long long ns) {
  const long long begin = cpu_ns();
  while (cpu_ns() - begin < ns)
    for (int i = 0; i < 100000; i++) sink = sink / 1.0000001 - 1e-9;
  return cpu_ns() - begin;
}

static PyObject* bake(PyObject* self, PyObject* arguments) {
  long long kneaded, heated;
  if (!PyArg_ParseTuple(arguments, "LL", &kneaded, &heated)) return NULL;
  kneaded = knead(kneaded), heated = heat(heated);
  return Py_BuildValue("LL", kneaded, heated);
}

static PyMethodDef methods[] = {{"bake", bake, METH_VARARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kitchen", 0, -1, methods};
PyMODINIT_FUNC PyInit_kitchen(void) { return PyModule_Create(&module); }
