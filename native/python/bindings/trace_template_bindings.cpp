// trace_template_bindings.cpp - the door to traces that are made from a real one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "formats/trace_template.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;
using namespace strobe;

void register_templates(nb::module_& m) {
  using Stalls = std::vector<std::tuple<uint64_t, double, int64_t>>;
  nb::class_<TraceTemplate>(m, "TraceTemplate")
      .def(
          "__init__",
          [](TraceTemplate* self, const std::string& blocks_path, const std::optional<std::string>& rings_path,
             const std::map<std::string, std::string>& ids, bool attributes) {
            const ProcessFile process(blocks_path, rings_path.value_or(""));
            new (self) TraceTemplate(process, ids, attributes);
          },
          Unlocked(), nb::arg("blocks_path"), nb::arg("rings_path").none(), nb::arg("ids"), nb::arg("attributes"))
      .def_prop_ro("spans", &TraceTemplate::spans)
      .def_prop_ro("locations", &TraceTemplate::locations)
      .def_prop_ro("length_ns", &TraceTemplate::length_ns)
      .def(
          "write",
          [](const TraceTemplate& self, const std::string& blocks_path, int64_t pid, const std::string& description,
             const std::string& note, uint64_t seed, double sigma, std::vector<int64_t> begin_ns,
             std::vector<double> factor, const Stalls& stalls) {
            if (begin_ns.empty() || begin_ns.size() != factor.size())
              throw nb::value_error("every repetition has a begin and a factor");
            ProcessCopy copy{blocks_path,         {pid, 0, description, note}, seed, sigma,
                             std::move(begin_ns), std::move(factor),           {}};
            for (const auto& [repetition, place, duration_ns] : stalls)
              copy.stalls.push_back({repetition, place, duration_ns});
            const WrittenProcess written = unlocked([&] { return self.write(copy); });
            return std::tuple(written.spans, written.first_ns, written.last_ns, written.stall_ns);
          },
          nb::arg("blocks_path"), nb::arg("pid"), nb::arg("description"), nb::arg("note"), nb::arg("seed"),
          nb::arg("sigma"), nb::arg("begin_ns"), nb::arg("factor"), nb::arg("stalls"));
}
