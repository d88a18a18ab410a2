// window_triggers.cpp - what opens and closes recording windows from outside of the program's own code: a moment in
// time, and a word that the process which counts steps shares with its children. One sleeping thread; the work itself
// is done by the main thread, as a pending call, so that adapters see the thread that they are for.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/system/clock.h"
#include "core/system/threads.h"
#include "python/recording/node_requests.h"
#include "python/recording/window_page.h"
extern "C" {
#include "python/recording/after_fork.h"
}

namespace nb = nanobind;

namespace {

using strobe::clock_ns;
using strobe::monotonic_ns;
using strobe::NodeRequests;
using strobe::WindowPage;
using strobe::WindowRequest;

struct Watch {
  WindowPage own{};
  WindowPage* page = &own;  // later the one that is shared with the processes of this program
  std::atomic<int64_t> due_ns{INT64_MAX};
  std::atomic<bool> quit{false};
  bool runs = false, follows = false;
  bool rests = false;  // while the process forks
  pthread_t thread{};
  std::atomic<uint32_t> thread_id{0};
  PyObject* call = nullptr;
  NodeRequests nodes;  // of other nodes, while this process is armed
};
Watch watch;

int called(void*) {
  if (!watch.call) return 0;
#if PY_VERSION_HEX >= 0x030C0000  // tools of the program see nothing of it; before, ours would see nothing, either
  PyThreadState* thread = PyThreadState_Get();
  PyThreadState_EnterTracing(thread);
#endif
  PyObject* result = PyObject_CallNoArgs(watch.call);
  if (!result) PyErr_Clear();  // the callback reports its own errors; none goes into the program
  Py_XDECREF(result);
#if PY_VERSION_HEX >= 0x030C0000
  PyThreadState_LeaveTracing(thread);
#endif
  return 0;
}

void call_soon() {
  // The queue has 32 places; somebody who fills it empties it, too.
  while (Py_AddPendingCall(called, nullptr) != 0 && !watch.quit) usleep(1000);
}

void wake() { syscall(SYS_futex, &watch.page->word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

bool takes_requests() { return !watch.follows && watch.page->armed; }

void* sleep_and_tell(void*) {
  pthread_setname_np(pthread_self(), "strobe window");
  watch.thread_id = uint32_t(strobe::thread_id());
  uint32_t seen = watch.page->word.load();
  int64_t asked = watch.page->answered.load(), poll_ns = clock_ns(CLOCK_MONOTONIC);
  while (!watch.quit) {
    int64_t wait_ns = watch.due_ns.load();
    if (wait_ns != INT64_MAX) wait_ns = std::max<int64_t>(0, wait_ns - monotonic_ns());
    if (takes_requests()) {
      if (clock_ns(CLOCK_MONOTONIC) >= poll_ns) {
        poll_ns = clock_ns(CLOCK_MONOTONIC) + NodeRequests::kPeriodNs;
        watch.nodes.poll();
      }
      wait_ns = std::min(wait_ns, std::max<int64_t>(0, poll_ns - clock_ns(CLOCK_MONOTONIC)));
    }
    const timespec left = {time_t(wait_ns / 1000000000), long(wait_ns % 1000000000)};
    syscall(SYS_futex, &watch.page->word, FUTEX_WAIT, seen, wait_ns == INT64_MAX ? nullptr : &left, nullptr, 0);
    if (watch.quit) break;
    const uint32_t now = watch.page->word.load();
    const bool changed = now != seen;
    seen = now;
    if (monotonic_ns() >= watch.due_ns.load()) {
      watch.due_ns = INT64_MAX;
      call_soon();
    } else if (changed && watch.follows) {
      call_soon();
    } else if (takes_requests() && watch.page->request.load() != asked) {
      asked = watch.page->request.load();
      call_soon();
    }
  }
  return nullptr;
}

void begin_thread() {
  if (watch.runs) return;
  watch.quit = false;
  watch.runs = strobe::start_own_thread(watch.thread, 128 << 10, sleep_and_tell, nullptr) == 0;
}

void end_thread() {
  if (!watch.runs) return;
  watch.quit = true;
  {
    nb::gil_scoped_release release;
    // Between its look at `quit` and its sleep a wake would be missed: it is repeated until the thread has gone.
    while (pthread_tryjoin_np(watch.thread, nullptr) == EBUSY) wake(), usleep(200);
    strobe::wait_until_gone(watch.thread_id);
  }
  watch.runs = false;
}

void rest() {
  watch.rests = watch.rests || watch.runs;
  end_thread();
}

void go_on() {
  if (std::exchange(watch.rests, false)) begin_thread();
}

[[noreturn]] void raise_os_error(const std::string& file) {
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, file.c_str());
  throw nb::python_error();
}

// The page of a process of this node. Raises OSError.
WindowPage* mapped(const std::string& file, bool leads) {
  void* page = strobe::shared_page(file.c_str(), leads);
  if (!page) raise_os_error(file);
  return static_cast<WindowPage*>(page);
}

// `file` holds the shared page. Who leads makes it; who follows is woken by changes of the window.
void watch_begin(const std::string& file, nb::object callback, bool leads) {
  WindowPage* page = mapped(file, leads);
  if (watch.page != &watch.own) strobe::release_page(watch.page);
  watch.page = page;
  watch.follows = !leads;
  Py_XDECREF(watch.call);
  watch.call = callback.release().ptr();
}

// Requests are taken from now on, also those of other nodes. Raises OSError.
void watch_arm(const std::string& file, int64_t rank) {
  watch.page->rank = rank, watch.page->armed = 1;
  if (!watch.nodes.begin(file)) raise_os_error(file);
}

void watch_tell(uint32_t word) {
  WindowPage& page = *watch.page;
  if (word) page.opened_step = page.steps.load(), page.opened_request = page.answered.load();
  page.word = word;
  wake();
}

nb::object watch_request() {
  WindowPage& page = *watch.page;
  const int64_t newest = page.request.load();
  if (page.answered.load() == newest) return nb::none();
  nb::tuple request = nb::make_tuple(page.begin_step.load(), page.step_count.load(), page.for_ns.load());
  page.answered = newest;
  return request;
}

// Of a process that leads: armed, rank, steps, newest request taken, request and step at which the window was opened
// last, whether it is open, newest look that this was written for.
nb::tuple window_state(const std::string& file) {
  WindowPage page;
  if (!strobe::read_page(file.c_str(), page)) raise_os_error(file);
  return nb::make_tuple(page.armed.load() != 0, page.rank.load(), page.steps.load(), page.answered.load(),
                        page.opened_request.load(), page.opened_step.load(), page.word.load() != 0, page.look.load());
}

// Raises OSError.
void window_request(const std::string& file, int64_t number, int64_t begin_step, int64_t step_count, int64_t for_ns) {
  WindowPage* page = mapped(file, false);
  strobe::request_window(*page, number, begin_step, step_count, for_ns);
  strobe::release_page(page);
}

int64_t nodes_look(const std::string& folder) {
  const int64_t number = strobe::look_at_nodes(folder);
  return number > 0 ? number : (raise_os_error(folder), 0);
}

int64_t nodes_request(const std::string& folder, const std::string& host, int64_t begin_step, int64_t step_count,
                      int64_t for_ns) {
  WindowRequest request{.begin_step = begin_step, .step_count = step_count, .for_ns = for_ns};
  host.copy(request.host, sizeof request.host - 1);
  const int64_t number = strobe::request_of_nodes(folder, request);
  return number > 0 ? number : (raise_os_error(folder), 0);
}

}  // namespace

void register_windows(nb::module_& m) {
  m.def("watch_begin", &watch_begin, nb::arg("file"), nb::arg("callback"), nb::arg("leads"));
  m.def("watch_word", [] { return watch.page->word.load(); });
  m.def("watch_tell", &watch_tell);
  // The callback is called when a request has come: see `watch_request`.
  m.def("watch_arm", &watch_arm, nb::arg("file"), nb::arg("rank"));
  m.def("watch_disarm", [] { watch.page->armed = 0, watch.nodes.end(); });
  m.def("watch_steps", [](int64_t steps) { watch.page->steps = steps; });
  // The newest request, once: the step before which the window opens, how many steps, and for how long (ns).
  m.def("watch_request", &watch_request);
  m.def("window_state", &window_state, nb::arg("file"));
  m.def("window_request", &window_request, nb::arg("file"), nb::arg("number"), nb::arg("begin_step"),
        nb::arg("step_count"), nb::arg("for_ns"));
  m.def("node_answer", &strobe::answer_of_node, nb::arg("folder"), nb::arg("host"));
  m.def("nodes_look", &nodes_look, nb::arg("folder"));
  m.def("nodes_request", &nodes_request, nb::arg("folder"), nb::arg("host"), nb::arg("begin_step"),
        nb::arg("step_count"), nb::arg("for_ns"));
  // The callback is called soon after this moment of CLOCK_MONOTONIC; below 0: never.
  m.def("watch_due", [](int64_t ns) { watch.due_ns = ns < 0 ? INT64_MAX : ns, wake(); });
  // Whether the thread is to run.
  m.def("watch_run", [](bool on) {
    watch.rests = false;
    on ? begin_thread() : end_thread();
  });
  m.def("watch_before_fork", &rest);
  m.def("watch_after_fork", [] { after_fork_call(go_on); });
  m.def("watch_forked", [] {  // in a child
    watch.runs = watch.rests = false, watch.follows = true;
    watch.nodes.forget();
  });
}
