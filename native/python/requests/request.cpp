// request.cpp - a request: what is noted for each of its callbacks, and the row that it becomes.
#include "python/requests/request.h"

#include <Python.h>
#include <structmember.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "adapters/requests.h"
#include "core/system/clock.h"
#include "core/system/descriptors.h"
#include "include/strobe.h"

namespace strobe::requests {

Adapter adapter{};

namespace {

constexpr Py_ssize_t kMostPieces = 500;  // of a request: a stream of events may go on for days
constexpr Py_ssize_t kMostRoutes = 500;
constexpr Py_ssize_t kNumbersOfPart = 6;
constexpr int kPython = 1, kRange = 3;  // model/kinds.py: paradigm, role
long long last_number = 0;
PyObject* routes;  // region and text of each

PyObject* list_in(PyObject** place) {
  if (!*place) *place = PyList_New(0);
  return Py_XNewRef(*place);
}

// (task, begin, end, wait): nullptr as `wait` is a time in which it ran.
void add_piece(Request* r, PyObject* task, int64_t begin_ns, int64_t end_ns, PyObject* wait) {
  PyObject* pieces = list_in(&r->pieces);
  PyObject* piece = pieces ? Py_BuildValue("(OLLO)", task, static_cast<long long>(begin_ns),
                                           static_cast<long long>(end_ns), wait ? wait : Py_None)
                           : nullptr;
  if (!piece || PyList_Append(pieces, piece) != 0) not_read();
  Py_XDECREF(piece);
  Py_XDECREF(pieces);
}

bool has_room(const Request* r) { return !r->pieces || PyList_GET_SIZE(r->pieces) < kMostPieces; }

int64_t suspended_since(const Request* r, PyObject* task) {
  if (task == r->main) return r->main_suspended_ns;
  PyObject* since = r->suspended ? PyDict_GetItemWithError(r->suspended, task) : nullptr;
  return since ? PyLong_AsLongLong(since) : 0;
}

void suspend(Request* r, PyObject* task, int64_t now_ns) {
  if (task == r->main) {
    r->main_suspended_ns = now_ns;
    return;
  }
  if (!r->suspended) r->suspended = PyDict_New();
  PyObject* since = PyLong_FromLongLong(now_ns);
  if (!r->suspended || !since || PyDict_SetItem(r->suspended, task, since) != 0) not_read();
  Py_XDECREF(since);
}

bool is_done(PyObject* task) {
  static PyObject* const name = PyUnicode_InternFromString("done");
  PyObject* done = PyObject_CallMethodNoArgs(task, name);
  if (!done) not_read();
  const bool is = done == Py_True;
  Py_XDECREF(done);
  return is;
}

bool numbers_of(PyObject* tuple, int64_t* to, Py_ssize_t count) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
    PyErr_SetString(PyExc_TypeError, "a part of a request has six numbers");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if ((to[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i))) == -1 && PyErr_Occurred()) return false;
  return true;
}

// Region and text of a route; the tuple is borrowed.
PyObject* known_route(PyObject* route) {
  if (!routes && !(routes = PyDict_New())) return nullptr;
  PyObject* known = PyDict_GetItemWithError(routes, route);
  if (known || PyErr_Occurred()) return known;
  static PyObject* const other = PyUnicode_InternFromString("(other)");
  if (PyDict_GET_SIZE(routes) >= kMostRoutes && route != other) return known_route(other);
  const char* shown = PyUnicode_AsUTF8(route);
  if (!shown) return nullptr;
  strobe_region_info info{};
  info.name = *shown ? shown : "(no route)";
  info.file = info.module = "";
  info.paradigm = kPython, info.role = kRange;
  known = Py_BuildValue("(II)", strobe_region(&info), strobe_text(shown));
  const bool kept = known && PyDict_SetItem(routes, route, known) == 0;
  Py_XDECREF(known);
  return kept ? known : nullptr;
}

// Its route, as far as it is known now: a text. New reference.
PyObject* route_now(PyObject* self, PyObject*) {
  Request* r = reinterpret_cast<Request*>(self);
  if (!r->route) return PyUnicode_FromString("");
  if (PyUnicode_Check(r->route)) return Py_NewRef(r->route);
  PyObject* text = PyObject_CallNoArgs(r->route);
  if (text && !PyUnicode_Check(text)) {
    PyErr_SetString(PyExc_TypeError, "a route is a text");
    Py_CLEAR(text);
  }
  return text;
}

int64_t thread_number() {
  thread_local int64_t number = 0;
  thread_local pid_t process = 0;  // a fork has another thread
  if (process != getpid()) number = syscall(SYS_gettid), process = getpid();
  return number;
}

// Spans of its parts, with their rows. false: an exception is set.
bool add_parts(Request* r, int64_t began_ns, int64_t ended_ns, std::vector<strobe_stream_span>& spans,
               std::vector<strobe_stream_span>& rows) {
  const bool late = r->state && began_ns - r->arrived_ns >= kLongNs;
  if (!r->in_thread && !r->pieces && !late) return true;
  PyObject* parts = PyObject_CallMethod(reinterpret_cast<PyObject*>(r), "parts", "LL", static_cast<long long>(began_ns),
                                        static_cast<long long>(ended_ns));
  PyObject* all = parts ? PySequence_Fast(parts, "parts of a request are a list") : nullptr;
  for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(all); i++) {
    int64_t p[kNumbersOfPart];  // region, begin, end, kind, code, cause
    if (!numbers_of(PySequence_Fast_GET_ITEM(all, i), p, kNumbersOfPart)) break;
    spans.push_back({uint32_t(p[0]), 0, p[1], p[2], r->arrived_ns, {}});
    rows.push_back({0,
                    STROBE_ROW_REQUEST_PART,
                    p[1],
                    p[2],
                    r->arrived_ns,
                    {STROBE_THREE(p[3], p[4], p[5]), STROBE_TWO(r->number, thread_number()), p[2] - p[1]}});
  }
  Py_XDECREF(all);
  Py_XDECREF(parts);
  return !PyErr_Occurred();
}

// Its row. false: an exception is set.
bool write(Request* r, int64_t ended_ns) {
  if (r->written) return true;
  r->written = 1;
  const int64_t began_ns = r->began_ns ? r->began_ns : ended_ns;
  PyObject* route = route_now(reinterpret_cast<PyObject*>(r), nullptr);
  if (!route) not_read(), route = PyUnicode_FromString("");
  if (!route) return false;
  Py_XSETREF(r->route, route);
  PyObject* known = known_route(route);
  int64_t ids[2];
  if (!known || !numbers_of(known, ids, 2)) return false;
  std::vector<strobe_stream_span> spans, rows;
  spans.push_back(
      {uint32_t(ids[0]),
       STROBE_ROW_REQUEST,
       r->arrived_ns,
       ended_ns,
       r->arrived_ns,
       {STROBE_TWO(ids[1], r->number), STROBE_TWO(r->status, r->server), ended_ns - r->arrived_ns,
        began_ns - r->arrived_ns, r->state || r->in_thread ? r->running_ns : STROBE_NOTHING, r->collecting_ns}});
  if (!add_parts(r, began_ns, ended_ns, spans, rows)) {
    not_read();
    spans.resize(1), rows.clear();
  }
  strobe_request(spans.data(), spans.size(), rows.data());
  Py_CLEAR(r->suspended);
  Py_CLEAR(r->pieces);
  Py_CLEAR(r->jobs);
  Py_CLEAR(r->main);
  return true;
}

// --- the types

int traverse(PyObject* self, visitproc visit, void* arg) {
  Request* r = reinterpret_cast<Request*>(self);
  for (PyObject* each : {r->route, r->state, r->main, r->suspended, r->pieces, r->ready, r->jobs}) Py_VISIT(each);
  return 0;
}

int clear(PyObject* self) {
  Request* r = reinterpret_cast<Request*>(self);
  Py_CLEAR(r->route);
  Py_CLEAR(r->state);
  Py_CLEAR(r->main);
  Py_CLEAR(r->suspended);
  Py_CLEAR(r->pieces);
  Py_CLEAR(r->ready);
  Py_CLEAR(r->jobs);
  return 0;
}

void free_request(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

void fill(Request* r, unsigned server, PyObject* state, int64_t arrived_ns) {
  r->number = ++last_number, r->server = server, r->status = STROBE_NOTHING_32, r->arrived_ns = arrived_ns;
  if (state != Py_None) Py_XSETREF(r->state, Py_NewRef(state));
}

// Request(server, state, arrived_ns)
int init(PyObject* self, PyObject* args, PyObject*) {
  unsigned server;
  PyObject* state;
  long long arrived_ns;
  if (!PyArg_ParseTuple(args, "IOL", &server, &state, &arrived_ns)) return -1;
  fill(reinterpret_cast<Request*>(self), server, state, arrived_ns);
  return 0;
}

PyObject* begin_method(PyObject* self, PyObject* task) {
  begin(reinterpret_cast<Request*>(self), task, monotonic_ns());
  Py_RETURN_NONE;
}

PyObject* responded(PyObject* self, PyObject*) {
  Request* r = reinterpret_cast<Request*>(self);
  if (!r->ended_ns) {
    r->ended_ns = monotonic_ns();
    if (!r->state && !write(r, r->ended_ns)) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* write_method(PyObject* self, PyObject* ended_ns) {
  const long long ended = PyLong_AsLongLong(ended_ns);
  if ((ended == -1 && PyErr_Occurred()) || !write(reinterpret_cast<Request*>(self), ended)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_own(PyObject* self, void*) { return Py_NewRef(self); }
PyObject* get_ready(PyObject* self, void*) { return list_in(&reinterpret_cast<Request*>(self)->ready); }
PyObject* get_jobs(PyObject* self, void*) { return list_in(&reinterpret_cast<Request*>(self)->jobs); }
PyObject* get_pieces(PyObject* self, void*) { return list_in(&reinterpret_cast<Request*>(self)->pieces); }
PyObject* get_tasks(PyObject* self, void*) {
  const Request* r = reinterpret_cast<Request*>(self);
  return PyLong_FromSsize_t((r->main_suspended_ns != 0) + (r->suspended ? PyDict_GET_SIZE(r->suspended) : 0));
}

PyMethodDef methods[] = {
    {"begin", begin_method, METH_O, "begin(task) -> None: its code begins, in this task"},
    {"responded", responded, METH_NOARGS, "The last byte of the response has been given to the socket."},
    {"route_now", route_now, METH_NOARGS, "Its route, as far as it is known."},
    {"write", write_method, METH_O, "write(ended_ns) -> None: it is over"},
    {}};
PyMemberDef members[] = {{"route", T_OBJECT, offsetof(Request, route), 0, nullptr},
                         {"state", T_OBJECT, offsetof(Request, state), READONLY, nullptr},
                         {"main", T_OBJECT, offsetof(Request, main), READONLY, nullptr},
                         {"number", T_LONGLONG, offsetof(Request, number), READONLY, nullptr},
                         {"status", T_UINT, offsetof(Request, status), 0, nullptr},
                         {"arrived_ns", T_LONGLONG, offsetof(Request, arrived_ns), READONLY, nullptr},
                         {"began_ns", T_LONGLONG, offsetof(Request, began_ns), 0, nullptr},
                         {"ended_ns", T_LONGLONG, offsetof(Request, ended_ns), READONLY, nullptr},
                         {"running_ns", T_LONGLONG, offsetof(Request, running_ns), 0, nullptr},
                         {"written", T_BOOL, offsetof(Request, written), READONLY, nullptr},
                         {"in_thread", T_BOOL, offsetof(Request, in_thread), 0, nullptr},
                         {}};
PyGetSetDef getters[] = {
    {"own", get_own, nullptr, nullptr, nullptr},     {"ready", get_ready, nullptr, nullptr, nullptr},
    {"jobs", get_jobs, nullptr, nullptr, nullptr},   {"pieces", get_pieces, nullptr, nullptr, nullptr},
    {"tasks", get_tasks, nullptr, nullptr, nullptr}, {}};

// requests_setup(request, current, wait_of, states, state_of, arrived, timer, tasks, tick_ns)
PyObject* setup(PyObject*, PyObject* args) {
  Adapter a{};
  if (!PyArg_ParseTuple(args, "OOOOOOOO!L", &a.request, &a.current, &a.wait_of, &a.states, &a.state_of, &a.arrived,
                        &a.timer, &PyTuple_Type, &a.tasks, &a.tick_ns))
    return nullptr;
  for (PyObject* each : {a.request, a.current, a.wait_of, a.states, a.state_of, a.arrived, a.timer, a.tasks})
    Py_INCREF(each);  // for ever: they are functions and types of a module
  adapter = a;
  Py_RETURN_NONE;
}

// How long this thread could have run and had no core until now, ns; 0 where the kernel does not count it.
PyObject* core_wait(PyObject*, PyObject*) {
  char text[96];
  long long cpu_ns, wait_ns;
  const bool known = read_small("/proc/thread-self/schedstat", text, sizeof text) > 0 &&
                     sscanf(text, "%lld %lld", &cpu_ns, &wait_ns) == 2;
  return PyLong_FromLongLong(known ? wait_ns : 0);
}

PyMethodDef functions[] = {
    {"requests_setup", setup, METH_VARARGS, nullptr}, {"requests_core_wait", core_wait, METH_NOARGS, nullptr}, {}};

}  // namespace

PyTypeObject Request_type{};

Open::Open(PyObject* context) : value_(nullptr) {
  if (!context) {
    if (PyContextVar_Get(adapter.current, nullptr, &value_) != 0) PyErr_Clear();
    return;
  }
  const int has = PySequence_Contains(context, adapter.current);  // an exception for each that has none would cost more
  if (has == 1) value_ = PyObject_GetItem(context, adapter.current);
  if (has < 0 || (has == 1 && !value_)) PyErr_Clear();
}

Connection* Open::connection() const {
  return value_ && Py_TYPE(value_) == &Connection_type ? reinterpret_cast<Connection*>(value_) : nullptr;
}

Request* Open::request() const {
  if (const Connection* c = connection()) return c->own;
  return value_ && PyObject_TypeCheck(value_, &Request_type) ? reinterpret_cast<Request*>(value_) : nullptr;
}

void not_read() {
  PyObject* type = PyErr_Occurred();
  if (!type) return;
  const char* name = PyType_Check(type) ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "";
  strobe_count((std::string("requests_not_read: ") + name).c_str(), 1);
  PyErr_Clear();
}

PyObject* call_with(PyObject* original, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  constexpr Py_ssize_t kFew = 8;
  PyObject* few[kFew];
  const Py_ssize_t all = n + (names ? PyTuple_GET_SIZE(names) : 0);
  PyObject** given = few;
  if (all + 1 > kFew && !(given = static_cast<PyObject**>(PyMem_Malloc(sizeof(PyObject*) * size_t(all + 1)))))
    return PyErr_NoMemory();
  given[0] = self;
  for (Py_ssize_t i = 0; i < all; i++) given[i + 1] = args[i];
  PyObject* const result = PyObject_Vectorcall(original, given, size_t(n + 1), names);
  if (given != few) PyMem_Free(given);
  return result;
}

Request* new_request(unsigned server, PyObject* loop, int64_t arrived_ns) {
  PyObject* state = reinterpret_cast<PyObject*>(state_of(loop));
  if (!state) return nullptr;
  PyObject* made = PyType_GenericNew(reinterpret_cast<PyTypeObject*>(adapter.request), nullptr, nullptr);
  if (made) fill(reinterpret_cast<Request*>(made), server, state, arrived_ns);
  Py_DECREF(state);
  return reinterpret_cast<Request*>(made);
}

void begin(Request* r, PyObject* task, int64_t now_ns) {
  if (r->main || r->written) return;
  r->main = Py_NewRef(task), r->began_ns = now_ns;
}

void wakes(const Open& open, PyObject* handle, PyObject* task, int64_t now_ns) {
  Request* r = open.request();
  if (!r || r->written) return;
  if (open.connection() && task) begin(r, task, now_ns);
  if (reinterpret_cast<PyObject*>(Py_TYPE(handle)) == adapter.timer) {
    PyObject* when = STROBE_ATTRIBUTE(handle, "_when");
    const int64_t due_ns = when ? int64_t(PyFloat_AsDouble(when) * 1e9) : now_ns;
    Py_XDECREF(when);
    if (now_ns - due_ns >= kLongNs && !PyErr_Occurred()) {
      PyObject* ready = list_in(&r->ready);
      PyObject* time = Py_BuildValue("(LL)", static_cast<long long>(due_ns), static_cast<long long>(now_ns));
      if (ready && time) PyList_Append(ready, time);
      Py_XDECREF(time);
      Py_XDECREF(ready);
    }
  }
  const int64_t since = task ? suspended_since(r, task) : 0;
  if (since && now_ns - since >= kLongNs && has_room(r)) {
    PyObject* wait = PyObject_CallFunction(adapter.wait_of, "OLL", task, static_cast<long long>(since),
                                           static_cast<long long>(now_ns));
    if (wait) add_piece(r, task, since, now_ns, wait);
    Py_XDECREF(wait);
  }
  not_read();
}

void ran(const Open& open, PyObject* task, int64_t began_ns, int64_t ended_ns, int64_t collected_ns) {
  Request* r = open.request();
  if (!r || r->written || !r->began_ns) return;
  if (began_ns < r->began_ns) began_ns = r->began_ns;
  const int64_t until = r->ended_ns ? r->ended_ns : ended_ns;
  if (until > began_ns) {
    r->running_ns += until - began_ns;
    r->collecting_ns += collected_ns < until - began_ns ? collected_ns : until - began_ns;
  }
  if (task) {
    suspend(r, task, ended_ns);
    if (until - began_ns >= kLongNs && has_room(r)) add_piece(r, task, began_ns, until, nullptr);
  }
  // A task that starts eagerly may have run, and ended, in a step of another one.
  const bool over = r->ended_ns || (r->main && r->main != Py_None && is_done(r->main));
  if (over && !write(r, until)) not_read();
  if (Connection* c = open.connection(); c && r->written) Py_CLEAR(c->own);
  not_read();
}

// Once: a type is that of all interpreters, and ready after the first.
static bool describe() {
  PyTypeObject& t = Request_type;
  Py_SET_REFCNT(&t, 1);
  t.tp_name = "strobe._native.Request";
  t.tp_basicsize = sizeof(Request);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_new = PyType_GenericNew;
  t.tp_init = init;
  t.tp_dealloc = free_request;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_methods = methods;
  t.tp_members = members;
  t.tp_getset = getters;
  return true;
}

bool add_requests(PyObject* module) {
  [[maybe_unused]] static const bool described = describe();
  return PyModule_AddType(module, &Request_type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace strobe::requests
