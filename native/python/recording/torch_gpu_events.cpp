// torch_gpu_events.cpp - what torch.profiler has recorded of GPUs, from its own event objects to streams of the trace.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdlib.h>
#include <string.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "include/strobe.h"

namespace nb = nanobind;

extern "C" int InitializeInjection();  // adapters/cupti

namespace {

// The same moment on CLOCK_MONOTONIC and on the clock of Unix, ns.
struct Pair {
  int64_t monotonic_ns, unix_ns;
};

// Times of Unix are those of the profiler: on the straight line between its begin and its end.
int64_t monotonic_of(int64_t unix_ns, const Pair& begin, const Pair& end) {
  const double share =
      end.unix_ns > begin.unix_ns ? double(unix_ns - begin.unix_ns) / double(end.unix_ns - begin.unix_ns) : 0.0;
  const int64_t first = begin.monotonic_ns - begin.unix_ns, last = end.monotonic_ns - end.unix_ns;
  return unix_ns + first + int64_t(share * double(last - first));
}

int64_t number(nb::handle event, const char* method) { return nb::cast<int64_t>(event.attr(method)()); }

// Kernels, copies and sets: not the program's ranges as a GPU saw them, nor waits for streams, which Kineto puts there.
bool is_work(nb::handle event, bool has_type, std::string_view name) {
  if (has_type) {
    const std::string type = nb::cast<std::string>(event.attr("activity_type")());
    if (!type.empty()) return type == "kernel" || type == "gpu_memcpy" || type == "gpu_memset";
  }
  if (nb::hasattr(event, "is_user_annotation") && nb::cast<bool>(event.attr("is_user_annotation")())) return false;
  return name != "Stream Sync" && name != "Context Sync" && name != "Device Sync" && name != "Event Sync" &&
         name != "Stream Wait Event";
}

// "bytes": 4096 in the JSON that newer releases give of a copy.
int64_t bytes_of(nb::handle event) {
  if (!nb::hasattr(event, "metadata_json")) return -1;
  const std::string json = nb::cast<std::string>(event.attr("metadata_json")());
  const size_t at = json.find("\"bytes\":");
  return at == json.npos ? -1 : strtoll(json.c_str() + at + strlen("\"bytes\":"), nullptr, 10);
}

// gpu_ingest(events, DeviceType.CUDA, wall_clock() at the begin, and at the end): how many were new to the trace.
uint64_t ingest(nb::handle events, nb::handle cuda, std::pair<int64_t, int64_t> first,
                std::pair<int64_t, int64_t> last) {
  const Pair begin{first.first, first.second}, end{last.first, last.second};
  std::vector<strobe_gpu_span> spans;
  std::unordered_map<std::string, int> names;  // an element never moves
  std::unordered_map<uint32_t, int64_t> launched;
  bool asked = false, has_type = false;
  for (nb::handle event : events) {
    if (!asked) asked = true, has_type = nb::hasattr(event, "activity_type");
    const std::string name = nb::cast<std::string>(event.attr("name")());
    if (!event.attr("device_type")().equal(cuda)) {
      // cudaLaunchKernel, cuLaunchKernel: operators have numbers of their own.
      if (!name.starts_with("cu")) continue;
      launched.emplace(uint32_t(number(event, "correlation_id")), monotonic_of(number(event, "start_ns"), begin, end));
      continue;
    }
    if (!is_work(event, has_type, name)) continue;
    const char* kept = names.try_emplace(name, 0).first->first.c_str();
    strobe_gpu_span& span = spans.emplace_back();
    span.name = kept;
    const int64_t start_ns = number(event, "start_ns");
    span.start_ns = monotonic_of(start_ns, begin, end);
    span.end_ns = span.start_ns + number(event, "duration_ns");
    span.size_bytes = name.starts_with("Mem") ? bytes_of(event) : -1;
    span.device = uint32_t(number(event, "device_index"));
    span.stream = uint32_t(number(event, "device_resource_id"));
    span.correlation = uint32_t(number(event, "correlation_id"));
  }
  for (strobe_gpu_span& span : spans)
    if (const auto known = launched.find(span.correlation); known != launched.end()) span.launched_ns = known->second;
  nb::gil_scoped_release release;
  return strobe_gpu_ingest(spans.data(), spans.size());
}

}  // namespace

void register_torch_events(nb::module_& m) {
  m.def(
      "gpu_yield", [](const std::string& to) { return strobe_gpu_yield(to.c_str()) != 0; },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("gpu_take_back", [] { return strobe_gpu_take_back() != 0; }, nb::call_guard<nb::gil_scoped_release>());
  m.def("gpu_recorded", [] { return strobe_gpu_recorded() != 0; });
  m.def("gpu_yielded", [] { return strobe_gpu_yielded() != 0; });
  // For a program whose CUDA has begun without us: libcuda looks for a tool only then. Without CUDA: nothing.
  m.def("gpu_begin_late", [] {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver) return;
    dlclose(driver);
    InitializeInjection();
  });
  m.def("gpu_say",
        [](const std::string& what, const std::string& sentence) { strobe_gpu_say(what.c_str(), sentence.c_str()); });
  m.def("streams_told", [](int64_t launched_ns) { strobe_streams_told(launched_ns); });
  m.def(
      "gpu_ingest",
      [](nb::handle events, nb::handle cuda, nb::tuple first, nb::tuple last) {
        const auto pair = [](const nb::tuple& of) {
          return std::pair(nb::cast<int64_t>(of[0]), nb::cast<int64_t>(of[1]));
        };
        return ingest(events, cuda, pair(first), pair(last));
      },
      nb::arg("events"), nb::arg("cuda"), nb::arg("first"), nb::arg("last"));
}
