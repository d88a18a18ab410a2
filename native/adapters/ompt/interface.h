// interface.h - what is used of OMPT, the interface for tools of OpenMP 5.x. The layouts and numbers are those of the
// standard (OpenMP 5.2, chapter 19), so that no runtime's header is needed.
#pragma once
#include <stdint.h>

namespace strobe::ompt {

// The runtime keeps one for each thread, region and task, for the tool.
union Data {
  uint64_t value;
  void* pointer;
};
using Callback = void (*)();
using Lookup = Callback (*)(const char* name);
struct StartToolResult {
  int (*initialize)(Lookup lookup, int initial_device, Data* tool);
  void (*finalize)(Data* tool);
  Data tool;
};

// Events.
constexpr int kThreadBegin = 1, kThreadEnd = 2, kParallelBegin = 3, kParallelEnd = 4, kTaskCreate = 5,
              kTaskSchedule = 6, kImplicitTask = 7, kSyncRegionWait = 16, kMutexReleased = 17, kWork = 20,
              kMutexAcquire = 26, kMutexAcquired = 27, kNestLock = 28;
constexpr int kBegin = 1, kEnd = 2;                                                // ends of what has two
constexpr int kWorker = 2;                                                         // a kind of thread
constexpr int kImplicit = 2, kUndeferred = 0x08000000;                             // flags of tasks
constexpr int kComplete = 1, kCancel = 3, kDetach = 4;                             // why a task is scheduled, when
                                                                                   // the one before is over
constexpr int kTestLock = 2, kNestedLock = 3, kTestNestedLock = 4, kCritical = 5;  // kinds of mutexes
constexpr int kAtEndOfRegion = 9;                                                  // a kind of barrier
constexpr int kSingleOther = 4;                                                    // a kind of work

}  // namespace strobe::ompt
