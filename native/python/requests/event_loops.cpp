// event_loops.cpp - event loops: when each of their callbacks ran, and when they looked for events. asyncio's own run
// every callback through one method, `Handle._run`. Those of uvloop are in C; what is seen of them are the steps of
// tasks, which asyncio's tasks give to `call_soon`.
// Methods in C have no frame, so that tracebacks of the program are its own.
#include <Python.h>
#include <structmember.h>

#include <vector>

#include "core/system/clock.h"
#include "include/strobe.h"
#include "python/requests/request.h"

namespace strobe::requests {

namespace {

constexpr int64_t kWaitedNs = 200000;  // a look for events that lasts longer had none at first
// After a callback that held the loop up, a look may last because the thread had to wait for the GIL or a core.
constexpr int64_t kSettledNs = 20000000;
constexpr unsigned kNewConnection = 5;  // looks from the one that accepts a connection to the one that has its data

// What is replaced, and where the fields of asyncio.Handle are.
PyObject *handle_run, *process_events, *call_soon;
Py_ssize_t field_loop, field_context, field_callback;
int64_t collected_ns, collection_began_ns;  // by the garbage collector

PyObject* field(PyObject* handle, Py_ssize_t at) {
  PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(handle) + at);
  return value ? value : Py_None;
}

bool is_task(PyObject* object) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(adapter.tasks); i++) {
    PyObject* type = PyTuple_GET_ITEM(adapter.tasks, i);
    if (PyType_Check(type) && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type))) return true;
  }
  return false;
}

// The task whose step or wake-up a callback is; new reference, or nullptr.
PyObject* task_of(PyObject* callback) {
  PyObject* owner;
  if (PyCFunction_Check(callback))
    owner = Py_XNewRef(PyCFunction_GET_SELF(callback));
  else if (PyMethod_Check(callback))
    owner = Py_NewRef(PyMethod_GET_SELF(callback));
  else if (PyFunction_Check(callback))
    return nullptr;
  else if (!(owner = STROBE_ATTRIBUTE(callback, "__self__")))
    PyErr_Clear();
  if (owner && !is_task(owner)) Py_CLEAR(owner);
  return owner;
}

void note_look(LoopState* state, int64_t now_ns) {
  const bool waited = now_ns - state->ended_ns >= kWaitedNs && now_ns - state->held_ns >= kSettledNs;
  state->polls[state->polled++ % kPolls] = {now_ns, waited};
  state->ended_ns = now_ns;
}

const LoopState::Poll& poll_of(const LoopState* state, uint64_t back) {
  return state->polls[(state->polled - 1 - back) % kPolls];
}

// Since when what the last look for events found may have been there, if it was not there `looks` looks earlier.
int64_t since(const LoopState* state, unsigned looks) {
  const auto known = unsigned(state->polled < kPolls ? state->polled : kPolls);
  for (unsigned back = 0; back < looks && back < known; back++)
    if (poll_of(state, back).waited) return poll_of(state, back).ns;
  return poll_of(state, looks < known ? looks : known - 1).ns;
}

// Runs a callback, with everything that is measured around it.
template <typename Run>
PyObject* watched(PyObject* handle, PyObject* loop, PyObject* context, PyObject* callback, Run run) {
  LoopState* const state = state_of(loop);
  if (!state) {
    not_read();
    return run();
  }
  Py_INCREF(context);
  Py_INCREF(callback);
  // One callback follows the other: its end is the next one's begin, which saves a look at the clock.
  const int64_t began_ns = state->polled && !state->running ? state->ended_ns : monotonic_ns();
  PyObject* task = nullptr;
  if (const Open open(context); open.request() || open.connection()) {
    task = task_of(callback);
    wakes(open, handle, task, began_ns);
  }
  const Py_ssize_t waiting = state->ready ? PyObject_Size(state->ready) : 0;
  const int64_t collected_before = collected_ns;
  state->running++;
  PyObject* const result = run();
  state->running--;
  const int64_t ended_ns = state->ended_ns = monotonic_ns();
  if (result) {
    const int64_t collected = collected_ns - collected_before;
    if (ended_ns - began_ns >= adapter.tick_ns) state->held_ns = ended_ns;
    if (ended_ns - began_ns >= kLongNs) {
      Py_XDECREF(PyObject_CallMethod(reinterpret_cast<PyObject*>(state), "ran_long", "OLLLn", handle,
                                     static_cast<long long>(began_ns), static_cast<long long>(ended_ns),
                                     static_cast<long long>(collected), waiting));
      not_read();
    }
    if (const Open open(context); open.request()) {
      if (!task) task = task_of(callback);
      ran(open, task, began_ns, ended_ns, collected);
    }
  }
  Py_XDECREF(task);
  Py_DECREF(callback);
  Py_DECREF(context);
  Py_DECREF(state);
  return result;
}

// --- loops of asyncio

PyObject* run_handle(PyObject* self, PyObject*) {
  return watched(self, field(self, field_loop), field(self, field_context), field(self, field_callback),
                 [self] { return PyObject_CallOneArg(handle_run, self); });
}
PyMethodDef run_def = {"_run", run_handle, METH_NOARGS, nullptr};

PyObject* look(PyObject* self, PyObject* events) {
  if (LoopState* state = state_of(self)) {
    note_look(state, monotonic_ns());
    Py_DECREF(state);
  } else {
    not_read();
  }
  PyObject* arguments[] = {self, events};
  return PyObject_Vectorcall(process_events, arguments, 2, nullptr);
}
PyMethodDef look_def = {"_process_events", look, METH_O, nullptr};

// --- loops of uvloop: a callback that is given to them in place of a task's step. It has the names of a Handle's
// fields

struct Step {
  PyObject_HEAD PyObject *loop, *context, *callback;
  vectorcallfunc vectorcall;
};

PyObject* run_step(PyObject* self, PyObject* const* args, size_t n, PyObject* names) {
  Step* const step = reinterpret_cast<Step*>(self);
  if (LoopState* state = state_of(step->loop)) {
    if (state->ready)  // what uvloop has cancelled is before it
      for (PyObject* first = nullptr; first != self && PyObject_Size(state->ready) > 0;) {
        first = PyObject_CallMethod(state->ready, "popleft", nullptr);
        Py_XDECREF(first);
        if (!first) break;
      }
    Py_DECREF(state);
  }
  not_read();
  return watched(self, step->loop, step->context, step->callback,
                 [=] { return PyObject_Vectorcall(step->callback, args, n, names); });
}

int traverse_step(PyObject* self, visitproc visit, void* arg) {
  Step* const step = reinterpret_cast<Step*>(self);
  for (PyObject* each : {step->loop, step->context, step->callback}) Py_VISIT(each);
  return 0;
}

void free_step(PyObject* self) {
  Step* const step = reinterpret_cast<Step*>(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(step->loop);
  Py_CLEAR(step->context);
  Py_CLEAR(step->callback);
  PyObject_GC_Del(self);
}

PyObject* repr_step(PyObject* self) { return PyObject_Repr(reinterpret_cast<Step*>(self)->callback); }

PyMemberDef step_members[] = {{"_loop", T_OBJECT, offsetof(Step, loop), READONLY, nullptr},
                              {"_context", T_OBJECT, offsetof(Step, context), READONLY, nullptr},
                              {"_callback", T_OBJECT, offsetof(Step, callback), READONLY, nullptr},
                              {}};

PyTypeObject Step_type{};

// The `context` of call_soon, or a copy of the present one; new reference.
PyObject* context_of(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "context") == 0 && args[n + i] != Py_None)
      return Py_NewRef(args[n + i]);
  return PyContext_CopyCurrent();
}

PyObject* give(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* const task = n > 0 ? task_of(args[0]) : nullptr;
  PyObject* const context = task ? context_of(args, n, names) : nullptr;
  Step* const step = context ? PyObject_GC_New(Step, &Step_type) : nullptr;
  Py_XDECREF(task);
  if (!step) {
    Py_XDECREF(context);
    not_read();
    return call_with(call_soon, self, args, n, names);
  }
  step->loop = Py_NewRef(self), step->callback = Py_NewRef(args[0]), step->context = context;
  step->vectorcall = run_step;
  PyObject_GC_Track(step);
  std::vector<PyObject*> given(args, args + n + (names ? PyTuple_GET_SIZE(names) : 0));
  given[0] = reinterpret_cast<PyObject*>(step);
  PyObject* const result = call_with(call_soon, self, given.data(), n, names);
  if (result) {
    LoopState* const state = state_of(self);
    if (state && state->ready) Py_XDECREF(PyObject_CallMethod(state->ready, "append", "O", step));
    Py_XDECREF(state);
    not_read();
  }
  Py_DECREF(step);
  return result;
}
PyMethodDef give_def = {"call_soon", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(give)),
                        METH_FASTCALL | METH_KEYWORDS, nullptr};

// --- collections of garbage

PyObject* collecting(PyObject*, PyObject* const* args, Py_ssize_t n) {
  const bool begins = n > 0 && PyUnicode_Check(args[0]) && PyUnicode_CompareWithASCIIString(args[0], "start") == 0;
  if (begins) {
    collection_began_ns = monotonic_ns();
  } else if (collection_began_ns) {
    collected_ns += monotonic_ns() - collection_began_ns;
  }
  Py_RETURN_NONE;
}

// --- functions of the extension module

Py_ssize_t offset_of(PyObject* type, const char* name) {
  PyObject* member = PyObject_GetAttrString(type, name);
  if (!member) return -1;
  Py_ssize_t found = -1;
  if (Py_IS_TYPE(member, &PyMemberDescr_Type))
    found = reinterpret_cast<PyMemberDescrObject*>(member)->d_member->offset;
  else
    PyErr_Format(PyExc_TypeError, "asyncio.Handle.%s is not a slot", name);
  Py_DECREF(member);
  return found;
}

// What stands in a class for one of its methods: a method in C that calls the original.
PyObject* in_place_of(PyObject* type, const char* name, PyObject** original, PyMethodDef* def) {
  PyObject* now = PyObject_GetAttrString(type, name);
  if (!now) return nullptr;
  Py_XSETREF(*original, now);
  return PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type), def);
}

PyObject* watch_handles(PyObject*, PyObject* type) {
  if ((field_loop = offset_of(type, "_loop")) < 0 || (field_context = offset_of(type, "_context")) < 0 ||
      (field_callback = offset_of(type, "_callback")) < 0)
    return nullptr;
  return in_place_of(type, "_run", &handle_run, &run_def);
}

PyObject* watch_looks(PyObject*, PyObject* type) {
  return in_place_of(type, "_process_events", &process_events, &look_def);
}

PyObject* watch_steps(PyObject*, PyObject* type) { return in_place_of(type, "call_soon", &call_soon, &give_def); }

PyObject* arrival_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  const int looks = n == 3 ? int(PyLong_AsLong(args[2])) : 0;
  if (looks < 1) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "arrival(loop, transport, looks)");
    return nullptr;
  }
  const int64_t ns = arrival(args[0], args[1], looks);
  return ns == -1 && PyErr_Occurred() ? nullptr : PyLong_FromLongLong(ns);
}

PyMethodDef functions[] = {
    {"requests_watch_handles", watch_handles, METH_O, nullptr},
    {"requests_watch_looks", watch_looks, METH_O, nullptr},
    {"requests_watch_steps", watch_steps, METH_O, nullptr},
    {"requests_arrival", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(arrival_function)), METH_FASTCALL,
     nullptr},
    {"requests_collecting", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(collecting)), METH_FASTCALL,
     nullptr},
    {}};

// --- the state of a loop

int init(PyObject* self, PyObject* args, PyObject*) {
  LoopState* const state = reinterpret_cast<LoopState*>(self);
  PyObject *loop, *ready;
  if (!PyArg_ParseTuple(args, "OO", &loop, &ready)) return -1;
  Py_XSETREF(state->loop, Py_NewRef(loop));
  Py_XSETREF(state->ready, ready == Py_None ? nullptr : Py_NewRef(ready));
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  const LoopState* state = reinterpret_cast<LoopState*>(self);
  Py_VISIT(state->loop);
  Py_VISIT(state->ready);
  return 0;
}

int clear(PyObject* self) {
  LoopState* const state = reinterpret_cast<LoopState*>(self);
  Py_CLEAR(state->loop);
  Py_CLEAR(state->ready);
  return 0;
}

void free_state(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* looked_ns(PyObject* self, void*) {
  const LoopState* state = reinterpret_cast<LoopState*>(self);
  return PyLong_FromLongLong(state->polled ? poll_of(state, 0).ns : 0);
}

PyObject* may_be_there_since(PyObject* self, PyObject* looks) {
  const LoopState* state = reinterpret_cast<LoopState*>(self);
  const long back = PyLong_AsLong(looks);
  if (back == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLongLong(state->polled ? since(state, back > 0 ? unsigned(back) : kNewConnection) : 0);
}

PyMethodDef state_methods[] = {
    {"since", may_be_there_since, METH_O,
     "since(looks) -> ns: when data that was found so many looks ago may have come at the earliest; 0: on a new one"},
    {}};
PyMemberDef state_members[] = {{"ready", T_OBJECT, offsetof(LoopState, ready), READONLY, nullptr}, {}};
PyGetSetDef state_getters[] = {{"looked_ns", looked_ns, nullptr, nullptr, nullptr}, {}};

}  // namespace

PyTypeObject LoopState_type{};

LoopState* state_of(PyObject* loop) {
  PyObject* state = PyDict_GetItemWithError(adapter.states, loop);
  if (state) return reinterpret_cast<LoopState*>(Py_NewRef(state));
  if (PyErr_Occurred()) return nullptr;
  state = PyObject_CallOneArg(adapter.state_of, loop);
  if (state && !PyObject_TypeCheck(state, &LoopState_type)) {
    PyErr_SetString(PyExc_TypeError, "the state of an event loop is a LoopState");
    Py_CLEAR(state);
  }
  return reinterpret_cast<LoopState*>(state);
}

int64_t arrival(PyObject* loop, PyObject* transport, int looks) {
  LoopState* const state = state_of(loop);
  if (!state) return -1;
  int64_t ns = state->polled ? poll_of(state, 0).ns : 0;
  if (!ns || ns - since(state, kNewConnection) >= adapter.tick_ns) {
    PyObject* exact = PyObject_CallFunction(adapter.arrived, "OOi", transport, state, looks);
    ns = exact ? PyLong_AsLongLong(exact) : -1;
    Py_XDECREF(exact);
  }
  Py_DECREF(state);
  return ns;
}

// Once: a type is that of all interpreters, and ready after the first.
static bool describe() {
  PyTypeObject& t = LoopState_type;
  Py_SET_REFCNT(&t, 1);
  t.tp_name = "strobe._native.LoopState";
  t.tp_basicsize = sizeof(LoopState);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_new = PyType_GenericNew;
  t.tp_init = init;
  t.tp_dealloc = free_state;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_methods = state_methods;
  t.tp_members = state_members;
  t.tp_getset = state_getters;
  PyTypeObject& s = Step_type;
  Py_SET_REFCNT(&s, 1);
  s.tp_name = "strobe._native.Step";
  s.tp_basicsize = sizeof(Step);
  s.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  s.tp_vectorcall_offset = offsetof(Step, vectorcall);
  s.tp_call = PyVectorcall_Call;
  s.tp_dealloc = free_step;
  s.tp_traverse = traverse_step;
  s.tp_repr = repr_step;
  s.tp_members = step_members;
  return PyType_Ready(&s) == 0;
}

bool add_event_loops(PyObject* module) {
  static const bool described = describe();
  return described && PyModule_AddType(module, &LoopState_type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace strobe::requests
