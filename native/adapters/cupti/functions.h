// functions.h - CUPTI's functions that strobe calls, as pointers: none is linked.
#pragma once
#include "adapters/cupti/abi.h"

// X(needed, member, name after "cupti", parameters); all return Result. Those not needed may be NULL: the comment has
// the first CUDA release with them.
#define STROBE_CUPTI_FUNCTIONS(X)                                                                                   \
  X(true, get_version, GetVersion, (uint32_t* version))                                                             \
  X(true, get_result_string, GetResultString, (Result result, const char** text))                                   \
  X(false, get_error_message, GetErrorMessage, (Result result, const char** text)) /* 12.4 */                       \
  X(true, get_timestamp, GetTimestamp, (uint64_t* ns))                                                              \
  X(true, subscribe, Subscribe, (Subscriber * subscriber, Callback callback, void* user))                           \
  X(true, unsubscribe, Unsubscribe, (Subscriber subscriber))                                                        \
  X(true, enable_callback, EnableCallback, (uint32_t enable, Subscriber subscriber, Domain domain, uint32_t cbid))  \
  X(true, get_callback_name, GetCallbackName, (Domain domain, uint32_t cbid, const char** name))                    \
  X(true, activity_enable, ActivityEnable, (Kind kind))                                                             \
  X(false, activity_enable_and_dump, ActivityEnableAndDump, (Kind kind))                                            \
  X(true, activity_disable, ActivityDisable, (Kind kind))                                                           \
  X(true, activity_register_callbacks, ActivityRegisterCallbacks,                                                   \
    (BufferRequested requested, BufferCompleted completed))                                                         \
  X(true, activity_get_next_record, ActivityGetNextRecord, (uint8_t* buffer, size_t valid, Activity** record))      \
  X(true, activity_get_num_dropped_records, ActivityGetNumDroppedRecords,                                           \
    (Context context, uint32_t stream, size_t* dropped))                                                            \
  X(true, activity_flush_all, ActivityFlushAll, (uint32_t flag))                                                    \
  X(true, activity_set_attribute, ActivitySetAttribute, (Attribute attribute, size_t* size, void* value))           \
  X(false, activity_register_timestamp_callback, ActivityRegisterTimestampCallback, (Timestamp now))     /* 11.6 */ \
  X(false, activity_get_struct_size, ActivityGetStructSize, (Kind kind, uint32_t version, size_t* size)) /* 13.2 */ \
  X(false, activity_enable_runtime_api, ActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))       /* 12.6 */ \
  X(false, activity_enable_driver_api, ActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))         /* 12.6 */ \
  X(false, activity_enable_all_sync_records, ActivityEnableAllSyncRecords, (uint8_t enable))             /* 12.8 */ \
  X(false, activity_configure_unified_memory, ActivityConfigureUnifiedMemoryCounter,                                \
    (UnifiedMemoryConfig * config, uint32_t count))                                                                 \
  X(false, set_thread_id_type, SetThreadIdType, (ThreadIdType type))                                                \
  X(false, get_graph_node_id, GetGraphNodeId, (GraphNode node, uint64_t* id))

namespace strobe::cupti {

struct Functions {
#define STROBE_MEMBER(needed, member, name, parameters) Result(*member) parameters = nullptr;
  STROBE_CUPTI_FUNCTIONS(STROBE_MEMBER)
#undef STROBE_MEMBER
};

}  // namespace strobe::cupti
