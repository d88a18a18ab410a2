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
// Functions with counts; `c` is empty, or _c for the variants with counts of 64 bits, which came with MPI 4.
#define MPI_COUNTED_CALLS(MPI_CALL, c) \
  MPI_CALL(MPI_Send##c, 6, P2P, kPlain, kSends)                                        \
  MPI_CALL(MPI_Bsend##c, 6, P2P, kPlain, kSends)                                       \
  MPI_CALL(MPI_Ssend##c, 6, P2P, kPlain, kSends)                                       \
  MPI_CALL(MPI_Rsend##c, 6, P2P, kPlain, kSends)                                       \
  MPI_CALL(MPI_Recv##c, 7, P2P, kPlain, kReceives)                                     \
  MPI_CALL(MPI_Isend##c, 7, P2P, kRequest, kSends)                                     \
  MPI_CALL(MPI_Ibsend##c, 7, P2P, kRequest, kSends)                                    \
  MPI_CALL(MPI_Issend##c, 7, P2P, kRequest, kSends)                                    \
  MPI_CALL(MPI_Irsend##c, 7, P2P, kRequest, kSends)                                    \
  MPI_CALL(MPI_Irecv##c, 7, P2P, kRequest, kReceives)                                  \
  MPI_CALL(MPI_Sendrecv##c, 12, P2P, kPlain, kExchanges)                               \
  MPI_CALL(MPI_Sendrecv_replace##c, 9, P2P, kPlain, kExchangesInPlace)                 \
  MPI_CALL(MPI_Mrecv##c, 5, P2P, kPlain, kReceivesMatched)                             \
  MPI_CALL(MPI_Imrecv##c, 5, P2P, kRequest, kReceivesMatched)                          \
  MPI_CALL(MPI_Send_init##c, 7, P2P, kPersistent, kSends)                              \
  MPI_CALL(MPI_Bsend_init##c, 7, P2P, kPersistent, kSends)                             \
  MPI_CALL(MPI_Ssend_init##c, 7, P2P, kPersistent, kSends)                             \
  MPI_CALL(MPI_Rsend_init##c, 7, P2P, kPersistent, kSends)                             \
  MPI_CALL(MPI_Recv_init##c, 7, P2P, kPersistent, kReceives)                           \
  MPI_CALL(MPI_Bcast##c, 5, COLLECTIVE, kPlain, kBroadcast)                            \
  MPI_CALL(MPI_Gather##c, 8, COLLECTIVE, kPlain, kGather)                              \
  MPI_CALL(MPI_Gatherv##c, 9, COLLECTIVE, kPlain, kGatherv)                            \
  MPI_CALL(MPI_Scatter##c, 8, COLLECTIVE, kPlain, kScatter)                            \
  MPI_CALL(MPI_Scatterv##c, 9, COLLECTIVE, kPlain, kScatterv)                          \
  MPI_CALL(MPI_Allgather##c, 7, COLLECTIVE, kPlain, kAllgather)                        \
  MPI_CALL(MPI_Allgatherv##c, 8, COLLECTIVE, kPlain, kAllgatherv)                      \
  MPI_CALL(MPI_Alltoall##c, 7, COLLECTIVE, kPlain, kAlltoall)                          \
  MPI_CALL(MPI_Alltoallv##c, 9, COLLECTIVE, kPlain, kAlltoallv)                        \
  MPI_CALL(MPI_Alltoallw##c, 9, COLLECTIVE, kPlain, kAlltoallw)                        \
  MPI_CALL(MPI_Reduce##c, 7, COLLECTIVE, kPlain, kReduce)                              \
  MPI_CALL(MPI_Allreduce##c, 6, COLLECTIVE, kPlain, kAllreduce)                        \
  MPI_CALL(MPI_Reduce_scatter##c, 6, COLLECTIVE, kPlain, kReduceScatter)               \
  MPI_CALL(MPI_Reduce_scatter_block##c, 6, COLLECTIVE, kPlain, kReduceScatterBlock)    \
  MPI_CALL(MPI_Scan##c, 6, COLLECTIVE, kPlain, kScan)                                  \
  MPI_CALL(MPI_Exscan##c, 6, COLLECTIVE, kPlain, kExscan)                              \
  MPI_CALL(MPI_Neighbor_allgather##c, 7, COLLECTIVE, kPlain, kNeighborAllgather)       \
  MPI_CALL(MPI_Neighbor_allgatherv##c, 8, COLLECTIVE, kPlain, kNeighborAllgatherv)     \
  MPI_CALL(MPI_Neighbor_alltoall##c, 7, COLLECTIVE, kPlain, kNeighborAlltoall)         \
  MPI_CALL(MPI_Neighbor_alltoallv##c, 9, COLLECTIVE, kPlain, kNeighborAlltoallv)       \
  MPI_CALL(MPI_Neighbor_alltoallw##c, 9, COLLECTIVE, kPlain, kNeighborAlltoallw)       \
  MPI_CALL(MPI_Ibcast##c, 6, COLLECTIVE, kRequest, kBroadcast)                         \
  MPI_CALL(MPI_Igather##c, 9, COLLECTIVE, kRequest, kGather)                           \
  MPI_CALL(MPI_Igatherv##c, 10, COLLECTIVE, kRequest, kGatherv)                        \
  MPI_CALL(MPI_Iscatter##c, 9, COLLECTIVE, kRequest, kScatter)                         \
  MPI_CALL(MPI_Iscatterv##c, 10, COLLECTIVE, kRequest, kScatterv)                      \
  MPI_CALL(MPI_Iallgather##c, 8, COLLECTIVE, kRequest, kAllgather)                     \
  MPI_CALL(MPI_Iallgatherv##c, 9, COLLECTIVE, kRequest, kAllgatherv)                   \
  MPI_CALL(MPI_Ialltoall##c, 8, COLLECTIVE, kRequest, kAlltoall)                       \
  MPI_CALL(MPI_Ialltoallv##c, 10, COLLECTIVE, kRequest, kAlltoallv)                    \
  MPI_CALL(MPI_Ialltoallw##c, 10, COLLECTIVE, kRequest, kAlltoallw)                    \
  MPI_CALL(MPI_Ireduce##c, 8, COLLECTIVE, kRequest, kReduce)                           \
  MPI_CALL(MPI_Iallreduce##c, 7, COLLECTIVE, kRequest, kAllreduce)                     \
  MPI_CALL(MPI_Ireduce_scatter##c, 7, COLLECTIVE, kRequest, kReduceScatter)            \
  MPI_CALL(MPI_Ireduce_scatter_block##c, 7, COLLECTIVE, kRequest, kReduceScatterBlock) \
  MPI_CALL(MPI_Iscan##c, 7, COLLECTIVE, kRequest, kScan)                               \
  MPI_CALL(MPI_Iexscan##c, 7, COLLECTIVE, kRequest, kExscan)                           \
  MPI_CALL(MPI_Ineighbor_allgather##c, 8, COLLECTIVE, kRequest, kNeighborAllgather)    \
  MPI_CALL(MPI_Ineighbor_allgatherv##c, 9, COLLECTIVE, kRequest, kNeighborAllgatherv)  \
  MPI_CALL(MPI_Ineighbor_alltoall##c, 8, COLLECTIVE, kRequest, kNeighborAlltoall)      \
  MPI_CALL(MPI_Ineighbor_alltoallv##c, 10, COLLECTIVE, kRequest, kNeighborAlltoallv)   \
  MPI_CALL(MPI_Ineighbor_alltoallw##c, 10, COLLECTIVE, kRequest, kNeighborAlltoallw)   \
  MPI_CALL(MPI_Put##c, 8, P2P, kPlain, kPuts)                                          \
  MPI_CALL(MPI_Get##c, 8, P2P, kPlain, kGets)                                          \
  MPI_CALL(MPI_Accumulate##c, 9, P2P, kPlain, kAccumulates)                            \
  MPI_CALL(MPI_Get_accumulate##c, 12, P2P, kPlain, kGetAccumulates)                    \
  MPI_CALL(MPI_Rput##c, 9, P2P, kRequest, kPuts)                                       \
  MPI_CALL(MPI_Rget##c, 9, P2P, kRequest, kGets)                                       \
  MPI_CALL(MPI_Raccumulate##c, 10, P2P, kRequest, kAccumulates)                        \
  MPI_CALL(MPI_Rget_accumulate##c, 13, P2P, kRequest, kGetAccumulates)                 \
  MPI_CALL(MPI_Win_create##c, 6, COLLECTIVE, kNewWin, makes_window(4))                 \
  MPI_CALL(MPI_Win_allocate##c, 6, COLLECTIVE, kNewWin, makes_window(3))               \
  MPI_CALL(MPI_Win_allocate_shared##c, 6, COLLECTIVE, kNewWin, makes_window(3))        \
  MPI_CALL(MPI_File_read##c, 5, OTHER, kPlain, kFileReads)                             \
  MPI_CALL(MPI_File_read_all##c, 5, OTHER, kPlain, kFileReads)                         \
  MPI_CALL(MPI_File_read_shared##c, 5, OTHER, kPlain, kFileReads)                      \
  MPI_CALL(MPI_File_read_ordered##c, 5, OTHER, kPlain, kFileReads)                     \
  MPI_CALL(MPI_File_read_at##c, 6, OTHER, kPlain, kFileReadsAt)                        \
  MPI_CALL(MPI_File_read_at_all##c, 6, OTHER, kPlain, kFileReadsAt)                    \
  MPI_CALL(MPI_File_iread##c, 5, OTHER, kRequest, kFileReads)                          \
  MPI_CALL(MPI_File_iread_all##c, 5, OTHER, kRequest, kFileReads)                      \
  MPI_CALL(MPI_File_iread_shared##c, 5, OTHER, kRequest, kFileReads)                   \
  MPI_CALL(MPI_File_iread_at##c, 6, OTHER, kRequest, kFileReadsAt)                     \
  MPI_CALL(MPI_File_iread_at_all##c, 6, OTHER, kRequest, kFileReadsAt)                 \
  MPI_CALL(MPI_File_read_all_begin##c, 4, OTHER, kPlain, kFile)                        \
  MPI_CALL(MPI_File_read_ordered_begin##c, 4, OTHER, kPlain, kFile)                    \
  MPI_CALL(MPI_File_read_at_all_begin##c, 5, OTHER, kPlain, kFile)                     \
  MPI_CALL(MPI_File_write##c, 5, OTHER, kPlain, kFileWrites)                           \
  MPI_CALL(MPI_File_write_all##c, 5, OTHER, kPlain, kFileWrites)                       \
  MPI_CALL(MPI_File_write_shared##c, 5, OTHER, kPlain, kFileWrites)                    \
  MPI_CALL(MPI_File_write_ordered##c, 5, OTHER, kPlain, kFileWrites)                   \
  MPI_CALL(MPI_File_write_at##c, 6, OTHER, kPlain, kFileWritesAt)                      \
  MPI_CALL(MPI_File_write_at_all##c, 6, OTHER, kPlain, kFileWritesAt)                  \
  MPI_CALL(MPI_File_iwrite##c, 5, OTHER, kRequest, kFileWrites)                        \
  MPI_CALL(MPI_File_iwrite_all##c, 5, OTHER, kRequest, kFileWrites)                    \
  MPI_CALL(MPI_File_iwrite_shared##c, 5, OTHER, kRequest, kFileWrites)                 \
  MPI_CALL(MPI_File_iwrite_at##c, 6, OTHER, kRequest, kFileWritesAt)                   \
  MPI_CALL(MPI_File_iwrite_at_all##c, 6, OTHER, kRequest, kFileWritesAt)               \
  MPI_CALL(MPI_File_write_all_begin##c, 4, OTHER, kPlain, kFile)                       \
  MPI_CALL(MPI_File_write_ordered_begin##c, 4, OTHER, kPlain, kFile)                   \
  MPI_CALL(MPI_File_write_at_all_begin##c, 5, OTHER, kPlain, kFile)

#define MPI_PERSISTENT_COLLECTIVES(MPI_CALL, c) \
  MPI_CALL(MPI_Isendrecv##c, 12, P2P, kRequest, kExchanges)                                   \
  MPI_CALL(MPI_Isendrecv_replace##c, 9, P2P, kRequest, kExchangesInPlace)                     \
  MPI_CALL(MPI_Bcast_init##c, 7, COLLECTIVE, kPersistent, kBroadcast)                         \
  MPI_CALL(MPI_Gather_init##c, 10, COLLECTIVE, kPersistent, kGather)                          \
  MPI_CALL(MPI_Gatherv_init##c, 11, COLLECTIVE, kPersistent, kGatherv)                        \
  MPI_CALL(MPI_Scatter_init##c, 10, COLLECTIVE, kPersistent, kScatter)                        \
  MPI_CALL(MPI_Scatterv_init##c, 11, COLLECTIVE, kPersistent, kScatterv)                      \
  MPI_CALL(MPI_Allgather_init##c, 9, COLLECTIVE, kPersistent, kAllgather)                     \
  MPI_CALL(MPI_Allgatherv_init##c, 10, COLLECTIVE, kPersistent, kAllgatherv)                  \
  MPI_CALL(MPI_Alltoall_init##c, 9, COLLECTIVE, kPersistent, kAlltoall)                       \
  MPI_CALL(MPI_Alltoallv_init##c, 11, COLLECTIVE, kPersistent, kAlltoallv)                    \
  MPI_CALL(MPI_Alltoallw_init##c, 11, COLLECTIVE, kPersistent, kAlltoallw)                    \
  MPI_CALL(MPI_Reduce_init##c, 9, COLLECTIVE, kPersistent, kReduce)                           \
  MPI_CALL(MPI_Allreduce_init##c, 8, COLLECTIVE, kPersistent, kAllreduce)                     \
  MPI_CALL(MPI_Reduce_scatter_init##c, 8, COLLECTIVE, kPersistent, kReduceScatter)            \
  MPI_CALL(MPI_Reduce_scatter_block_init##c, 8, COLLECTIVE, kPersistent, kReduceScatterBlock) \
  MPI_CALL(MPI_Scan_init##c, 8, COLLECTIVE, kPersistent, kScan)                               \
  MPI_CALL(MPI_Exscan_init##c, 8, COLLECTIVE, kPersistent, kExscan)                           \
  MPI_CALL(MPI_Neighbor_allgather_init##c, 9, COLLECTIVE, kPersistent, kNeighborAllgather)    \
  MPI_CALL(MPI_Neighbor_allgatherv_init##c, 10, COLLECTIVE, kPersistent, kNeighborAllgatherv) \
  MPI_CALL(MPI_Neighbor_alltoall_init##c, 9, COLLECTIVE, kPersistent, kNeighborAlltoall)      \
  MPI_CALL(MPI_Neighbor_alltoallv_init##c, 11, COLLECTIVE, kPersistent, kNeighborAlltoallv)   \
  MPI_CALL(MPI_Neighbor_alltoallw_init##c, 11, COLLECTIVE, kPersistent, kNeighborAlltoallw)

#define MPI_CALLS(MPI_CALL) \
  MPI_CALL(MPI_Init, 2, OTHER, kInit, kNothing)                                \
  MPI_CALL(MPI_Init_thread, 4, OTHER, kInit, kNothing)                         \
  MPI_CALL(MPI_Finalize, 0, OTHER, kFinalize, kNothing)                        \
  MPI_CALL(MPI_Abort, 2, OTHER, kAbort, kNothing)                              \
  MPI_CALL(MPI_Start, 1, P2P, kStart, kNothing)                                \
  MPI_CALL(MPI_Startall, 2, P2P, kStartall, kNothing)                          \
  MPI_CALL(MPI_Probe, 4, P2P, kPlain, kProbes)                                 \
  MPI_CALL(MPI_Mprobe, 5, P2P, kMprobe, kProbes)                               \
  MPI_CALL(MPI_Iprobe, 5, P2P, kIprobe, kProbes)                               \
  MPI_CALL(MPI_Improbe, 6, P2P, kImprobe, kProbes)                             \
  MPI_CALL(MPI_Wait, 2, WAIT, kWait, kNothing)                                 \
  MPI_CALL(MPI_Waitall, 3, WAIT, kWaitall, kNothing)                           \
  MPI_CALL(MPI_Waitany, 4, WAIT, kWaitany, kNothing)                           \
  MPI_CALL(MPI_Waitsome, 5, WAIT, kWaitsome, kNothing)                         \
  MPI_CALL(MPI_Test, 3, WAIT, kTest, kNothing)                                 \
  MPI_CALL(MPI_Testall, 4, WAIT, kTestall, kNothing)                           \
  MPI_CALL(MPI_Testany, 5, WAIT, kTestany, kNothing)                           \
  MPI_CALL(MPI_Testsome, 5, WAIT, kTestsome, kNothing)                         \
  MPI_CALL(MPI_Request_get_status, 3, WAIT, kGetStatus, kNothing)              \
  MPI_CALL(MPI_Request_free, 1, OTHER, kRequestFree, kNothing)                 \
  MPI_CALL(MPI_Cancel, 1, OTHER, kCancel, kNothing)                            \
  MPI_CALL(MPI_Barrier, 1, SYNC, kPlain, kBarrier)                             \
  MPI_CALL(MPI_Ibarrier, 2, SYNC, kRequest, kBarrier)                          \
  MPI_CALL(MPI_Comm_dup, 2, COLLECTIVE, kNewComm, kCreates)                    \
  MPI_CALL(MPI_Comm_dup_with_info, 3, COLLECTIVE, kNewComm, kCreates)          \
  MPI_CALL(MPI_Comm_idup, 3, COLLECTIVE, kIdup, kCreates)                      \
  MPI_CALL(MPI_Comm_create, 3, COLLECTIVE, kNewComm, kCreates)                 \
  MPI_CALL(MPI_Comm_create_group, 4, COLLECTIVE, kNewComm, kCreatesBySome)     \
  MPI_CALL(MPI_Comm_split, 4, COLLECTIVE, kNewComm, kCreates)                  \
  MPI_CALL(MPI_Comm_split_type, 5, COLLECTIVE, kNewComm, kCreates)             \
  MPI_CALL(MPI_Comm_free, 1, COLLECTIVE, kFreeComm, kDestroys)                 \
  MPI_CALL(MPI_Comm_disconnect, 1, COLLECTIVE, kFreeComm, kDestroys)           \
  MPI_CALL(MPI_Comm_set_name, 2, OTHER, kNameComm, kNothing)                   \
  MPI_CALL(MPI_Comm_spawn, 8, COLLECTIVE, kPlain, kNothing)                    \
  MPI_CALL(MPI_Comm_spawn_multiple, 9, COLLECTIVE, kPlain, kNothing)           \
  MPI_CALL(MPI_Comm_accept, 5, COLLECTIVE, kPlain, kNothing)                   \
  MPI_CALL(MPI_Comm_connect, 5, COLLECTIVE, kPlain, kNothing)                  \
  MPI_CALL(MPI_Comm_join, 2, COLLECTIVE, kPlain, kNothing)                     \
  MPI_CALL(MPI_Intercomm_create, 6, COLLECTIVE, kNewComm, kCreatesBetween)     \
  MPI_CALL(MPI_Intercomm_merge, 3, COLLECTIVE, kNewComm, kCreates)             \
  MPI_CALL(MPI_Cart_create, 6, COLLECTIVE, kNewComm, kCreates)                 \
  MPI_CALL(MPI_Cart_sub, 3, COLLECTIVE, kNewComm, kCreates)                    \
  MPI_CALL(MPI_Graph_create, 6, COLLECTIVE, kNewComm, kCreates)                \
  MPI_CALL(MPI_Dist_graph_create, 9, COLLECTIVE, kNewComm, kCreates)           \
  MPI_CALL(MPI_Dist_graph_create_adjacent, 10, COLLECTIVE, kNewComm, kCreates) \
  MPI_CALL(MPI_Fetch_and_op, 7, P2P, kPlain, kFetchAndOp)                      \
  MPI_CALL(MPI_Compare_and_swap, 7, P2P, kPlain, kCompareAndSwap)              \
  MPI_CALL(MPI_Win_create_dynamic, 3, COLLECTIVE, kNewWin, makes_window(1))    \
  MPI_CALL(MPI_Win_free, 1, COLLECTIVE, kFreeWin, kFreesWindow)                \
  MPI_CALL(MPI_Win_fence, 2, SYNC, kPlain, window(1))                          \
  MPI_CALL(MPI_Win_lock, 4, SYNC, kPlain, window(3, 1))                        \
  MPI_CALL(MPI_Win_unlock, 2, SYNC, kPlain, window(1, 0))                      \
  MPI_CALL(MPI_Win_lock_all, 2, SYNC, kPlain, window(1))                       \
  MPI_CALL(MPI_Win_unlock_all, 1, SYNC, kPlain, window(0))                     \
  MPI_CALL(MPI_Win_flush, 2, SYNC, kPlain, window(1, 0))                       \
  MPI_CALL(MPI_Win_flush_local, 2, SYNC, kPlain, window(1, 0))                 \
  MPI_CALL(MPI_Win_flush_all, 1, SYNC, kPlain, window(0))                      \
  MPI_CALL(MPI_Win_flush_local_all, 1, SYNC, kPlain, window(0))                \
  MPI_CALL(MPI_Win_sync, 1, SYNC, kPlain, window(0))                           \
  MPI_CALL(MPI_Win_post, 3, SYNC, kPlain, window(2))                           \
  MPI_CALL(MPI_Win_start, 3, SYNC, kPlain, window(2))                          \
  MPI_CALL(MPI_Win_complete, 1, SYNC, kPlain, window(0))                       \
  MPI_CALL(MPI_Win_wait, 1, SYNC, kPlain, window(0))                           \
  MPI_CALL(MPI_Win_test, 2, SYNC, kWinTest, window(0))                         \
  MPI_CALL(MPI_File_open, 5, OTHER, kNewFile, kCreates)                        \
  MPI_CALL(MPI_File_close, 1, OTHER, kFreeFile, kClosesFile)                   \
  MPI_CALL(MPI_File_delete, 2, OTHER, kPlain, kNothing)                        \
  MPI_CALL(MPI_File_read_all_end, 3, OTHER, kPlain, kFileEndsRead)             \
  MPI_CALL(MPI_File_read_ordered_end, 3, OTHER, kPlain, kFileEndsRead)         \
  MPI_CALL(MPI_File_read_at_all_end, 3, OTHER, kPlain, kFileEndsRead)          \
  MPI_CALL(MPI_File_write_all_end, 3, OTHER, kPlain, kFileEndsWrite)           \
  MPI_CALL(MPI_File_write_ordered_end, 3, OTHER, kPlain, kFileEndsWrite)       \
  MPI_CALL(MPI_File_write_at_all_end, 3, OTHER, kPlain, kFileEndsWrite)        \
  MPI_CALL(MPI_File_seek, 3, OTHER, kPlain, kFile)                             \
  MPI_CALL(MPI_File_seek_shared, 3, OTHER, kPlain, kFile)                      \
  MPI_CALL(MPI_File_set_view, 6, OTHER, kPlain, kFile)                         \
  MPI_CALL(MPI_File_set_size, 2, OTHER, kPlain, kFile)                         \
  MPI_CALL(MPI_File_preallocate, 2, OTHER, kPlain, kFile)                      \
  MPI_CALL(MPI_File_sync, 1, OTHER, kPlain, kFile)                             \
  MPI_CALL(MPI_Buffer_detach, 2, OTHER, kPlain, kNothing)                      \
  MPI_CALL(MPI_Type_free, 1, OTHER, kFreeType, kNothing)                       \
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
