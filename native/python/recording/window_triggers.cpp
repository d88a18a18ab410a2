// window_triggers.cpp - what opens and closes recording windows from outside of the program's own code: a moment in
// time, and a word that the process which counts steps shares with its children. One sleeping thread; the work itself
// is done by the main thread, as a pending call, so that adapters see the thread that they are for.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/system/clock.h"
#include "core/system/threads.h"
extern "C" {
#include "python/recording/after_fork.h"
}

namespace nb = nanobind;

namespace {

using strobe::monotonic_ns;

constexpr size_t kPageBytes = 4096;

// What the process that leads shares with its children, and with whoever asks it to record: `strobe job record`.
struct Page {
  std::atomic<uint32_t> word;      // the window: closed, open
  std::atomic<uint32_t> request;   // number of the newest request
  std::atomic<uint32_t> answered;  // number of the newest request that was taken
  std::atomic<uint32_t> armed;     // whether requests are taken
  std::atomic<int64_t> rank;       // below 0: none
  std::atomic<int64_t> steps;      // that have begun
  // The request: before which step the window opens (below 0: at once), for how many steps (0: no limit), for how long.
  std::atomic<int64_t> begin_step, step_count, for_ns;
};

struct Watch {
  Page own{};
  Page* page = &own;  // later the one that is shared with the processes of this program
  std::atomic<int64_t> due_ns{INT64_MAX};
  std::atomic<bool> quit{false};
  bool runs = false, follows = false;
  bool rests = false;  // while the process forks
  pthread_t thread{};
  std::atomic<uint32_t> thread_id{0};
  PyObject* call = nullptr;
};
Watch watch;

int called(void*) {
  if (!watch.call) return 0;
  PyObject* result = PyObject_CallNoArgs(watch.call);
  if (!result) PyErr_Clear();  // the callback reports its own errors; none goes into the program
  Py_XDECREF(result);
  return 0;
}

void call_soon() {
  // The queue has 32 places; somebody who fills it empties it, too.
  while (Py_AddPendingCall(called, nullptr) != 0 && !watch.quit) usleep(1000);
}

void wake() { syscall(SYS_futex, &watch.page->word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

void* sleep_and_tell(void*) {
  pthread_setname_np(pthread_self(), "strobe window");
  watch.thread_id = uint32_t(strobe::thread_id());
  uint32_t seen = watch.page->word.load(), asked = watch.page->answered.load();
  while (!watch.quit) {
    const int64_t due = watch.due_ns.load();
    timespec left{};
    if (due != INT64_MAX) {
      const int64_t ns = std::max<int64_t>(0, due - monotonic_ns());
      left = {time_t(ns / 1000000000), long(ns % 1000000000)};
    }
    syscall(SYS_futex, &watch.page->word, FUTEX_WAIT, seen, due == INT64_MAX ? nullptr : &left, nullptr, 0);
    if (watch.quit) break;
    const uint32_t now = watch.page->word.load();
    const bool changed = now != seen;
    seen = now;
    if (monotonic_ns() >= watch.due_ns.load()) {
      watch.due_ns = INT64_MAX;
      call_soon();
    } else if (changed && watch.follows) {
      call_soon();
    } else if (!watch.follows && watch.page->armed && watch.page->request.load() != asked) {
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

// The page in a file. Who leads makes it. Raises OSError.
Page* mapped(const std::string& file, bool leads) {
  const int fd = open(file.c_str(), leads ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
  void* map = MAP_FAILED;
  // A page of a hole that finds no room on the disk is a SIGBUS: who leads has its page from the beginning.
  int error = fd < 0 ? errno : leads ? posix_fallocate(fd, 0, kPageBytes) : 0;
  if (!error) {
    map = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  if (fd >= 0) close(fd);
  if (map == MAP_FAILED && fd >= 0 && leads) unlink(file.c_str());
  if (map == MAP_FAILED) {
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, file.c_str());
    throw nb::python_error();
  }
  return static_cast<Page*>(map);
}

// `file` holds the shared page. Who leads makes it; who follows is woken by changes of the window.
void watch_begin(const std::string& file, nb::object callback, bool leads) {
  Page* page = mapped(file, leads);
  if (watch.page != &watch.own) munmap(watch.page, kPageBytes);
  watch.page = page;
  watch.follows = !leads;
  Py_XDECREF(watch.call);
  watch.call = callback.release().ptr();
}

// Of a process that leads: whether it takes requests, its rank, its steps, and whether the newest request was taken.
nb::tuple window_state(const std::string& file) {
  Page* page = mapped(file, false);
  nb::tuple state = nb::make_tuple(page->armed.load() != 0, page->rank.load(), page->steps.load(),
                                   page->answered.load() == page->request.load(), page->word.load() != 0);
  munmap(page, kPageBytes);
  return state;
}

void window_request(const std::string& file, int64_t begin_step, int64_t step_count, int64_t for_ns) {
  Page* page = mapped(file, false);
  page->begin_step = begin_step, page->step_count = step_count, page->for_ns = for_ns;
  page->request++;
  syscall(SYS_futex, &page->word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  munmap(page, kPageBytes);
}

nb::object watch_request() {
  Page& page = *watch.page;
  const uint32_t newest = page.request.load();
  if (page.answered.load() == newest) return nb::none();
  nb::tuple request = nb::make_tuple(page.begin_step.load(), page.step_count.load(), page.for_ns.load());
  page.answered = newest;
  return request;
}

}  // namespace

void register_windows(nb::module_& m) {
  m.def("watch_begin", &watch_begin, nb::arg("file"), nb::arg("callback"), nb::arg("leads"));
  m.def("watch_word", [] { return watch.page->word.load(); });
  m.def("watch_tell", [](uint32_t value) { watch.page->word.store(value), wake(); });
  // Requests of other processes are taken from now on: see `watch_request`. The callback is called when one has come.
  m.def("watch_arm", [](int64_t rank) { watch.page->rank = rank, watch.page->armed = 1; });
  m.def("watch_steps", [](int64_t steps) { watch.page->steps = steps; });
  // The newest request, once: the step before which the window opens, how many steps, and for how long (ns).
  m.def("watch_request", &watch_request);
  m.def("window_state", &window_state, nb::arg("file"));
  m.def("window_request", &window_request, nb::arg("file"), nb::arg("begin_step"), nb::arg("step_count"),
        nb::arg("for_ns"));
  // The callback is called soon after this moment of CLOCK_MONOTONIC; below 0: never.
  m.def("watch_due", [](int64_t ns) { watch.due_ns = ns < 0 ? INT64_MAX : ns, wake(); });
  // Whether the thread is to run.
  m.def("watch_run", [](bool on) {
    watch.rests = false;
    on ? begin_thread() : end_thread();
  });
  m.def("watch_before_fork", &rest);
  m.def("watch_after_fork", [] { after_fork_call(go_on); });
  m.def("watch_forked", [] { watch.runs = watch.rests = false, watch.follows = true; });  // in a child
}
