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
  kRmaPut = 46,
  kRmaGet,
  kRmaAtomic,
  kRmaCompleteBlocking,
  kRmaCompleteNonBlocking,
  kRmaCompleteRemote = 52,
  kCallingContextEnter = 66,
  kCallingContextLeave,
  kCallingContextSample,
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
inline bool is_singleton(uint8_t type) {
  switch (type) {
    case kEnter:
    case kLeave:
    case kMpiIsendComplete:
    case kMpiIrecvRequest:
    case kMpiRequestTest:
    case kMpiRequestCancelled:
    case kOmpFork:
    case kOmpTaskCreate:
    case kOmpTaskSwitch:
    case kOmpTaskComplete:
      return true;
    default:
      return false;
  }
}

// Events that become marks: name, and the fields in their order as "kind name": b byte, u number of 32 bits, U of 64
// bits, I the same signed, and references: c communicator, g group, w window, h I/O handle, f file. Null: unknown.
struct Shape {
  const char* name;
  const char* fields;
};
inline Shape shape_of(uint8_t type) {
  switch (type) {
    case kMpiRequestTest:
      return {"MpiRequestTest", "U request"};
    case kMpiRequestCancelled:
      return {"MpiRequestCancelled", "U request"};
    case kOmpFork:
      return {"OmpFork", "u requested_threads"};
    case 25:
      return {"OmpJoin", ""};
    case 26:
      return {"OmpAcquireLock", "u lock,u order"};
    case 27:
      return {"OmpReleaseLock", "u lock,u order"};
    case kOmpTaskCreate:
      return {"OmpTaskCreate", "U task"};
    case kOmpTaskSwitch:
      return {"OmpTaskSwitch", "U task"};
    case kOmpTaskComplete:
      return {"OmpTaskComplete", "U task"};
    case 35:
      return {"RmaWinCreate", "w window"};
    case 36:
      return {"RmaWinDestroy", "w window"};
    case 39:
      return {"RmaGroupSync", "u level,w window,g group"};
    case 40:
      return {"RmaRequestLock", "w window,u remote,U lock,b type"};
    case 41:
      return {"RmaAcquireLock", "w window,u remote,U lock,b type"};
    case 42:
      return {"RmaTryLock", "w window,u remote,U lock,b type"};
    case 43:
      return {"RmaReleaseLock", "w window,u remote,U lock"};
    case 44:
      return {"RmaSync", "w window,u remote,b type"};
    case 45:
      return {"RmaWaitChange", "w window"};
    case 51:
      return {"RmaOpTest", "w window,U matching"};
    case kRmaCompleteRemote:
      return {"RmaOpCompleteRemote", "w window,U matching"};
    case 53:
      return {"ThreadFork", "b model,u requested_threads"};
    case 54:
      return {"ThreadJoin", "b model"};
    case 55:
      return {"ThreadTeamBegin", "c team"};
    case 56:
      return {"ThreadTeamEnd", "c team"};
    case 57:
      return {"ThreadAcquireLock", "b model,u lock,u order"};
    case 58:
      return {"ThreadReleaseLock", "b model,u lock,u order"};
    case 59:
      return {"ThreadTaskCreate", "c team,u creating_thread,u generation"};
    case 60:
      return {"ThreadTaskSwitch", "c team,u creating_thread,u generation"};
    case 61:
      return {"ThreadTaskComplete", "c team,u creating_thread,u generation"};
    case 62:
      return {"ThreadCreate", "c contingent,U sequence"};
    case 63:
      return {"ThreadBegin", "c contingent,U sequence"};
    case 64:
      return {"ThreadWait", "c contingent,U sequence"};
    case 65:
      return {"ThreadEnd", "c contingent,U sequence"};
    case 69:
      return {"IoCreateHandle", "h handle,b mode,u creation_flags,u status_flags"};
    case 70:
      return {"IoDestroyHandle", "h handle"};
    case 71:
      return {"IoDuplicateHandle", "h old,h new,u status_flags"};
    case 72:
      return {"IoSeek", "h handle,I asked,b whence,U result"};
    case 73:
      return {"IoChangeStatusFlags", "h handle,u status_flags"};
    case 74:
      return {"IoDeleteFile", "b paradigm,f file"};
    case 75:
      return {"IoOperationBegin", "h handle,b mode,u flags,U bytes,U matching"};
    case 76:
      return {"IoOperationTest", "h handle,U matching"};
    case 77:
      return {"IoOperationIssued", "h handle,U matching"};
    case 78:
      return {"IoOperationComplete", "h handle,U bytes,U matching"};
    case 79:
      return {"IoOperationCancelled", "h handle,U matching"};
    case 80:
      return {"IoAcquireLock", "h handle,b type"};
    case 81:
      return {"IoReleaseLock", "h handle,b type"};
    case 82:
      return {"IoTryLock", "h handle,b type"};
    case kProgramEnd:
      return {"ProgramEnd", "I exit_status"};
    case 87:
      return {"CommCreate", "c communicator"};
    case 88:
      return {"CommDestroy", "c communicator"};
    default:
      return {nullptr, nullptr};
  }
}

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
