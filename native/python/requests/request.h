// request.h - requests of a service while they are answered, and the event loops that answer them: what is done for
// every callback of a loop and for every request. What is done only where something lasts 1 ms and more is in Python
// (src/strobe/record/adapters/service_requests).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

namespace strobe::requests {

constexpr int64_t kLongNs = 1000000;  // what is shorter is in sums only
constexpr unsigned kPolls = 8;        // of a loop that are known

// What is known of an event loop; its subclass in Python keeps the last long callbacks.
struct LoopState {
  PyObject_HEAD PyObject* loop;
  PyObject* ready;   // its queue of callbacks that can run, or NULL
  int64_t ended_ns;  // its last callback, or its last look for events
  int64_t held_ns;   // the end of its last callback that lasted a tick of the kernel and more
  int running;       // callbacks within each other
  uint64_t polled;   // how often it has looked for events: 0 where that is not seen
  struct Poll {
    int64_t ns;
    bool waited;
  } polls[kPolls];
};

// A request; its subclass in Python knows what its parts are.
struct Request {
  PyObject_HEAD PyObject* route;  // a text, or a callable that returns one
  PyObject* state;                // of its event loop; NULL: none that is watched
  PyObject* main;                 // the task that answers it
  PyObject* suspended;            // a dictionary: other tasks, and since when
  PyObject* pieces;               // a list: (task, begin, end, wait or None)
  PyObject* ready;                // a list: times in which it could have gone on
  PyObject* jobs;                 // a list: in executors
  long long number, arrived_ns, began_ns, ended_ns, running_ns, collecting_ns, main_suspended_ns;
  unsigned server, status;
  char written, in_thread;
};

// A connection of a server on streams: its task answers one request after the other.
struct Connection {
  PyObject_HEAD Request* own;  // the present one, or NULL
  PyObject* name;              // of the function that answers
  PyObject* protocol;          // a weak reference, which ends the connection
  long long wrote_ns;
};

// What the adapter in Python provides: `requests_setup`.
struct Adapter {
  PyObject* request;   // the subclass of Request
  PyObject* current;   // ContextVar: a request, or a connection
  PyObject* wait_of;   // (task, begin, end in ns) -> what it waits for
  PyObject* states;    // dictionary: loops, and the state of each
  PyObject* state_of;  // (loop) -> LoopState, made anew
  PyObject* arrived;   // (transport, state, looks) -> when the data came that a busy loop has read only now, ns
  PyObject* timer;     // asyncio.TimerHandle
  PyObject* tasks;     // types of tasks
  long long tick_ns;   // how exact `arrived` is
};
extern Adapter adapter;

extern PyTypeObject LoopState_type, Request_type, Connection_type;

// What is open in a context: a request, perhaps of a connection; or nothing.
class Open {
 public:
  explicit Open(PyObject* context);  // nullptr: the present one
  ~Open() { Py_XDECREF(value_); }
  Open(const Open&) = delete;
  Request* request() const;
  Connection* connection() const;

 private:
  PyObject* value_;
};

// An exception of ours is counted, and never gets into the program.
void not_read();

// A method that stands in a class for one of its own calls that one with what it was given.
PyObject* call_with(PyObject* original, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);

// An attribute by a name that is made once; new reference, nullptr: an exception is set.
#define STROBE_ATTRIBUTE(object, name)                                  \
  ([](PyObject* of) {                                                   \
    static PyObject* const interned = PyUnicode_InternFromString(name); \
    return PyObject_GetAttr(of, interned);                              \
  }(object))

// --- request.cpp
bool add_requests(PyObject* module);  // types and functions; false: an exception is set
Request* new_request(unsigned server, PyObject* loop, int64_t arrived_ns);  // nullptr: an exception is set
void begin(Request* request, PyObject* task, int64_t now_ns);
// A callback of the request is about to run, or has run; `task`: whose step that is, or nullptr.
void wakes(const Open& open, PyObject* handle, PyObject* task, int64_t now_ns);
void ran(const Open& open, PyObject* task, int64_t began_ns, int64_t ended_ns, int64_t collected_ns);

// --- event_loops.cpp
bool add_event_loops(PyObject* module);
LoopState* state_of(PyObject* loop);  // nullptr: an exception is set
// When the data came that was found `looks` looks for events ago: 1 is the present one. -1: an exception is set.
int64_t arrival(PyObject* loop, PyObject* transport, int looks);

// --- streams.cpp
bool add_streams(PyObject* module);

// --- awaits.cpp
bool add_awaits(PyObject* module);

}  // namespace strobe::requests
