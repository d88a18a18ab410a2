// started_processes.cpp - the ways in which a Python program starts others: each start is a line of
// `started-HOST.jsonl` in the trace, so that those that were not recorded can be found. Beside them the ways in
// which it becomes another user: files of its recording are made before, as it may not make them afterwards.
//
// Functions of C stand behind functions of C: no frame of ours stands in a traceback, and the program's own
// profile hook sees what it saw before. What goes wrong while noting is nobody's business: the start comes first.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/format/json_text.h"
#include "core/format/secrets.h"
#include "core/system/clock.h"
#include "core/system/descriptors.h"
#include "include/strobe.h"

namespace nb = nanobind;

namespace {

std::string file;                           // where the lines go
std::string inject;                         // what PYTHONPATH of a child must hold
constexpr int kMostLines = 20000;           // of one process; what comes after is counted
constexpr size_t kWord = 300, kWords = 24;  // what is kept of a command line

int lines = 0;

// The bytes of a str, bytes or path-like word.
std::string text_of(PyObject* word) {
  PyObject* bytes = nullptr;
  std::string out;
  if (word && PyUnicode_FSConverter(word, &bytes)) {
    out.assign(PyBytes_AS_STRING(bytes), size_t(PyBytes_GET_SIZE(bytes)));
    Py_DECREF(bytes);
  }
  PyErr_Clear();
  return out;
}

// Whether an environment (a mapping, a sequence of KEY=VALUE, or None for our own) makes a Python record itself.
bool records(PyObject* environment) {
  std::string session, path;
  if (!environment || environment == Py_None) {
    const char *text = getenv("STROBE_SESSION"), *folders = getenv("PYTHONPATH");
    session = text ? text : "", path = folders ? folders : "";
  } else if (PyObject_HasAttrString(environment, "keys")) {
    PyObject* keys = PyMapping_Keys(environment);
    for (Py_ssize_t i = 0; keys && i < PyList_GET_SIZE(keys); i++) {
      PyObject* key = PyList_GET_ITEM(keys, i);
      std::string name = text_of(key);
      std::string* wanted = name == "STROBE_SESSION" ? &session : name == "PYTHONPATH" ? &path : nullptr;
      if (!wanted) continue;
      PyObject* value = PyObject_GetItem(environment, key);
      *wanted = text_of(value);
      Py_XDECREF(value);
    }
    Py_XDECREF(keys);
  } else {
    Py_ssize_t n = PySequence_Size(environment);
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* item = PySequence_GetItem(environment, i);
      std::string pair = text_of(item);
      Py_XDECREF(item);
      if (pair.rfind("STROBE_SESSION=", 0) == 0) session = pair.substr(15);
      if (pair.rfind("PYTHONPATH=", 0) == 0) path = pair.substr(11);
    }
  }
  PyErr_Clear();
  return !session.empty() && !inject.empty() && (":" + path + ":").find(":" + inject + ":") != std::string::npos;
}

// The first line of a script without its #!.
std::string interpreter_of(const std::string& executable) {
  char text[256];
  int fd = executable.find('/') == executable.npos ? -1 : open(executable.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  ssize_t n = read(fd, text, sizeof text);
  close(fd);
  if (n < 2 || text[0] != '#' || text[1] != '!') return {};
  std::string line(text + 2, size_t(n) - 2);
  return line.substr(0, line.find('\n'));
}

struct Start {
  const char* how;  // start, exec, shell, exec failed
  long pid = 0;
  std::string executable, arguments;
  bool records = false, possible = true;
  int64_t at_ns = strobe::monotonic_ns();
};

void append_words(std::string& out, PyObject* words) {
  Py_ssize_t n = words && PySequence_Check(words) && !PyUnicode_Check(words) ? PySequence_Size(words) : 0;
  strobe::WithoutSecrets shown;
  for (Py_ssize_t i = 0; i < n && size_t(i) < kWords; i++) {
    PyObject* word = PySequence_GetItem(words, i);
    if (i) out += ", ";
    strobe::append_json_text(out, shown.shown(text_of(word)).substr(0, kWord));
    Py_XDECREF(word);
  }
  PyErr_Clear();
}

void note(const Start& start) {
  if (lines >= kMostLines) return strobe_count("starts_not_noted", 1);
  lines++;
  std::string line = "{\"how\": ";
  strobe::append_json_text(line, start.how);
  line += ", \"pid\": " + std::to_string(start.pid) + ", \"parent\": " + std::to_string(getpid());
  line += ", \"at_ns\": " + std::to_string(start.at_ns) + ", \"records\": ";
  line += inject.empty() ? "null" : start.records ? "true" : "false";  // null: no child records itself
  line += ", \"executable\": ";
  strobe::append_json_text(line, start.executable.substr(0, kWord));
  line += ", \"interpreter\": ";
  strobe::append_json_text(line, interpreter_of(start.executable));
  line += ", \"argv\": [" + start.arguments + "]}\n";
  int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, strobe::mode_in_folder(file));
  ssize_t done = fd < 0 ? -1 : write(fd, line.data(), line.size());
  if (done != ssize_t(line.size())) strobe_count("starts_not_noted", 1);
  if (fd >= 0) close(fd);
}

enum Which {
  kForkExec,
  kPosixSpawn,
  kPosixSpawnp,
  kExecv,
  kExecve,
  kSystem,
  kFirstUserChange,  // from here on: what makes the process another user, or hides the trace folder from it
};
struct Function {
  const char *module, *name;
  PyObject* original = nullptr;  // stays when ours is taken away again: a thread may be in it
  PyMethodDef definition{};
  bool replaced = false;
};
Function functions[] = {{"_posixsubprocess", "fork_exec"},
                        {"posix", "posix_spawn"},
                        {"posix", "posix_spawnp"},
                        {"posix", "execv"},
                        {"posix", "execve"},
                        {"posix", "system"},
                        {"posix", "setuid"},
                        {"posix", "setgid"},
                        {"posix", "seteuid"},
                        {"posix", "setegid"},
                        {"posix", "setreuid"},
                        {"posix", "setregid"},
                        {"posix", "setresuid"},
                        {"posix", "setresgid"},
                        {"posix", "chroot"}};

PyObject* argument(PyObject* const* args, Py_ssize_t n, PyObject* names, Py_ssize_t at, const char* name) {
  if (at < n) return args[at];
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), name) == 0) return args[n + i];
  return nullptr;
}

bool can_run(const std::string& path) {
  struct stat facts;
  return !stat(path.c_str(), &facts) && S_ISREG(facts.st_mode) && !access(path.c_str(), X_OK);
}

// fork_exec(args, candidates for the executable, close_fds, pass_fds, cwd, env, six pipes, read end of the pipe on
// which a child reports that it could not become the program, ...)
enum { kArgs = 0, kCandidates = 1, kCwd = 4, kEnv = 5, kErrors = 12 };

// By vfork the child has reported it before the call returns. Where it is forked (preexec_fn, another user) it may
// report it later; then `possible` is all that is known.
bool has_failed(PyObject* errors) {
  pollfd pipe{errors ? int(PyLong_AsLong(errors)) : -1, POLLIN, 0};
  PyErr_Clear();
  return pipe.fd >= 0 && poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLIN);
}

// The first of the candidates that the child can become, from the folder in which it will be.
void find_executable(Start& start, PyObject* candidates, PyObject* cwd) {
  const std::string folder = cwd && cwd != Py_None ? text_of(cwd) + "/" : "";
  Py_ssize_t count = candidates && PySequence_Check(candidates) ? PySequence_Size(candidates) : 0;
  start.possible = false;
  for (Py_ssize_t i = 0; i < count && !start.possible; i++) {
    PyObject* item = PySequence_GetItem(candidates, i);
    std::string path = text_of(item);
    Py_XDECREF(item);
    if (path.compare(0, 1, "/")) path = folder + path;
    start.possible = can_run(path);
    if (i == 0 || start.possible) start.executable = path;
  }
  if (!folder.empty() && access(folder.c_str(), X_OK)) start.possible = false;
}

// What a call is about to start.
Start describe(int which, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  Start start{which == kExecv || which == kExecve ? "exec" : which == kSystem ? "shell" : "start", 0, {}, {}};
  if (which == kSystem) {
    start.executable = "/bin/sh";
    start.arguments = "\"sh\", \"-c\", ";
    strobe::append_json_text(start.arguments, text_of(argument(args, n, names, 0, "command")).substr(0, kWord));
    start.records = records(nullptr);
  } else if (which == kForkExec) {
    append_words(start.arguments, argument(args, n, names, kArgs, ""));
    find_executable(start, argument(args, n, names, kCandidates, ""), argument(args, n, names, kCwd, ""));
    start.records = records(argument(args, n, names, kEnv, ""));
  } else {
    start.executable = text_of(argument(args, n, names, 0, "path"));
    append_words(start.arguments, argument(args, n, names, 1, "argv"));
    start.records = records(which == kExecv ? nullptr : argument(args, n, names, 2, "env"));
  }
  PyErr_Clear();
  return start;
}

template <int which>
PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* original = functions[which].original;
  if (file.empty()) return PyObject_Vectorcall(original, args, size_t(n), names);
  if (which >= kFirstUserChange) {
    strobe_before_user_changes();
    return PyObject_Vectorcall(original, args, size_t(n), names);
  }
  Start start = describe(which, args, n, names);
  const bool replaces = which == kExecv || which == kExecve;
  if (which == kSystem) note(start);
  if (replaces) {  // noted before: this code does not go on. execvp tries a file in every folder of PATH
    start.pid = getpid();
    if (access(start.executable.c_str(), X_OK) != 0) return PyObject_Vectorcall(original, args, size_t(n), names);
    note(start);
  }
  PyObject* result = PyObject_Vectorcall(original, args, size_t(n), names);
  if (which == kSystem) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (replaces) {
    start.how = "exec failed";
    note(start);
  } else if (result) {
    start.pid = PyLong_AsLong(result);
    PyErr_Clear();
    const bool failed = which == kForkExec && (!start.possible || has_failed(argument(args, n, names, kErrors, "")));
    if (start.pid > 0 && !failed) note(start);
  }
  PyErr_Restore(type, value, trace);
  return result;
}

template <int... which>
void define(std::integer_sequence<int, which...>) {
  ((functions[which].definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call<which>))), ...);
}

void watch(const std::string& to, const std::string& inject_folder) {
  file = to, inject = inject_folder;
  define(std::make_integer_sequence<int, std::size(functions)>());
}

// Puts our functions behind those of a module. The function itself stays what it is: who has it under a name of its own
// (`os`, a module that imported it before us) calls ours, too.
void replace(nb::module_ module) {
  std::string name = nb::cast<std::string>(module.attr("__name__"));
  for (Function& function : functions) {
    if (name != function.module || !nb::hasattr(module, function.name)) continue;
    nb::object found = module.attr(function.name);
    if (!PyCFunction_CheckExact(found.ptr()) || function.replaced) continue;
    auto* of = reinterpret_cast<PyCFunctionObject*>(found.ptr());
    function.definition.ml_name = of->m_ml->ml_name;
    function.definition.ml_doc = of->m_ml->ml_doc;
    function.definition.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    nb::object ours = nb::steal(PyCFunction_NewEx(&function.definition, of->m_self, of->m_module));
    if (!function.original) function.original = PyCFunction_NewEx(of->m_ml, of->m_self, of->m_module);
    if (!ours || !function.original) throw nb::python_error();
    function.replaced = true;
    of->m_ml = &function.definition;
    of->vectorcall = reinterpret_cast<PyCFunctionObject*>(ours.ptr())->vectorcall;
  }
}

// The functions of a module are its own again.
void restore(nb::module_ module) {
  std::string name = nb::cast<std::string>(module.attr("__name__"));
  for (Function& function : functions) {
    if (name != function.module || !function.replaced) continue;
    nb::object found = module.attr(function.name);
    auto* of = reinterpret_cast<PyCFunctionObject*>(found.ptr());
    if (!PyCFunction_CheckExact(found.ptr()) || of->m_ml != &function.definition) continue;
    auto* original = reinterpret_cast<PyCFunctionObject*>(function.original);
    of->m_ml = original->m_ml;
    of->vectorcall = original->vectorcall;
    function.replaced = false;
  }
}

}  // namespace

void register_starts(nb::module_& m) {
  m.def("watch_starts", &watch, nb::arg("file"), nb::arg("inject"));
  m.def("replace_starts", &replace, nb::arg("module"));
  m.def("restore_starts", &restore, nb::arg("module"));
}
