// interface.h - what is used of OpenACC's profiling interface. The layouts and numbers are those of the standard
// (OpenACC 2.6 and later, chapter 5), so that no runtime's acc_prof.h is needed.
#pragma once
#include <stddef.h>
#include <sys/types.h>

namespace strobe::openacc {

// The first of two events, "start"; the number after it is that of the "end".
enum Event : int {
  kDeviceInit = 1,
  kDeviceShutdown = 3,
  kEnterData = 10,
  kExitData = 12,
  kUpdate = 14,
  kCompute = 16,
  kLaunch = 18,
  kUpload = 20,
  kDownload = 22,
  kWait = 24,
};

struct ProfInfo {
  int event, valid_bytes, version, device_type, device_number, thread_id;
  ssize_t async, async_queue;
  const char *src_file, *func_name;
  int line_no, end_line_no, func_line_no, func_end_line_no;
};
struct EventInfo {
  int event, valid_bytes, parent_construct, implicit;
  void* tool_info;
  const char* name;  // of the variable or kernel; or null
  size_t bytes;      // that are copied; of a launch: gangs
};
using Callback = void (*)(ProfInfo*, EventInfo*, void* api_info);
using Register = void (*)(int event, Callback callback, int toggle);

}  // namespace strobe::openacc
