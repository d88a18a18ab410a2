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

struct Watch {
  std::atomic<uint32_t> own{0};
  std::atomic<uint32_t>* word = &own;  // later the one that is shared with the processes of this program
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

void wake() { syscall(SYS_futex, watch.word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

void* sleep_and_tell(void*) {
  pthread_setname_np(pthread_self(), "strobe window");
  watch.thread_id = uint32_t(strobe::thread_id());
  uint32_t seen = watch.word->load();
  while (!watch.quit) {
    const int64_t due = watch.due_ns.load();
    timespec left{};
    if (due != INT64_MAX) {
      const int64_t ns = std::max<int64_t>(0, due - monotonic_ns());
      left = {time_t(ns / 1000000000), long(ns % 1000000000)};
    }
    syscall(SYS_futex, watch.word, FUTEX_WAIT, seen, due == INT64_MAX ? nullptr : &left, nullptr, 0);
    if (watch.quit) break;
    const uint32_t now = watch.word->load();
    const bool changed = now != seen;
    seen = now;
    if (monotonic_ns() >= watch.due_ns.load()) {
      watch.due_ns = INT64_MAX;
      call_soon();
    } else if (changed && watch.follows) {
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

// `file` holds the shared word. Who leads makes it; who follows is woken by its changes.
void watch_begin(const std::string& file, nb::object callback, bool leads) {
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
  if (watch.word != &watch.own) munmap(watch.word, kPageBytes);
  watch.word = static_cast<std::atomic<uint32_t>*>(map);
  watch.follows = !leads;
  Py_XDECREF(watch.call);
  watch.call = callback.release().ptr();
}

}  // namespace

void register_windows(nb::module_& m) {
  m.def("watch_begin", &watch_begin, nb::arg("file"), nb::arg("callback"), nb::arg("leads"));
  m.def("watch_word", [] { return watch.word->load(); });
  m.def("watch_tell", [](uint32_t value) { watch.word->store(value), wake(); });
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
