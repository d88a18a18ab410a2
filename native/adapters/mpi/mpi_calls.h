// mpi_calls.h - the MPI functions that are recorded, as a table for the preprocessor.
//
// MPI_CALL(name, arity, role, kind, arguments): `arity` arguments, all of them integers or pointers; `kind` is what
// the wrapper does (call_recording.h), `arguments` what each of them means (call_arguments.h). The name of an event
// does not contain the root: where it wanders (the panels of a factorisation) no two iterations would be alike. Nor
// does it contain bytes, tags and data types: these are in rows beside the spans.
//
// MPI_CALLS are the functions of MPI 3.1, which every library has: they are interposed by name. MPI_LATER_CALLS came
// with MPI 4: a program may ask whether its library has them (mpi4py does, by weak symbols), so that we must not define
// them; references to them are redirected where there are any (patched_references.cpp).
#pragma once

// clang-format off
// Collectives with counts: the name, the same behind an I, how many arguments the blocking function has, the one that
// returns a request, and the persistent one; then those of collective() in call_arguments.h.
#define MPI_COUNTED_COLLECTIVES(X, M, c) \
  X(M, c, Bcast,                bcast,                5,  6,  7, broadcast,            4,  3, 0, 1, 2, -1, -1, -1) \
  X(M, c, Gather,               gather,               8,  9, 10, gather,               7,  6, 0, 1, 2,  3,  4,  5) \
  X(M, c, Gatherv,              gatherv,              9, 10, 11, gatherv,              8,  7, 0, 1, 2,  3,  4,  6) \
  X(M, c, Scatter,              scatter,              8,  9, 10, scatter,              7,  6, 0, 1, 2,  3,  4,  5) \
  X(M, c, Scatterv,             scatterv,             9, 10, 11, scatterv,             8,  7, 0, 1, 3,  4,  5,  6) \
  X(M, c, Allgather,            allgather,            7,  8,  9, allgather,            6, -1, 0, 1, 2,  3,  4,  5) \
  X(M, c, Allgatherv,           allgatherv,           8,  9, 10, allgatherv,           7, -1, 0, 1, 2,  3,  4,  6) \
  X(M, c, Alltoall,             alltoall,             7,  8,  9, alltoall,             6, -1, 0, 1, 2,  3,  4,  5) \
  X(M, c, Alltoallv,            alltoallv,            9, 10, 11, alltoallv,            8, -1, 0, 1, 3,  4,  5,  7) \
  X(M, c, Alltoallw,            alltoallw,            9, 10, 11, alltoallw,            8, -1, 0, 1, 3,  4,  5,  7) \
  X(M, c, Reduce,               reduce,               7,  8,  9, reduce,               6,  5, 0, 2, 3,  1,  2,  3) \
  X(M, c, Allreduce,            allreduce,            6,  7,  8, allreduce,            5, -1, 0, 2, 3,  1,  2,  3) \
  X(M, c, Reduce_scatter,       reduce_scatter,       6,  7,  8, reduce_scatter,       5, -1, 0, 2, 3,  1,  2,  3) \
  X(M, c, Reduce_scatter_block, reduce_scatter_block, 6,  7,  8, reduce_scatter_block, 5, -1, 0, 2, 3,  1,  2,  3) \
  X(M, c, Scan,                 scan,                 6,  7,  8, scan,                 5, -1, 0, 2, 3,  1,  2,  3) \
  X(M, c, Exscan,               exscan,               6,  7,  8, exscan,               5, -1, 0, 2, 3,  1,  2,  3) \
  X(M, c, Neighbor_allgather,   neighbor_allgather,   7,  8,  9, neighbor_allgather,   6, -1, 0, 1, 2,  3,  4,  5) \
  X(M, c, Neighbor_allgatherv,  neighbor_allgatherv,  8,  9, 10, neighbor_allgatherv,  7, -1, 0, 1, 2,  3,  4,  6) \
  X(M, c, Neighbor_alltoall,    neighbor_alltoall,    7,  8,  9, neighbor_alltoall,    6, -1, 0, 1, 2,  3,  4,  5) \
  X(M, c, Neighbor_alltoallv,   neighbor_alltoallv,   9, 10, 11, neighbor_alltoallv,   8, -1, 0, 1, 3,  4,  5,  7) \
  X(M, c, Neighbor_alltoallw,   neighbor_alltoallw,   9, 10, 11, neighbor_alltoallw,   8, -1, 0, 1, 3,  4,  5,  7)
#define MPI_BLOCKING(MPI_CALL, c, Name, name, n, with_request, persistent, traffic, ...) \
  MPI_CALL(MPI_##Name##c, n, COLLECTIVE, kPlain, collective(Traffic::traffic, __VA_ARGS__))
#define MPI_WITH_REQUEST(MPI_CALL, c, Name, name, n, with_request, persistent, traffic, ...) \
  MPI_CALL(MPI_I##name##c, with_request, COLLECTIVE, kRequest, collective(Traffic::traffic, __VA_ARGS__))
#define MPI_PERSISTENT(MPI_CALL, c, Name, name, n, with_request, persistent, traffic, ...) \
  MPI_CALL(MPI_##Name##_init##c, persistent, COLLECTIVE, kPersistent, collective(Traffic::traffic, __VA_ARGS__))

// In one of the modes of sends.
#define MPI_SENDS(MPI_CALL, c, Name, name) \
  MPI_CALL(MPI_##Name##c, 6, P2P, kPlain, kSends)             \
  MPI_CALL(MPI_I##name##c, 7, P2P, kRequest, kSends)          \
  MPI_CALL(MPI_##Name##_init##c, 7, P2P, kPersistent, kSends)

#define MPI_TRANSFERS_OF_FILES(MPI_CALL, c, does) \
  MPI_CALL(MPI_File_##does##c, 5, OTHER, kPlain, file(Traffic::file_##does, 4))             \
  MPI_CALL(MPI_File_##does##_all##c, 5, OTHER, kPlain, file(Traffic::file_##does, 4))       \
  MPI_CALL(MPI_File_##does##_shared##c, 5, OTHER, kPlain, file(Traffic::file_##does, 4))    \
  MPI_CALL(MPI_File_##does##_ordered##c, 5, OTHER, kPlain, file(Traffic::file_##does, 4))   \
  MPI_CALL(MPI_File_##does##_at##c, 6, OTHER, kPlain, file(Traffic::file_##does, 5))        \
  MPI_CALL(MPI_File_##does##_at_all##c, 6, OTHER, kPlain, file(Traffic::file_##does, 5))    \
  MPI_CALL(MPI_File_i##does##c, 5, OTHER, kRequest, file(Traffic::file_##does, 4))          \
  MPI_CALL(MPI_File_i##does##_all##c, 5, OTHER, kRequest, file(Traffic::file_##does, 4))    \
  MPI_CALL(MPI_File_i##does##_shared##c, 5, OTHER, kRequest, file(Traffic::file_##does, 4)) \
  MPI_CALL(MPI_File_i##does##_at##c, 6, OTHER, kRequest, file(Traffic::file_##does, 5))     \
  MPI_CALL(MPI_File_i##does##_at_all##c, 6, OTHER, kRequest, file(Traffic::file_##does, 5)) \
  MPI_CALL(MPI_File_##does##_all_begin##c, 4, OTHER, kPlain, kFile)                         \
  MPI_CALL(MPI_File_##does##_ordered_begin##c, 4, OTHER, kPlain, kFile)                     \
  MPI_CALL(MPI_File_##does##_at_all_begin##c, 5, OTHER, kPlain, kFile)

// Functions with counts; `c` is empty, or _c for the variants with counts of 64 bits, which came with MPI 4.
#define MPI_COUNTED_CALLS(MPI_CALL, c) \
  MPI_SENDS(MPI_CALL, c, Send, send)                                            \
  MPI_SENDS(MPI_CALL, c, Bsend, bsend)                                          \
  MPI_SENDS(MPI_CALL, c, Ssend, ssend)                                          \
  MPI_SENDS(MPI_CALL, c, Rsend, rsend)                                          \
  MPI_CALL(MPI_Recv##c, 7, P2P, kPlain, kReceives)                              \
  MPI_CALL(MPI_Irecv##c, 7, P2P, kRequest, kReceives)                           \
  MPI_CALL(MPI_Sendrecv##c, 12, P2P, kPlain, kExchanges)                        \
  MPI_CALL(MPI_Sendrecv_replace##c, 9, P2P, kPlain, kExchangesInPlace)          \
  MPI_CALL(MPI_Mrecv##c, 5, P2P, kPlain, kReceivesMatched)                      \
  MPI_CALL(MPI_Imrecv##c, 5, P2P, kRequest, kReceivesMatched)                   \
  MPI_CALL(MPI_Recv_init##c, 7, P2P, kPersistent, kReceives)                    \
  MPI_COUNTED_COLLECTIVES(MPI_BLOCKING, MPI_CALL, c)                            \
  MPI_COUNTED_COLLECTIVES(MPI_WITH_REQUEST, MPI_CALL, c)                        \
  MPI_CALL(MPI_Put##c, 8, P2P, kPlain, kPuts)                                   \
  MPI_CALL(MPI_Get##c, 8, P2P, kPlain, kGets)                                   \
  MPI_CALL(MPI_Accumulate##c, 9, P2P, kPlain, kAccumulates)                     \
  MPI_CALL(MPI_Get_accumulate##c, 12, P2P, kPlain, kGetAccumulates)             \
  MPI_CALL(MPI_Rput##c, 9, P2P, kRequest, kPuts)                                \
  MPI_CALL(MPI_Rget##c, 9, P2P, kRequest, kGets)                                \
  MPI_CALL(MPI_Raccumulate##c, 10, P2P, kRequest, kAccumulates)                 \
  MPI_CALL(MPI_Rget_accumulate##c, 13, P2P, kRequest, kGetAccumulates)          \
  MPI_CALL(MPI_Win_create##c, 6, COLLECTIVE, kNewWin, makes_window(4))          \
  MPI_CALL(MPI_Win_allocate##c, 6, COLLECTIVE, kNewWin, makes_window(3))        \
  MPI_CALL(MPI_Win_allocate_shared##c, 6, COLLECTIVE, kNewWin, makes_window(3)) \
  MPI_TRANSFERS_OF_FILES(MPI_CALL, c, read)                                     \
  MPI_TRANSFERS_OF_FILES(MPI_CALL, c, write)

#define MPI_PERSISTENT_COLLECTIVES(MPI_CALL, c) \
  MPI_CALL(MPI_Isendrecv##c, 12, P2P, kRequest, kExchanges)               \
  MPI_CALL(MPI_Isendrecv_replace##c, 9, P2P, kRequest, kExchangesInPlace) \
  MPI_COUNTED_COLLECTIVES(MPI_PERSISTENT, MPI_CALL, c)

#define MPI_CALLS(MPI_CALL) \
  MPI_CALL(MPI_Init, 2, OTHER, kInit, kNothing)                                        \
  MPI_CALL(MPI_Init_thread, 4, OTHER, kInit, kNothing)                                 \
  MPI_CALL(MPI_Finalize, 0, OTHER, kFinalize, kNothing)                                \
  MPI_CALL(MPI_Abort, 2, OTHER, kAbort, kNothing)                                      \
  MPI_CALL(MPI_Start, 1, P2P, kStart, kNothing)                                        \
  MPI_CALL(MPI_Startall, 2, P2P, kStartall, kNothing)                                  \
  MPI_CALL(MPI_Probe, 4, P2P, kPlain, kProbes)                                         \
  MPI_CALL(MPI_Mprobe, 5, P2P, kMprobe, kProbesMatched)                                \
  MPI_CALL(MPI_Iprobe, 5, P2P, kIprobe, kLooks)                                        \
  MPI_CALL(MPI_Improbe, 6, P2P, kImprobe, kLooks)                                      \
  MPI_CALL(MPI_Wait, 2, WAIT, kWait, kNothing)                                         \
  MPI_CALL(MPI_Waitall, 3, WAIT, kWaitall, kNothing)                                   \
  MPI_CALL(MPI_Waitany, 4, WAIT, kWaitany, kNothing)                                   \
  MPI_CALL(MPI_Waitsome, 5, WAIT, kWaitsome, kNothing)                                 \
  MPI_CALL(MPI_Test, 3, WAIT, kTest, kNothing)                                         \
  MPI_CALL(MPI_Testall, 4, WAIT, kTestall, kNothing)                                   \
  MPI_CALL(MPI_Testany, 5, WAIT, kTestany, kNothing)                                   \
  MPI_CALL(MPI_Testsome, 5, WAIT, kTestsome, kNothing)                                 \
  MPI_CALL(MPI_Request_get_status, 3, WAIT, kGetStatus, kNothing)                      \
  MPI_CALL(MPI_Request_free, 1, OTHER, kRequestFree, kNothing)                         \
  MPI_CALL(MPI_Cancel, 1, OTHER, kCancel, kNothing)                                    \
  MPI_CALL(MPI_Barrier, 1, SYNC, kPlain, kBarrier)                                     \
  MPI_CALL(MPI_Ibarrier, 2, SYNC, kRequest, kBarrier)                                  \
  MPI_CALL(MPI_Comm_dup, 2, COLLECTIVE, kNewComm, kCreates)                            \
  MPI_CALL(MPI_Comm_dup_with_info, 3, COLLECTIVE, kNewComm, kCreates)                  \
  MPI_CALL(MPI_Comm_idup, 3, COLLECTIVE, kIdup, kCreates)                              \
  MPI_CALL(MPI_Comm_create, 3, COLLECTIVE, kNewComm, kCreates)                         \
  MPI_CALL(MPI_Comm_create_group, 4, COLLECTIVE, kNewComm, kCreatesBySome)             \
  MPI_CALL(MPI_Comm_split, 4, COLLECTIVE, kNewComm, kCreates)                          \
  MPI_CALL(MPI_Comm_split_type, 5, COLLECTIVE, kNewComm, kCreates)                     \
  MPI_CALL(MPI_Comm_free, 1, COLLECTIVE, kFreeComm, kDestroys)                         \
  MPI_CALL(MPI_Comm_disconnect, 1, COLLECTIVE, kFreeComm, kDestroys)                   \
  MPI_CALL(MPI_Comm_set_name, 2, OTHER, kNameComm, kNothing)                           \
  MPI_CALL(MPI_Comm_spawn, 8, COLLECTIVE, kPlain, kNothing)                            \
  MPI_CALL(MPI_Comm_spawn_multiple, 9, COLLECTIVE, kPlain, kNothing)                   \
  MPI_CALL(MPI_Comm_accept, 5, COLLECTIVE, kPlain, kNothing)                           \
  MPI_CALL(MPI_Comm_connect, 5, COLLECTIVE, kPlain, kNothing)                          \
  MPI_CALL(MPI_Comm_join, 2, COLLECTIVE, kPlain, kNothing)                             \
  MPI_CALL(MPI_Intercomm_create, 6, COLLECTIVE, kNewComm, kCreatesBetween)             \
  MPI_CALL(MPI_Intercomm_merge, 3, COLLECTIVE, kNewComm, kCreates)                     \
  MPI_CALL(MPI_Cart_create, 6, COLLECTIVE, kNewComm, kCreates)                         \
  MPI_CALL(MPI_Cart_sub, 3, COLLECTIVE, kNewComm, kCreates)                            \
  MPI_CALL(MPI_Graph_create, 6, COLLECTIVE, kNewComm, kCreates)                        \
  MPI_CALL(MPI_Dist_graph_create, 9, COLLECTIVE, kNewComm, kCreates)                   \
  MPI_CALL(MPI_Dist_graph_create_adjacent, 10, COLLECTIVE, kNewComm, kCreates)         \
  MPI_CALL(MPI_Fetch_and_op, 7, P2P, kPlain, kFetchAndOp)                              \
  MPI_CALL(MPI_Compare_and_swap, 7, P2P, kPlain, kCompareAndSwap)                      \
  MPI_CALL(MPI_Win_create_dynamic, 3, COLLECTIVE, kNewWin, makes_window(1))            \
  MPI_CALL(MPI_Win_free, 1, COLLECTIVE, kFreeWin, kFreesWindow)                        \
  MPI_CALL(MPI_Win_fence, 2, SYNC, kPlain, epoch(Traffic::fence, 1))                   \
  MPI_CALL(MPI_Win_lock, 4, SYNC, kPlain, epoch(Traffic::lock, 3, 1))                  \
  MPI_CALL(MPI_Win_unlock, 2, SYNC, kPlain, epoch(Traffic::unlock, 1, 0))              \
  MPI_CALL(MPI_Win_lock_all, 2, SYNC, kPlain, epoch(Traffic::lock, 1))                 \
  MPI_CALL(MPI_Win_unlock_all, 1, SYNC, kPlain, epoch(Traffic::unlock, 0))             \
  MPI_CALL(MPI_Win_flush, 2, SYNC, kPlain, window(1, 0))                               \
  MPI_CALL(MPI_Win_flush_local, 2, SYNC, kPlain, window(1, 0))                         \
  MPI_CALL(MPI_Win_flush_all, 1, SYNC, kPlain, window(0))                              \
  MPI_CALL(MPI_Win_flush_local_all, 1, SYNC, kPlain, window(0))                        \
  MPI_CALL(MPI_Win_sync, 1, SYNC, kPlain, window(0))                                   \
  MPI_CALL(MPI_Win_post, 3, SYNC, kBeginsEpoch, epoch(Traffic::post, 2))               \
  MPI_CALL(MPI_Win_start, 3, SYNC, kBeginsEpoch, epoch(Traffic::start, 2))             \
  MPI_CALL(MPI_Win_complete, 1, SYNC, kEndsEpoch, epoch(Traffic::complete, 0))         \
  MPI_CALL(MPI_Win_wait, 1, SYNC, kEndsEpoch, epoch(Traffic::wait, 0))                 \
  MPI_CALL(MPI_Win_test, 2, SYNC, kWinTest, epoch(Traffic::wait, 0))                   \
  MPI_CALL(MPI_File_open, 5, OTHER, kNewFile, kCreates)                                \
  MPI_CALL(MPI_File_close, 1, OTHER, kFreeFile, kClosesFile)                           \
  MPI_CALL(MPI_File_delete, 2, OTHER, kPlain, kNothing)                                \
  MPI_CALL(MPI_File_read_all_end, 3, OTHER, kPlain, file(Traffic::file_read, 2))       \
  MPI_CALL(MPI_File_read_ordered_end, 3, OTHER, kPlain, file(Traffic::file_read, 2))   \
  MPI_CALL(MPI_File_read_at_all_end, 3, OTHER, kPlain, file(Traffic::file_read, 2))    \
  MPI_CALL(MPI_File_write_all_end, 3, OTHER, kPlain, file(Traffic::file_write, 2))     \
  MPI_CALL(MPI_File_write_ordered_end, 3, OTHER, kPlain, file(Traffic::file_write, 2)) \
  MPI_CALL(MPI_File_write_at_all_end, 3, OTHER, kPlain, file(Traffic::file_write, 2))  \
  MPI_CALL(MPI_File_seek, 3, OTHER, kPlain, kFile)                                     \
  MPI_CALL(MPI_File_seek_shared, 3, OTHER, kPlain, kFile)                              \
  MPI_CALL(MPI_File_set_view, 6, OTHER, kPlain, kFile)                                 \
  MPI_CALL(MPI_File_set_size, 2, OTHER, kPlain, kFile)                                 \
  MPI_CALL(MPI_File_preallocate, 2, OTHER, kPlain, kFile)                              \
  MPI_CALL(MPI_File_sync, 1, OTHER, kPlain, kFile)                                     \
  MPI_CALL(MPI_Buffer_detach, 2, OTHER, kPlain, kNothing)                              \
  MPI_CALL(MPI_Type_free, 1, OTHER, kFreeType, kNothing)                               \
  MPI_COUNTED_CALLS(MPI_CALL, )

#define MPI_LATER_CALLS(MPI_CALL) \
  MPI_CALL(MPI_Comm_idup_with_info, 4, COLLECTIVE, kIdup, kCreates)           \
  MPI_CALL(MPI_Comm_create_from_group, 5, COLLECTIVE, kPlain, kNothing)       \
  MPI_CALL(MPI_Intercomm_create_from_groups, 8, COLLECTIVE, kPlain, kNothing) \
  MPI_CALL(MPI_Session_init, 3, OTHER, kSession, kNothing)                    \
  MPI_CALL(MPI_Session_finalize, 1, OTHER, kPlain, kNothing)                  \
  MPI_CALL(MPI_Psend_init, 9, P2P, kPersistent, kSendsInParts)                \
  MPI_CALL(MPI_Precv_init, 9, P2P, kPersistent, kReceivesInParts)             \
  MPI_CALL(MPI_Pready, 2, P2P, kPlain, kNothing)                              \
  MPI_CALL(MPI_Pready_range, 3, P2P, kPlain, kNothing)                        \
  MPI_CALL(MPI_Pready_list, 3, P2P, kPlain, kNothing)                         \
  MPI_CALL(MPI_Parrived, 3, P2P, kParrived, kNothing)                         \
  MPI_CALL(MPI_Buffer_flush, 0, OTHER, kPlain, kNothing)                      \
  MPI_CALL(MPI_Comm_flush_buffer, 1, OTHER, kPlain, kNothing)                 \
  MPI_CALL(MPI_Session_flush_buffer, 1, OTHER, kPlain, kNothing)              \
  MPI_CALL(MPI_Request_get_status_all, 4, WAIT, kGetStatusAll, kNothing)      \
  MPI_CALL(MPI_Request_get_status_any, 5, WAIT, kGetStatusAny, kNothing)      \
  MPI_CALL(MPI_Request_get_status_some, 5, WAIT, kGetStatusSome, kNothing)    \
  MPI_CALL(MPI_Barrier_init, 3, SYNC, kPersistent, kBarrier)                  \
  MPI_PERSISTENT_COLLECTIVES(MPI_CALL, )                                      \
  MPI_PERSISTENT_COLLECTIVES(MPI_CALL, _c)                                    \
  MPI_COUNTED_CALLS(MPI_CALL, _c)
// clang-format on
