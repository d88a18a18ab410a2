// library.cpp - which CUPTI, and what is in it. Two copies in one process disturb each other, so one that is there
// already is always the one; after that what the user asks for, what `strobe run` found beside the interpreter, CUDA's
// own folders, and at last what the dynamic linker knows.
#include "adapters/cupti/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string_view>

namespace strobe::cupti {
namespace {

constexpr uint32_t kOldest = 18;  // CUDA 11.8

bool is_cupti(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("libcupti.so"); }

std::string mapped_copy() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (!info->dlpi_name || !is_cupti(info->dlpi_name)) return 0;
        *static_cast<std::string*>(out) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

// 0 without a driver: libcuda is never loaded by us.
int driver_version() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return 0;
  auto* get = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  if (!get || get(&version)) version = 0;
  dlclose(driver);  // the program's own handle keeps it
  return version;
}

// The number after libcupti.so in the name that the file gives itself: toolkits call the file libcupti.so.2025.3.1.
int major_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map) return 0;
  const char* strings = nullptr;
  size_t name = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
  }
  if (!strings || !name || !is_cupti(strings + name)) return 0;
  const char* number = strings + name + strlen("libcupti.so");
  return *number == '.' ? atoi(number + 1) : 0;
}

std::string real_path(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name || !*map->l_name) return asked;
  return map->l_name;
}

std::string dotted(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// CUPTI 13.2 ends the process in cuptiGetVersion where the driver cannot be used: taken only in the absence of another.
// Known by its functions, without calling one.
bool is_13_2(void* handle) {
  return dlsym(handle, "cuptiActivityGetStructSize") && !dlsym(handle, "cuptiActivityGetNextRecord_v2");
}

enum Crashing { kWithout, kOnly };

// Whether `path` is taken now. The reason of a refusal goes to library.refused; kWithout passes over 13.2 in silence.
bool take(Library& library, const std::string& path, int flags, Crashing crashing, bool only_one) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (!handle) {
    const char* why = dlerror();
    if (crashing == kWithout && (only_one || path.find('/') != path.npos))
      library.refused.push_back(path + ": it cannot be loaded (" + (why ? why : "no reason given") + ")");
    return false;
  }
  if (!only_one && is_13_2(handle) != (crashing == kOnly)) {
    dlclose(handle);
    return false;
  }
  const std::string file = real_path(handle, path);
  const auto refuse = [&](const std::string& why) {
    library.refused.push_back(file + ": " + why);
    static_cast<Functions&>(library) = Functions();
    library.version = 0;
    return false;
  };
  int major = major_of(handle);
  if (major > library.driver / 1000) {
    dlclose(handle);
    return refuse("it is of CUDA " + std::to_string(major) + ", and the driver is of CUDA " + dotted(library.driver));
  }
  const char* missing = nullptr;
#define STROBE_LOOK_UP(needed, member, name, parameters)                                     \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(handle, "cupti" #name)); \
  if (needed && !library.member && !missing) missing = "cupti" #name;
  STROBE_CUPTI_FUNCTIONS(STROBE_LOOK_UP)
#undef STROBE_LOOK_UP
  if (missing) {
    dlclose(handle);
    return refuse(std::string("it lacks ") + missing);
  }
  // From here on it stays: a call may have started a thread of its own.
  const Result result = library.get_version(&library.version);
  if (result || !library.version)
    return refuse("cuptiGetVersion fails (" + std::to_string(result) + "), which it does where the driver is unusable");
  if (library.version < kOldest) return refuse("it is older than CUDA 11.8");
  if (library.version >= 10000) major = int(library.version / 10000);
  if (major > library.driver / 1000)
    return refuse("it is of CUDA " + std::to_string(major) + ", and the driver is of CUDA " + dotted(library.driver));
  library.cuda_major = major ? major : 12;
  library.handle = handle;
  library.path = file;
  return true;
}

void add_matching(std::vector<std::string>& out, const std::string& pattern) {
  glob_t found{};
  if (!glob(pattern.c_str(), 0, nullptr, &found))
    for (size_t i = found.gl_pathc; i-- > 0;) out.push_back(found.gl_pathv[i]);  // newer releases first
  globfree(&found);
}

void add_folder(std::vector<std::string>& out, const std::string& cuda) {
  for (const char* below : {"/extras/CUPTI/lib64/libcupti.so*", "/lib64/libcupti.so*", "/lib/libcupti.so*"})
    add_matching(out, cuda + below);
}

std::vector<std::string> candidates(int driver) {
  std::vector<std::string> out;
  if (const char* handed = getenv(kCandidatesVariable))
    for (std::string_view rest = handed; !rest.empty();) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon) out.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = getenv(variable); folder && *folder) add_folder(out, folder);
  add_folder(out, "/usr/local/cuda");
  add_folder(out, "/usr/local/cuda-*");
  for (int major = driver / 1000; major >= 12; major--) out.push_back("libcupti.so." + std::to_string(major));
  out.push_back("libcupti.so.11.8");
  out.push_back("libcupti.so");
  return out;
}

// Sizes as CUDA 11.8 had them. Records have only grown since.
constexpr struct {
  Kind kind;
  size_t bytes;
} kLeast[] = {
    {kMemcpy, offsetof(MemcpyRecord, copy_count)},
    {kMemset, offsetof(MemsetRecord, source_graph)},
    {kKernel, offsetof(KernelRecord, max_potential_cluster_size)},
    {kConcurrentKernel, offsetof(KernelRecord, max_potential_cluster_size)},
    {kDriver, sizeof(ApiRecord)},
    {kRuntime, sizeof(ApiRecord)},
    {kDevice, offsetof(DeviceRecord, is_numa_node)},
    {kContext, offsetof(ContextRecord, parent_context)},
    {kOverhead, offsetof(OverheadRecord, correlation)},
    {kMemcpyPeer, sizeof(MemcpyPeerRecord)},
    {kUnifiedMemoryCounter, offsetof(UnifiedMemoryRecord, processors)},
    {kModule, sizeof(ModuleRecord)},
    {kCudaEvent, offsetof(CudaEventRecord, device)},
    {kStream, sizeof(StreamRecord)},
    {kSynchronization, offsetof(SynchronizationRecord, event_sync)},
    {kExternalCorrelation, sizeof(ExternalCorrelationRecord)},
    {kMemory, offsetof(MemoryRecord, source)},
    {kMemoryPool, offsetof(MemoryPoolRecord, is_managed)},
    {kGraphTrace, offsetof(GraphTraceRecord, end_device)},
    {kJit, offsetof(JitRecord, process)},
};

// How far its own iterator steps over a record of this kind; 0 where it does not.
size_t step_over(const Library& library, Kind kind) {
  constexpr size_t kLongest = 4096;
  alignas(8) uint8_t buffer[2 * kLongest];
  for (size_t i = 0; i < sizeof buffer; i += sizeof kind) memcpy(buffer + i, &kind, sizeof kind);
  Activity* record = nullptr;
  if (library.activity_get_next_record(buffer, sizeof buffer, &record) || !record) return 0;
  const auto* first = reinterpret_cast<uint8_t*>(record);
  if (library.activity_get_next_record(buffer, sizeof buffer, &record) || !record) return 0;
  const auto* second = reinterpret_cast<uint8_t*>(record);
  return second > first && second - first <= ptrdiff_t(kLongest) ? size_t(second - first) : 0;
}

void find_sizes(Library& library) {
  for (uint32_t number = 1; number < kKinds; number++) {
    const Kind kind = Kind(number);
    size_t size = step_over(library, kind), stated = 0;
    if (library.activity_get_struct_size && !library.activity_get_struct_size(kind, 0, &stated) && stated &&
        stated <= UINT16_MAX)
      size = size ? std::min(size, stated) : stated;  // they should agree; the smaller one is safe
    library.sizes[number] = uint32_t(size);
  }
  for (const auto& [kind, bytes] : kLeast)
    if (!library.sizes[kind]) library.sizes[kind] = uint32_t(bytes);
}

}  // namespace

std::string Library::release() const {
  if (!version) return "unknown";
  if (version >= 10000) return "CUDA " + std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
  return "CUDA " + std::to_string(cuda_major) + " (CUPTI " + std::to_string(version) + ")";
}

std::string Library::text_of(Result result) const {
  const char* text = nullptr;
  if (get_error_message && !get_error_message(result, &text) && text && *text)
    return std::string(text) + " (" + std::to_string(result) + ")";
  if (get_result_string && !get_result_string(result, &text) && text && *text)
    return std::string(text) + " (" + std::to_string(result) + ")";
  return "CUPTI's error " + std::to_string(result);
}

Library open_library() {
  Library library;
  library.driver = driver_version();
  if (!library.driver) {
    library.failure = "no CUDA driver is loaded in this process (libcuda.so.1)";
    return library;
  }
  const std::string mapped = mapped_copy();
  const char* asked = getenv(kFileVariable);
  if (!mapped.empty()) {
    if (!take(library, mapped, RTLD_NOLOAD, kWithout, true))
      library.failure = "the program has loaded a CUPTI that cannot be used: " + library.refused.back();
  } else if (asked && *asked) {
    if (!take(library, asked, 0, kWithout, true))
      library.failure =
          std::string("the CUPTI that ") + kFileVariable + " names cannot be used: " + library.refused.back();
  } else {
    const std::vector<std::string> all = candidates(library.driver);
    for (const Crashing crashing : {kWithout, kOnly})
      for (size_t i = 0; i < all.size() && !library; i++)
        if (std::find(all.begin(), all.begin() + ptrdiff_t(i), all[i]) == all.begin() + ptrdiff_t(i))
          take(library, all[i], 0, crashing, false);
    if (!library)
      library.failure = library.refused.empty()
                            ? "no CUPTI was found: install nvidia-cuda-cupti for the driver's CUDA " +
                                  std::to_string(library.driver / 1000) + ", or set " + kFileVariable +
                                  " to libcupti.so"
                            : "no CUPTI that was found can be used: " + library.refused.front();
  }
  if (library) find_sizes(library);
  return library;
}

}  // namespace strobe::cupti
