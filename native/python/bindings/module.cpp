// module.cpp - the Python face of libstrobe: recording control here, reading and structure in the files beside it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>

#include "adapters/torch_collectives.h"
#include "core/format/secrets.h"
#include "core/system/node_clock.h"
#include "include/strobe.h"
#include "python/recording/greenlets.h"
#include "python/requests/request.h"
extern "C" {
#include "python/calls/call_watch.h"
#include "python/calls/code_regions.h"
#include "python/lines/lines.h"
#include "python/recording/after_fork.h"
#include "python/recording/sampler_switch.h"
}

namespace nb = nanobind;

void register_reader(nb::module_& m);
void register_pyramid(nb::module_& m);
void register_attach(nb::module_& m);
void register_formats(nb::module_& m);
void register_otf2_writer(nb::module_& m);
void register_structure(nb::module_& m);
void register_cuts(nb::module_& m);
void register_classes(nb::module_& m);
void register_messages(nb::module_& m);
void register_memory(nb::module_& m);
void register_replay(nb::module_& m);
void register_templates(nb::module_& m);
void register_torch_events(nb::module_& m);
void register_starts(nb::module_& m);
void register_windows(nb::module_& m);

namespace {

void start(const std::string& folder, const std::string& description, uint32_t ring_bytes, uint32_t drain_period_us,
           uint32_t metrics_period_ms, uint32_t keep, uint64_t throttle_calls, uint64_t throttle_ns,
           uint64_t min_duration_ns, const std::string& counters, uint64_t max_bytes, double max_overhead, bool silent,
           const std::string& clock_server, uint64_t flight_ns, uint64_t flight_bytes) {
  strobe_options options{};
  options.folder = folder.c_str();
  options.description = description.c_str();
  options.ring_bytes = ring_bytes;
  options.drain_period_us = drain_period_us;
  options.metrics_period_ms = metrics_period_ms;
  options.keep = keep;
  options.throttle_calls = throttle_calls;
  options.throttle_ns = throttle_ns;
  options.min_duration_ns = min_duration_ns;
  options.counters = counters.c_str();
  options.max_bytes = max_bytes;
  options.max_overhead = max_overhead;
  options.silent = silent;
  options.clock_server = clock_server.c_str();
  options.flight_ns = flight_ns;
  options.flight_bytes = flight_bytes;
  if (int error = strobe_start(&options)) {
    errno = error;
    PyErr_SetObject(PyExc_OSError, nb::make_tuple(error, strobe_error()).ptr());
    throw nb::python_error();
  }
}

void calls_start(nb::sequence excluded, nb::sequence rules, bool strings, bool imports, bool c_functions,
                 bool whole_stacks) {
  const CodeOptions options{excluded.ptr(), rules.ptr(), strings, imports};
  if (code_regions_setup(&options) != 0 || python_calls_start(c_functions, whole_stacks) != 0) throw nb::python_error();
}

void call_watch(nb::str name, nb::object at_begin, nb::object at_end) {
  if (call_watch_start(name.ptr(), at_begin.ptr(), at_end.ptr()) != 0) throw nb::python_error();
}
void lines_choose(nb::sequence list) {
  if (lines_start(list.ptr()) != 0) throw nb::python_error();
}
void lines_add_code(nb::handle code) {
  if (lines_add(code.ptr()) != 0) throw nb::python_error();
}

uint32_t region(const std::string& name, int paradigm, int role, const std::string& file, uint32_t line,
                const std::string& module) {
  strobe_region_info info{};
  info.name = name.c_str();
  info.file = file.c_str();
  info.module = module.c_str();
  info.line = line;
  info.paradigm = uint8_t(paradigm);
  info.role = uint8_t(role);
  return strobe_region(&info);
}

// A name that the program gave: what UTF-8 does not have becomes escapes, as in strobe.region().
std::string readable(nb::handle name) {
  const auto bytes = nb::steal<nb::bytes>(PyUnicode_AsEncodedString(name.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return bytes.c_str();
}

uint32_t text(const std::string& value) { return strobe_text(value.c_str()); }

void sampler_start(double samples_per_s) {
  if (int error = sampling_start(samples_per_s)) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
}

void total(uint32_t region, uint32_t communicator, int32_t peer_rank, int32_t size_exponent, uint64_t calls,
           uint64_t sent_bytes, uint64_t received_bytes, uint64_t ns) {
  const strobe_total_key key{region, communicator, peer_rank, size_exponent};
  const strobe_total_sums sums{calls, sent_bytes, received_bytes, ns};
  strobe_total(&key, &sums);
}

// The whole numbers that a plain function was called with. False: an exception is set.
bool whole_numbers(PyObject* const* args, Py_ssize_t n, int64_t* values) {
  for (Py_ssize_t i = 0; i < n; i++)
    if ((values[i] = PyLong_AsLongLong(args[i])) == -1 && PyErr_Occurred()) return false;
  return true;
}

// row(kind, six numbers): called around user code, too.
PyObject* row(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != STROBE_ROW_VALUES + 1 && n != STROBE_ROW_VALUES + 2) {
    PyErr_SetString(PyExc_TypeError, "a row has a kind, six values, and perhaps a moment");
    return nullptr;
  }
  int64_t values[STROBE_ROW_VALUES + 2] = {};
  if (!whole_numbers(args, n, values)) return nullptr;
  strobe_row_at(uint32_t(values[0]), uint64_t(values[STROBE_ROW_VALUES + 1]), values + 1);
  Py_RETURN_NONE;
}
PyMethodDef row_def = {"row", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(row)), METH_FASTCALL,
                       "row(kind, a, b, c, d, e, f, ticks) -> None: a row of a side table; strobe.h has their meaning"};

// A collective is asked for: adapters/torch_distributed.py calls these two around PyTorch's own kernel. Plain
// functions, as above: twelve numbers of a bound call cost more than what is done with them.
PyObject* collective_begin(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 13) {
    PyErr_SetString(PyExc_TypeError, "a collective has 13 values");
    return nullptr;
  }
  int64_t v[13];
  if (!whole_numbers(args, n, v)) return nullptr;
  const strobe_collective facts{uint32_t(v[0]), uint32_t(v[1]), uint32_t(v[2]),  uint32_t(v[3]),
                                uint32_t(v[4]), int32_t(v[5]),  int32_t(v[6]),   int32_t(v[7]),
                                v[8],           v[9],           uint32_t(v[10]), int32_t(v[11])};
  strobe_collective_begin(&facts, int(v[12]));
  Py_RETURN_NONE;
}
PyMethodDef collective_begin_def = {
    "collective_begin", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(collective_begin)), METH_FASTCALL,
    "collective_begin(collective, dtype, group, group_ranks, about, sequence, root, bucket, sent_bytes, "
    "received_bytes, region, peer_rank, later) -> None"};
PyObject* collective_end(PyObject*, PyObject*) {
  strobe_collective_end();
  Py_RETURN_NONE;
}
PyMethodDef collective_end_def = {"collective_end", collective_end, METH_NOARGS, nullptr};

std::string collectives_start(const std::string& libc10) {
  const char* missing = strobe_collectives_start(libc10.c_str());
  return missing ? missing : "";
}

// enter and leave are called around user code, so they are plain METH_O functions: a tenth of a bound call's dispatch.
PyObject* enter(PyObject*, PyObject* id) {
  strobe_enter(uint32_t(PyLong_AsUnsignedLongMask(id)));
  Py_RETURN_NONE;
}
PyObject* leave(PyObject*, PyObject* id) {
  strobe_leave(uint32_t(PyLong_AsUnsignedLongMask(id)));
  Py_RETURN_NONE;
}
PyMethodDef enter_def = {"enter", enter, METH_O, "enter(region) -> None: the region begins in this thread"};
PyMethodDef leave_def = {"leave", leave, METH_O, "leave(region) -> None: the region ends in this thread"};

// Calls a function when it goes away: kept in a threading.local, at the end of the thread. In C, so that a profile hook
// of the program sees no frame of ours.
class AtEnd {
 public:
  AtEnd() = default;
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() { close(); }
  void arm(nb::object function) { function_ = std::move(function), thread_ = pthread_self(); }
  bool armed() const { return function_.is_valid(); }
  void close() {
    nb::object function = std::move(function_);
    // A forked child drops what the other threads of its parent held, on its only thread: their ends are later.
    if (!function.is_valid() || !pthread_equal(thread_, pthread_self())) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* result = PyObject_CallNoArgs(function.ptr());
    if (!result) PyErr_Clear();
    Py_XDECREF(result);
    PyErr_Restore(type, value, trace);
  }

 private:
  nb::object function_;
  pthread_t thread_{};
};

// The last act of a recording at the end of the process, without a byte of Python: an interrupt that comes now stays
// pending for the program.
void stop_at_exit() {
  python_calls_stop();
  sampling_stop();
  nb::gil_scoped_release release;
  if (!strobe_stops_at_exit()) strobe_stop();
}

// What C++ throws, as what Python raises. The text of a system_error begins with the path that it is about.
void raise(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& e) {
    std::string message = e.code().message(), path = e.what();
    if (size_t at = path.rfind(": " + message); at != path.npos) path.resize(at);
    PyErr_SetObject(PyExc_OSError, nb::make_tuple(e.code().value(), message, path).ptr());
  } catch (const std::runtime_error& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  }
}

// os._exit of a recorded process.
void exit_now(int status) {
  {
    nb::gil_scoped_release release;
    strobe_note_exit(status);
  }
  _exit(status);
}

}  // namespace

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // a program that ends in the middle of anything has no leak worth a word on its stderr
  nb::register_exception_translator(raise);
  m.def("start", &start, nb::arg("folder"), nb::arg("description"), nb::arg("ring_bytes") = 0,
        nb::arg("drain_period_us") = 0, nb::arg("metrics_period_ms") = 0, nb::arg("keep") = 0,
        nb::arg("throttle_calls") = 0, nb::arg("throttle_ns") = 0, nb::arg("min_duration_ns") = 0,
        nb::arg("counters") = "", nb::arg("max_bytes") = 0, nb::arg("max_overhead") = 0.0, nb::arg("silent") = false,
        nb::arg("clock_server") = "", nb::arg("flight_ns") = 0, nb::arg("flight_bytes") = 0);
  m.def("stop", &strobe_stop, nb::call_guard<nb::gil_scoped_release>());
  m.def("pause", &strobe_pause, nb::call_guard<nb::gil_scoped_release>());
  m.def("resume", [] { after_fork_call(strobe_resume); });
  m.def("mute", &strobe_mute, nb::call_guard<nb::gil_scoped_release>());
  m.def("unmute", &strobe_unmute, nb::call_guard<nb::gil_scoped_release>());
  m.def("stop_at_exit", &stop_at_exit);
  m.def("_exit", &exit_now, nb::arg("status"),
        "Exit to the system with specified status, without normal exit processing.");
  nb::class_<AtEnd>(m, "AtEnd")
      .def(nb::init<>())
      .def("arm", &AtEnd::arm)
      .def("close", &AtEnd::close)
      .def_prop_ro("armed", &AtEnd::armed);
  m.def("die_with_parent", [] { prctl(PR_SET_PDEATHSIG, SIGKILL); });
  m.def("active", [] { return strobe_active() != 0; });
  m.def("region", &region, nb::arg("name"), nb::arg("paradigm"), nb::arg("role"), nb::arg("file") = "",
        nb::arg("line") = 0, nb::arg("module") = "");
  m.def("name_thread", [](nb::str name) { strobe_name_thread(readable(name).c_str()); });
  m.def("name_location", [](uint64_t thread, nb::str name) { strobe_location(thread, readable(name).c_str()); });
  // While this is on, no tool of the program (sys.settrace, sys.setprofile, sys.monitoring) sees what this thread runs.
  m.def("hide_from_tools",
        [](bool on) { (on ? PyThreadState_EnterTracing : PyThreadState_LeaveTracing)(PyThreadState_Get()); });
  m.def("attach_torch", [](const std::string& path) { return strobe_attach_torch(path.c_str()) != 0; });
  m.def("name_process", [](nb::str name) { strobe_name_process(readable(name).c_str()); });
  m.def("metric",
        [](const std::string& name, const std::string& unit) { return strobe_metric(name.c_str(), unit.c_str()); });
  m.def("sample", &strobe_sample);
  m.def("hardware_counter", [](const std::string& name) { return strobe_hardware_counter(name.c_str()) != 0; });
  m.def("thread_usage", [](bool hardware) {
    uint64_t values[STROBE_USAGE_VALUES];
    strobe_thread_usage(hardware, values);
    PyObject* all = PyTuple_New(STROBE_USAGE_VALUES);
    for (Py_ssize_t i = 0; all && i < STROBE_USAGE_VALUES; i++)
      PyTuple_SET_ITEM(all, i, PyLong_FromUnsignedLongLong(values[i]));
    return nb::steal<nb::object>(all);
  });
  m.def("node_name", &strobe::node_name);
  m.def("without_secrets", [](nb::list words) {
    strobe::WithoutSecrets command;
    nb::list shown;
    for (const nb::handle word : words) {
      const auto bytes = nb::cast<nb::bytes>(word);
      const std::string each = command.shown({bytes.c_str(), bytes.size()});
      shown.append(nb::bytes(each.data(), each.size()));
    }
    return shown;
  });
  m.def("wall_clock", [] {
    const strobe::WallClock wall = strobe::wall_clock();
    return nb::make_tuple(wall.monotonic_ns, wall.unix_ns, wall.error_ns);
  });
  m.def("count", [](const std::string& what, uint64_t n) { strobe_count(what.c_str(), n); });
  m.def("python_calls_start", &calls_start, nb::arg("excluded"), nb::arg("rules"), nb::arg("strings"),
        nb::arg("imports"), nb::arg("c_functions"), nb::arg("whole_stacks") = false);
  m.def("python_calls_stop", &python_calls_stop);
  m.def("text", &text, nb::arg("value"), "Intern a text of a row; 0 is none.");
  m.def("total", &total, nb::arg("region"), nb::arg("communicator"), nb::arg("peer_rank"), nb::arg("size_exponent"),
        nb::arg("calls"), nb::arg("sent_bytes"), nb::arg("received_bytes"), nb::arg("ns"));
  m.attr("row") = nb::steal(PyCFunction_New(&row_def, nullptr));
  using namespace strobe::requests;
  const bool requests = add_requests(m.ptr()) && add_event_loops(m.ptr()) && add_streams(m.ptr());
  if (!requests || !add_awaits(m.ptr())) throw nb::python_error();
  m.def("ticks", &strobe_ticks);
  m.def("message_wait_begin", &strobe_message_wait_begin);
  m.def("message_wait_end", &strobe_message_wait_end);
  m.def("collectives_start", &collectives_start, nb::arg("libc10"), "What is missing in that library, or nothing.");
  m.def("collectives_stop", &strobe_collectives_stop);
  m.attr("collective_begin") = nb::steal(PyCFunction_New(&collective_begin_def, nullptr));
  m.attr("collective_end") = nb::steal(PyCFunction_New(&collective_end_def, nullptr));
  m.def("note_rank", &strobe_note_rank, nb::arg("rank"), nb::arg("size"));
  m.attr("NOTHING") = STROBE_NOTHING;
  m.attr("NOTHING_32") = STROBE_NOTHING_32;
  m.def("sampler_start", &sampler_start, nb::arg("samples_per_s"));
  m.def("sampler_stop", &sampling_stop);
  m.def("sampler_before_fork", &sampling_before_fork);
  m.def("sampler_after_fork", &sampling_after_fork);
  m.def("sampler_forked", &sampling_forked);
  m.def("call_watch_start", &call_watch, nb::arg("name"), nb::arg("at_begin").none(), nb::arg("at_end").none());
  m.def("call_watch_stop", &call_watch_stop);
  m.def("lines_start", &lines_choose, nb::arg("patterns"));
  m.def("lines_stop", &lines_stop);
  m.def("lines_forget", &lines_forget);
  m.def("lines_add", &lines_add_code, nb::arg("code"));
  m.attr("enter") = nb::steal(PyCFunction_New(&enter_def, nullptr));
  m.attr("leave") = nb::steal(PyCFunction_New(&leave_def, nullptr));
  m.attr("greenlet_switched") = nb::steal(greenlet_function(0));
  m.attr("settrace") = nb::steal(greenlet_function(1));
  m.attr("gettrace") = nb::steal(greenlet_function(2));
  register_reader(m);
  register_pyramid(m);
  register_attach(m);
  register_formats(m);
  register_otf2_writer(m);
  register_structure(m);
  register_cuts(m);
  register_classes(m);
  register_messages(m);
  register_memory(m);
  register_replay(m);
  register_templates(m);
  register_torch_events(m);
  register_starts(m);
  register_windows(m);
}
