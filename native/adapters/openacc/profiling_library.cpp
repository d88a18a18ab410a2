// profiling_library.cpp - libstrobe_openacc.so: OpenACC, as a library of its profiling interface. ACC_PROFLIB names
// this library; the runtime (GCC's libgomp, NVIDIA's) loads it when it is first used, and calls it on the thread that
// something happens on. No event has a time of the device: what runs there is recorded by the interface below OpenACC.
#include <errno.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "adapters/mpi/function_names.h"
#include "adapters/openacc/interface.h"
#include "include/strobe.h"

namespace strobe::openacc {

namespace {

struct Kind {
  Event event;
  const char* name;
  uint8_t role;
};
constexpr Kind kKinds[] = {
    {kDeviceInit, "init", STROBE_ROLE_FUNCTION},   {kDeviceShutdown, "shutdown", STROBE_ROLE_FUNCTION},
    {kEnterData, "enter data", STROBE_ROLE_RANGE}, {kExitData, "exit data", STROBE_ROLE_RANGE},
    {kUpdate, "update", STROBE_ROLE_RANGE},        {kCompute, "compute", STROBE_ROLE_RANGE},
    {kLaunch, "launch", STROBE_ROLE_FUNCTION},     {kUpload, "upload", STROBE_ROLE_FUNCTION},
    {kDownload, "download", STROBE_ROLE_FUNCTION}, {kWait, "wait", STROBE_ROLE_SYNC},
};
// By acc_construct_t.
constexpr const char* kConstructs[] = {"parallel",  "kernels", "loop",    "data",        "enter data", "exit data",
                                       "host_data", "atomic",  "declare", "init",        "shutdown",   "set",
                                       "update",    "routine", "wait",    "runtime API", "serial"};

struct Open {
  int event;
  uint32_t region;
};
thread_local std::vector<Open>* mine __attribute__((tls_model("initial-exec")));  // outermost first

struct Object {
  uintptr_t of, begin = 0, end = 0;
  bool holds(uintptr_t address) const { return begin <= address && address < end; }
};
Object runtime{};

int find_object(dl_phdr_info* info, size_t, void* argument) {
  Object object{static_cast<Object*>(argument)->of, UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    object.begin = std::min(object.begin, begin), object.end = std::max(object.end, begin + segment.p_memsz);
  }
  if (!object.holds(object.of)) return 0;
  *static_cast<Object*>(argument) = object;
  return 1;
}

struct Caller {
  bool in_runtime = false;
  uintptr_t address = 0;
};

// Our own frames come first, then those of the runtime.
_Unwind_Reason_Code next_frame(_Unwind_Context* frame, void* argument) {
  auto& caller = *static_cast<Caller*>(argument);
  const uintptr_t address = _Unwind_GetIP(frame);
  const bool was_in_runtime = caller.in_runtime;
  caller.in_runtime = runtime.holds(address);
  if (!was_in_runtime || caller.in_runtime) return _URC_NO_REASON;
  caller.address = address;
  return _URC_END_OF_STACK;
}

// Where the program has the construct, as "main+0x1f": GCC's runtime knows no lines.
std::string call_site() {
  Caller caller;
  _Unwind_Backtrace(next_frame, &caller);
  if (!caller.address) return {};
  static auto& mutex = *new std::mutex;
  static auto& sites = *new std::map<uintptr_t, std::string>;
  const std::lock_guard lock(mutex);
  const auto [site, fresh] = sites.try_emplace(caller.address);
  if (fresh) {
    const mpi::Place place = mpi::find_place(reinterpret_cast<const void*>(caller.address - 1));
    site->second = mpi::call_site(place);
    strobe_note_call_site(site->second.c_str(), place.path.c_str(), place.address);
  }
  return site->second;
}

std::string name_of(const Kind& kind, const EventInfo& event) {
  const auto parent = size_t(event.parent_construct);
  const std::string name = kind.name, construct = parent < std::size(kConstructs) ? kConstructs[parent] : name;
  if (kind.event == kCompute) return construct;
  if (kind.event == kLaunch || kind.event == kUpload || kind.event == kDownload)
    return event.name ? name + " " + event.name : name;
  return name == construct || kind.role == STROBE_ROLE_FUNCTION ? name : name + " of " + construct;
}

// The time of its row is that of the call. Copies of CUDA and the like have rows of their own.
void copied(const Kind& kind, const ProfInfo& info, const EventInfo& event) {
  if (strobe_gpu_recorded()) return;
  const std::string queue = info.async_queue < 0 ? "" : std::to_string(info.async_queue);
  const std::string direction = std::to_string(strobe_text(kind.event == kUpload ? "HtoD" : "DtoH"));
  const std::string copy = std::to_string(info.device_number) + ",," + queue + "," + direction;
  const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(STROBE_NOTHING_32, strobe_text(copy.c_str())),
                                             STROBE_TWO(STROBE_NOTHING_32, STROBE_NOTHING_32),
                                             STROBE_NOTHING,
                                             int64_t(event.bytes),
                                             STROBE_TWO(STROBE_NOTHING_32, 0),
                                             STROBE_NOTHING};
  strobe_row(STROBE_ROW_COPY, values);
}

void start(ProfInfo* info, EventInfo* event, void*) {
  const int error = errno;
  const auto kind = std::ranges::find(kKinds, info->event, &Kind::event);
  if (kind == std::end(kKinds) || !strobe_active()) return;
  const std::string name = name_of(*kind, *event);
  // What is inside of a construct has its place.
  const bool lines = info->src_file && *info->src_file;
  const std::string place = lines ? info->src_file : mine ? std::string() : call_site();
  strobe_region_info region{};
  region.name = name.c_str();
  region.file = place.empty() ? nullptr : place.c_str();
  region.line = lines && info->line_no > 0 ? uint32_t(info->line_no) : 0;
  region.paradigm = STROBE_OPENACC;
  region.role = kind->role;
  if (!mine) mine = new std::vector<Open>;
  mine->push_back({info->event, strobe_region(&region)});
  strobe_enter(mine->back().region);
  if (kind->event == kUpload || kind->event == kDownload) copied(*kind, *info, *event);
  errno = error;
}

// What began before this library was loaded, or between windows, is not open.
void end(ProfInfo* info, EventInfo*, void*) {
  const int event = info->event - 1;
  if (!mine || std::ranges::find(*mine, event, &Open::event) == mine->end()) return;
  for (bool found = false; !found; mine->pop_back()) {
    found = mine->back().event == event;
    strobe_leave(mine->back().region);
  }
  if (mine->empty()) delete std::exchange(mine, nullptr);
}

}  // namespace

}  // namespace strobe::openacc

extern "C" STROBE_API void acc_register_library(strobe::openacc::Register add, strobe::openacc::Register, void*) {
  using namespace strobe::openacc;
  strobe_begin();  // unless this process records already
  runtime.of = reinterpret_cast<uintptr_t>(add);
  dl_iterate_phdr(find_object, &runtime);
  for (const Kind& kind : kKinds) add(kind.event, start, 0), add(kind.event + 1, end, 0);
}
