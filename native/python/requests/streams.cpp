// streams.cpp - requests to servers on streams of asyncio (`asyncio.start_server`): one begins with data that comes,
// and ends with what was written before the next wait for data.
#include <Python.h>
#include <structmember.h>

#include <cstring>

#include "core/system/clock.h"
#include "include/strobe.h"
#include "python/requests/request.h"

namespace strobe::requests {

namespace {

PyObject *connection_made, *data_received, *write, *wait_for_data;  // the originals
PyObject* connections;                                              // a dictionary: by identity of the protocol
PyObject* connect;                                                  // (protocol) -> Connection, put into it
PyObject* route_of;  // (data) -> route of a request in HTTP, or an empty text
unsigned server;

using Method = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
PyCFunction method(Method function) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)); }

Connection* connection_of(PyObject* protocol) {
  PyObject* key = PyLong_FromVoidPtr(protocol);
  PyObject* found = key ? PyDict_GetItemWithError(connections, key) : nullptr;
  Py_XDECREF(key);
  return found && Py_IS_TYPE(found, &Connection_type) ? reinterpret_cast<Connection*>(found) : nullptr;
}

// METHOD /..., which may be HTTP.
bool may_be_http(PyObject* data) {
  if (!PyBytes_Check(data)) return false;
  const char* at = PyBytes_AS_STRING(data);
  const char* const end = at + PyBytes_GET_SIZE(data);
  const char* const method = at;
  while (at < end && *at >= 'A' && *at <= 'Z') at++;
  return at - method >= 3 && at - method <= 10 && at < end && *at == ' ';
}

// Of HTTP/1.1 200 OK; 0 where data does not begin so.
unsigned status_of(PyObject* data) {
  if (!PyBytes_Check(data) || PyBytes_GET_SIZE(data) < 12) return 0;
  const char* at = PyBytes_AS_STRING(data);
  if (memcmp(at, "HTTP/1.", 7) != 0 || at[8] != ' ') return 0;
  unsigned status = 0;
  for (int i = 9; i < 12; i++) {
    if (at[i] < '0' || at[i] > '9') return 0;
    status = status * 10 + unsigned(at[i] - '0');
  }
  return status;
}

void request_comes(Connection* c, PyObject* protocol, PyObject* data) {
  PyObject* loop = STROBE_ATTRIBUTE(protocol, "_loop");
  PyObject* transport = loop ? STROBE_ATTRIBUTE(protocol, "_transport") : nullptr;
  const int64_t arrived_ns = transport ? arrival(loop, transport, 1) : -1;
  Request* r = arrived_ns != -1 ? new_request(server, loop, arrived_ns) : nullptr;
  if (r) {
    PyObject* route = may_be_http(data) ? PyObject_CallOneArg(route_of, data) : nullptr;
    if (route && PyUnicode_Check(route) && PyUnicode_GET_LENGTH(route) == 0) Py_CLEAR(route);
    Py_XSETREF(r->route, route ? route : Py_NewRef(c->name));
    c->wrote_ns = 0;
    Py_XSETREF(c->own, r);
  }
  Py_XDECREF(transport);
  Py_XDECREF(loop);
  not_read();
}

PyObject* made(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* answers = STROBE_ATTRIBUTE(self, "_client_connected_cb");
  PyObject* connection = answers && answers != Py_None ? PyObject_CallOneArg(connect, self) : nullptr;
  Py_XDECREF(answers);
  // The task of the connection copies the context that it is made in.
  PyObject* before = connection ? PyContextVar_Set(adapter.current, connection) : nullptr;
  Py_XDECREF(connection);
  not_read();
  PyObject* result = call_with(connection_made, self, args, n, names);
  if (before) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyContextVar_Reset(adapter.current, before) != 0) not_read();
    PyErr_Restore(type, value, traceback);
    Py_DECREF(before);
  }
  return result;
}
PyMethodDef made_def = {"connection_made", method(made), METH_FASTCALL | METH_KEYWORDS, nullptr};

PyObject* received(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  if (Connection* c = connection_of(self); c && !c->own && n) request_comes(c, self, args[0]);
  not_read();
  return call_with(data_received, self, args, n, names);
}
PyMethodDef received_def = {"data_received", method(received), METH_FASTCALL | METH_KEYWORDS, nullptr};

PyObject* written(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* result = call_with(write, self, args, n, names);
  if (!result) return nullptr;
  // A handler may write to other services, too.
  PyObject* protocol = STROBE_ATTRIBUTE(self, "_protocol");
  if (Connection* c = protocol ? connection_of(protocol) : nullptr; c && c->own) {
    if (const unsigned status = c->wrote_ns || !n ? 0 : status_of(args[0])) c->own->status = status;
    c->wrote_ns = monotonic_ns();
  }
  Py_XDECREF(protocol);
  not_read();
  return result;
}
PyMethodDef written_def = {"write", method(written), METH_FASTCALL | METH_KEYWORDS, nullptr};

// Whether a reader is the connection's own, not that of another service which its handler asks.
bool reads(const Connection* c, PyObject* reader) {
  PyObject* protocol = PyObject_CallNoArgs(c->protocol);
  PyObject* own = protocol && protocol != Py_None ? STROBE_ATTRIBUTE(protocol, "_stream_reader") : nullptr;
  const bool is = own == reader;
  Py_XDECREF(own);
  Py_XDECREF(protocol);
  return is;
}

PyObject* waits(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  {
    const Open open(nullptr);
    if (Connection* c = open.connection(); c && c->own && c->wrote_ns && reads(c, self)) c->own->ended_ns = c->wrote_ns;
    not_read();
  }
  return call_with(wait_for_data, self, args, n, names);
}
PyMethodDef waits_def = {"_wait_for_data", method(waits), METH_FASTCALL | METH_KEYWORDS, nullptr};

// requests_watch_streams(protocol, reader, writer, connections, connect, route_of, server) -> what replaces
// connection_made and data_received of the protocol, _wait_for_data of the reader, write of the writer
PyObject* watch_streams(PyObject*, PyObject* args) {
  PyObject *protocol, *reader, *writer, *by_identity, *connecting, *routing;
  if (!PyArg_ParseTuple(args, "OOOO!OOI", &protocol, &reader, &writer, &PyDict_Type, &by_identity, &connecting,
                        &routing, &server))
    return nullptr;
  Py_XSETREF(connections, Py_NewRef(by_identity));
  Py_XSETREF(connect, Py_NewRef(connecting));
  Py_XSETREF(route_of, Py_NewRef(routing));
  struct {
    PyObject* type;
    PyObject** original;
    PyMethodDef* def;
  } const replaced[] = {{protocol, &connection_made, &made_def},
                        {protocol, &data_received, &received_def},
                        {reader, &wait_for_data, &waits_def},
                        {writer, &write, &written_def}};
  PyObject* all = PyTuple_New(4);
  for (Py_ssize_t i = 0; all && i < 4; i++) {
    PyObject* now = PyObject_GetAttrString(replaced[i].type, replaced[i].def->ml_name);
    PyObject* ours =
        now ? PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(replaced[i].type), replaced[i].def) : nullptr;
    Py_XSETREF(*replaced[i].original, now);
    if (ours)
      PyTuple_SET_ITEM(all, i, ours);
    else
      Py_CLEAR(all);
  }
  return all;
}

PyMethodDef functions[] = {{"requests_watch_streams", watch_streams, METH_VARARGS, nullptr}, {}};

// --- the type

int init(PyObject* self, PyObject* args, PyObject*) {
  Connection* c = reinterpret_cast<Connection*>(self);
  PyObject *name, *protocol;
  if (!PyArg_ParseTuple(args, "UO", &name, &protocol)) return -1;
  Py_XSETREF(c->name, Py_NewRef(name));
  Py_XSETREF(c->protocol, Py_NewRef(protocol));
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Connection* c = reinterpret_cast<Connection*>(self);
  Py_VISIT(c->own);
  Py_VISIT(c->protocol);
  return 0;
}

int clear(PyObject* self) {
  Connection* c = reinterpret_cast<Connection*>(self);
  Py_CLEAR(c->own);
  Py_CLEAR(c->name);
  Py_CLEAR(c->protocol);
  return 0;
}

void free_connection(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* get_own(PyObject* self, void*) {
  Request* own = reinterpret_cast<Connection*>(self)->own;
  return Py_NewRef(own ? reinterpret_cast<PyObject*>(own) : Py_None);
}
PyObject* get_written(PyObject* self, void*) {
  const Request* own = reinterpret_cast<Connection*>(self)->own;
  return PyBool_FromLong(!own || own->written);
}
PyObject* list_of(PyObject* self, const char* name) {
  Request* own = reinterpret_cast<Connection*>(self)->own;
  return own ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(own), name) : PyList_New(0);
}
PyObject* get_ready(PyObject* self, void*) { return list_of(self, "ready"); }
PyObject* get_jobs(PyObject* self, void*) { return list_of(self, "jobs"); }

PyGetSetDef getters[] = {{"own", get_own, nullptr, nullptr, nullptr},
                         {"written", get_written, nullptr, nullptr, nullptr},
                         {"ready", get_ready, nullptr, nullptr, nullptr},
                         {"jobs", get_jobs, nullptr, nullptr, nullptr},
                         {}};

}  // namespace

PyTypeObject Connection_type{};

// Once: a type is that of all interpreters, and ready after the first.
static bool describe() {
  PyTypeObject& t = Connection_type;
  Py_SET_REFCNT(&t, 1);
  t.tp_name = "strobe._native.Connection";
  t.tp_basicsize = sizeof(Connection);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  t.tp_new = PyType_GenericNew;
  t.tp_init = init;
  t.tp_dealloc = free_connection;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_getset = getters;
  return true;
}

bool add_streams(PyObject* module) {
  [[maybe_unused]] static const bool described = describe();
  return PyModule_AddType(module, &Connection_type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace strobe::requests
