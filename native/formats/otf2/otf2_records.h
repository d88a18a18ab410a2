// otf2_records.h - the records of OTF2's event files: their numbers, and what is in those that are kept as marks.
#pragma once
#include <stdint.h>

namespace strobe::otf2 {

enum EventType : uint8_t {
  kTimestamp = 5,
  kAttributeList = 6,
  kBufferFlush = 10,
  kMeasurementOnOff,
  kEnter,
  kLeave,
  kMpiSend,
  kMpiIsend,
  kMpiIsendComplete,
  kMpiIrecvRequest,
  kMpiRecv,
  kMpiIrecv,
  kMpiRequestTest,
  kMpiRequestCancelled,
  kMpiCollectiveBegin,
  kMpiCollectiveEnd,
  kOmpFork,
  kOmpTaskCreate = 28,
  kOmpTaskSwitch,
  kOmpTaskComplete,
  kMetric,
  kParameterString,
  kParameterInt,
  kParameterUnsigned,
  kRmaCollectiveBegin = 37,
  kRmaCollectiveEnd,
  kRmaGroupSync,
  kRmaRequestLock,
  kRmaReleaseLock = 43,
  kRmaPut = 46,
  kRmaGet,
  kRmaAtomic,
  kRmaCompleteBlocking,
  kRmaCompleteNonBlocking,
  kRmaCompleteRemote = 52,
  kThreadFork = 53,
  kThreadEnd = 65,
  kCallingContextEnter = 66,
  kCallingContextLeave,
  kCallingContextSample,
  kIoCreateHandle = 69,
  kIoDestroyHandle,
  kIoSeek = 72,
  kIoOperationBegin = 75,
  kIoOperationComplete = 78,
  kProgramBegin = 83,
  kProgramEnd,
  kNonBlockingCollectiveRequest,
  kNonBlockingCollectiveComplete,
  kMpiProbe = 89,
  kMpiMrecv,
  kMpiImrecvRequest,
  kMpiImrecv
};

// Singletons have no length: a single compressed number follows their type.
constexpr uint64_t kSingletons = [] {
  uint64_t all = 0;
  for (const EventType each : {kEnter, kLeave, kMpiIsendComplete, kMpiIrecvRequest, kMpiRequestTest,
                               kMpiRequestCancelled, kOmpFork, kOmpTaskCreate, kOmpTaskSwitch, kOmpTaskComplete})
    all |= uint64_t(1) << each;
  return all;
}();
inline bool is_singleton(uint8_t type) { return type < 64 && (kSingletons >> type & 1); }

// Events that become marks: name, and the fields in their order as "kind name": b byte, u number of 32 bits, U of 64
// bits, I the same signed, and references: c communicator, g group, w window, h I/O handle, f file.
struct Shape {
  uint8_t type;
  const char *name, *fields;
};
constexpr Shape kShapes[] = {
    {kMpiRequestTest, "MpiRequestTest", "U request"},
    {kMpiRequestCancelled, "MpiRequestCancelled", "U request"},
    {kOmpFork, "OmpFork", "u requested_threads"},
    {25, "OmpJoin", ""},
    {26, "OmpAcquireLock", "u lock,u order"},
    {27, "OmpReleaseLock", "u lock,u order"},
    {kOmpTaskCreate, "OmpTaskCreate", "U task"},
    {kOmpTaskSwitch, "OmpTaskSwitch", "U task"},
    {kOmpTaskComplete, "OmpTaskComplete", "U task"},
    {35, "RmaWinCreate", "w window"},
    {36, "RmaWinDestroy", "w window"},
    {kRmaGroupSync, "RmaGroupSync", "u level,w window,g group"},
    {kRmaRequestLock, "RmaRequestLock", "w window,u remote,U lock,b type"},
    {41, "RmaAcquireLock", "w window,u remote,U lock,b type"},
    {42, "RmaTryLock", "w window,u remote,U lock,b type"},
    {kRmaReleaseLock, "RmaReleaseLock", "w window,u remote,U lock"},
    {44, "RmaSync", "w window,u remote,b type"},
    {45, "RmaWaitChange", "w window"},
    {51, "RmaOpTest", "w window,U matching"},
    {kRmaCompleteRemote, "RmaOpCompleteRemote", "w window,U matching"},
    {53, "ThreadFork", "b model,u requested_threads"},
    {54, "ThreadJoin", "b model"},
    {55, "ThreadTeamBegin", "c team"},
    {56, "ThreadTeamEnd", "c team"},
    {57, "ThreadAcquireLock", "b model,u lock,u order"},
    {58, "ThreadReleaseLock", "b model,u lock,u order"},
    {59, "ThreadTaskCreate", "c team,u creating_thread,u generation"},
    {60, "ThreadTaskSwitch", "c team,u creating_thread,u generation"},
    {61, "ThreadTaskComplete", "c team,u creating_thread,u generation"},
    {62, "ThreadCreate", "c contingent,U sequence"},
    {63, "ThreadBegin", "c contingent,U sequence"},
    {64, "ThreadWait", "c contingent,U sequence"},
    {65, "ThreadEnd", "c contingent,U sequence"},
    {69, "IoCreateHandle", "h handle,b mode,u creation_flags,u status_flags"},
    {70, "IoDestroyHandle", "h handle"},
    {71, "IoDuplicateHandle", "h old,h new,u status_flags"},
    {72, "IoSeek", "h handle,I asked,b whence,U result"},
    {73, "IoChangeStatusFlags", "h handle,u status_flags"},
    {74, "IoDeleteFile", "b paradigm,f file"},
    {75, "IoOperationBegin", "h handle,b mode,u flags,U bytes,U matching"},
    {76, "IoOperationTest", "h handle,U matching"},
    {77, "IoOperationIssued", "h handle,U matching"},
    {78, "IoOperationComplete", "h handle,U bytes,U matching"},
    {79, "IoOperationCancelled", "h handle,U matching"},
    {80, "IoAcquireLock", "h handle,b type"},
    {81, "IoReleaseLock", "h handle,b type"},
    {82, "IoTryLock", "h handle,b type"},
    {kProgramEnd, "ProgramEnd", "I exit_status"},
    {87, "CommCreate", "c communicator"},
    {88, "CommDestroy", "c communicator"},
};

// OTF2_CollectiveOp.
constexpr const char* kCollectiveNames[] = {"barrier",
                                            "broadcast",
                                            "gather",
                                            "gatherv",
                                            "scatter",
                                            "scatterv",
                                            "allgather",
                                            "allgatherv",
                                            "alltoall",
                                            "alltoallv",
                                            "alltoallw",
                                            "allreduce",
                                            "reduce",
                                            "reduce_scatter",
                                            "scan",
                                            "exscan",
                                            "reduce_scatter_block",
                                            "create_handle",
                                            "destroy_handle",
                                            "allocate",
                                            "deallocate",
                                            "create_handle_and_allocate",
                                            "destroy_handle_and_deallocate"};

}  // namespace strobe::otf2
