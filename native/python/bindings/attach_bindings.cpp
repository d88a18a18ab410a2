// Samples of another process, and scripts that it is asked to run.
#include <nanobind/stl/string.h>

#include "attach/remote_script.h"
#include "attach/sampled_process.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;

using namespace strobe;

void register_attach(nb::module_& m) {
  nb::class_<SampledProcess> sampled(m, "SampledProcess");
  nb::enum_<SampledProcess::Life>(sampled, "Life")
      .value("RUNS", SampledProcess::Life::runs)
      .value("ENDED", SampledProcess::Life::ended)
      .value("REPLACED", SampledProcess::Life::replaced);
  sampled.def(nb::init<pid_t, std::string, bool>(), nb::arg("pid"), nb::arg("blocks_path"), nb::arg("native"))
      .def("look", &SampledProcess::look, Unlocked())
      .def("count", &SampledProcess::count, nb::arg("what"), nb::arg("n"))
      .def("describe", &SampledProcess::describe, nb::arg("description_json"), nb::arg("note_json"))
      .def("finish", &SampledProcess::finish, Unlocked(), nb::arg("over"))
      .def_prop_ro("version", &SampledProcess::version)
      .def_prop_ro("samples", &SampledProcess::samples);
  nb::class_<RemoteScript>(m, "RemoteScript")
      .def(nb::init<pid_t>(), nb::arg("pid"))
      .def("request", &RemoteScript::request, nb::arg("path"))
      .def("taken", &RemoteScript::taken)
      .def("withdraw", &RemoteScript::withdraw)
      .def("runs", &RemoteScript::runs)
      .def_prop_ro("minor", &RemoteScript::minor);
}
