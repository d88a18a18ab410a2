// calls.h - the MPI functions that are recorded, as a table for the preprocessor.
//
// MPI_CALL(name, arity, role, kind, dest, source, comm): `arity` arguments, all of them integers or pointers; `kind`
// says what the wrapper does (wrappers.cpp); the last three are the positions of the arguments that say who the peers
// are, -1 where there are none. A root is no peer: where it wanders (the panels of a factorisation) no two iterations
// would be alike. Nor are bytes, tags and data types part of what an event is called.
//
// MPI_CALLS are the functions of MPI 3.1, which every library has: they are interposed by name. MPI_LATER_CALLS came
// with MPI 4: a program may ask whether its library has them (mpi4py does, by weak symbols), so that we must not define
// them; references to them are redirected where there are any (references.cpp).
#pragma once

// clang-format off
#define MPI_CALLS(MPI_CALL)                                       \
  MPI_CALL(MPI_Init, 2, OTHER, kInit, -1, -1, -1)                 \
  MPI_CALL(MPI_Init_thread, 4, OTHER, kInit, -1, -1, -1)          \
  MPI_CALL(MPI_Finalize, 0, OTHER, kPlain, -1, -1, -1)            \
  MPI_CALL(MPI_Abort, 2, OTHER, kAbort, -1, -1, -1)               \
  MPI_CALL(MPI_Send, 6, P2P, kPlain, 3, -1, 5)                    \
  MPI_CALL(MPI_Bsend, 6, P2P, kPlain, 3, -1, 5)                   \
  MPI_CALL(MPI_Ssend, 6, P2P, kPlain, 3, -1, 5)                   \
  MPI_CALL(MPI_Rsend, 6, P2P, kPlain, 3, -1, 5)                   \
  MPI_CALL(MPI_Recv, 7, P2P, kPlain, -1, 3, 5)                    \
  MPI_CALL(MPI_Isend, 7, P2P, kPlain, 3, -1, 5)                   \
  MPI_CALL(MPI_Ibsend, 7, P2P, kPlain, 3, -1, 5)                  \
  MPI_CALL(MPI_Issend, 7, P2P, kPlain, 3, -1, 5)                  \
  MPI_CALL(MPI_Irsend, 7, P2P, kPlain, 3, -1, 5)                  \
  MPI_CALL(MPI_Irecv, 7, P2P, kPlain, -1, 3, 5)                   \
  MPI_CALL(MPI_Sendrecv, 12, P2P, kPlain, 3, 8, 10)               \
  MPI_CALL(MPI_Sendrecv_replace, 9, P2P, kPlain, 3, 5, 7)         \
  MPI_CALL(MPI_Mrecv, 5, P2P, kPlain, -1, -1, -1)                 \
  MPI_CALL(MPI_Imrecv, 5, P2P, kPlain, -1, -1, -1)                \
  MPI_CALL(MPI_Start, 1, P2P, kPlain, -1, -1, -1)                 \
  MPI_CALL(MPI_Startall, 2, P2P, kPlain, -1, -1, -1)              \
  MPI_CALL(MPI_Probe, 4, P2P, kPlain, -1, 0, 2)                   \
  MPI_CALL(MPI_Mprobe, 5, P2P, kPlain, -1, 0, 2)                  \
  MPI_CALL(MPI_Iprobe, 5, P2P, kPoll + 3, -1, 0, 2)               \
  MPI_CALL(MPI_Improbe, 6, P2P, kPoll + 3, -1, 0, 2)              \
  MPI_CALL(MPI_Wait, 2, WAIT, kPlain, -1, -1, -1)                 \
  MPI_CALL(MPI_Waitall, 3, WAIT, kPlain, -1, -1, -1)              \
  MPI_CALL(MPI_Waitany, 4, WAIT, kPlain, -1, -1, -1)              \
  MPI_CALL(MPI_Waitsome, 5, WAIT, kPlain, -1, -1, -1)             \
  MPI_CALL(MPI_Test, 3, WAIT, kPoll + 1, -1, -1, -1)              \
  MPI_CALL(MPI_Testall, 4, WAIT, kPoll + 2, -1, -1, -1)           \
  MPI_CALL(MPI_Testany, 5, WAIT, kPoll + 3, -1, -1, -1)           \
  MPI_CALL(MPI_Testsome, 5, WAIT, kPoll + 2, -1, -1, -1)          \
  MPI_CALL(MPI_Request_get_status, 3, WAIT, kPoll + 1, -1, -1, -1) \
  MPI_CALL(MPI_Barrier, 1, SYNC, kPlain, -1, -1, -1)              \
  MPI_CALL(MPI_Bcast, 5, COLLECTIVE, kPlain, -1, -1, -1)          \
  MPI_CALL(MPI_Gather, 8, COLLECTIVE, kPlain, -1, -1, -1)         \
  MPI_CALL(MPI_Gatherv, 9, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Scatter, 8, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Scatterv, 9, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Allgather, 7, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Allgatherv, 8, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Alltoall, 7, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Alltoallv, 9, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Alltoallw, 9, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Reduce, 7, COLLECTIVE, kPlain, -1, -1, -1)         \
  MPI_CALL(MPI_Allreduce, 6, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Reduce_scatter, 6, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Reduce_scatter_block, 6, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Scan, 6, COLLECTIVE, kPlain, -1, -1, -1)           \
  MPI_CALL(MPI_Exscan, 6, COLLECTIVE, kPlain, -1, -1, -1)         \
  MPI_CALL(MPI_Neighbor_allgather, 7, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Neighbor_allgatherv, 8, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Neighbor_alltoall, 7, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Neighbor_alltoallv, 9, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Neighbor_alltoallw, 9, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ibarrier, 2, SYNC, kPlain, -1, -1, -1)             \
  MPI_CALL(MPI_Ibcast, 6, COLLECTIVE, kPlain, -1, -1, -1)         \
  MPI_CALL(MPI_Igather, 9, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Igatherv, 10, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Iscatter, 9, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Iscatterv, 10, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Iallgather, 8, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Iallgatherv, 9, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ialltoall, 8, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Ialltoallv, 10, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ialltoallw, 10, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ireduce, 8, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Iallreduce, 7, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Ireduce_scatter, 7, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Ireduce_scatter_block, 7, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Iscan, 7, COLLECTIVE, kPlain, -1, -1, -1)          \
  MPI_CALL(MPI_Iexscan, 7, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Ineighbor_allgather, 8, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Ineighbor_allgatherv, 9, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ineighbor_alltoall, 8, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ineighbor_alltoallv, 10, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ineighbor_alltoallw, 10, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Comm_dup, 2, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Comm_dup_with_info, 3, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Comm_idup, 3, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Comm_create, 3, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Comm_create_group, 4, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Comm_split, 4, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Comm_split_type, 5, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Comm_free, 1, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Comm_disconnect, 1, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Comm_spawn, 8, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Intercomm_create, 6, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Intercomm_merge, 3, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Cart_create, 6, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Cart_sub, 3, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Graph_create, 6, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Dist_graph_create, 9, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Dist_graph_create_adjacent, 10, COLLECTIVE, kPlain, -1, -1, -1)

#define MPI_LATER_CALLS(MPI_CALL)                                 \
  MPI_CALL(MPI_Isendrecv, 12, P2P, kPlain, 3, 8, 10)              \
  MPI_CALL(MPI_Isendrecv_replace, 9, P2P, kPlain, 3, 5, 7)        \
  MPI_CALL(MPI_Comm_idup_with_info, 4, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Send_c, 6, P2P, kPlain, 3, -1, 5)                  \
  MPI_CALL(MPI_Bsend_c, 6, P2P, kPlain, 3, -1, 5)                 \
  MPI_CALL(MPI_Ssend_c, 6, P2P, kPlain, 3, -1, 5)                 \
  MPI_CALL(MPI_Rsend_c, 6, P2P, kPlain, 3, -1, 5)                 \
  MPI_CALL(MPI_Recv_c, 7, P2P, kPlain, -1, 3, 5)                  \
  MPI_CALL(MPI_Isend_c, 7, P2P, kPlain, 3, -1, 5)                 \
  MPI_CALL(MPI_Ibsend_c, 7, P2P, kPlain, 3, -1, 5)                \
  MPI_CALL(MPI_Issend_c, 7, P2P, kPlain, 3, -1, 5)                \
  MPI_CALL(MPI_Irsend_c, 7, P2P, kPlain, 3, -1, 5)                \
  MPI_CALL(MPI_Irecv_c, 7, P2P, kPlain, -1, 3, 5)                 \
  MPI_CALL(MPI_Sendrecv_c, 12, P2P, kPlain, 3, 8, 10)             \
  MPI_CALL(MPI_Sendrecv_replace_c, 9, P2P, kPlain, 3, 5, 7)       \
  MPI_CALL(MPI_Isendrecv_c, 12, P2P, kPlain, 3, 8, 10)            \
  MPI_CALL(MPI_Isendrecv_replace_c, 9, P2P, kPlain, 3, 5, 7)      \
  MPI_CALL(MPI_Mrecv_c, 5, P2P, kPlain, -1, -1, -1)               \
  MPI_CALL(MPI_Imrecv_c, 5, P2P, kPlain, -1, -1, -1)              \
  MPI_CALL(MPI_Bcast_c, 5, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Gather_c, 8, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Gatherv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Scatter_c, 8, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Scatterv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Allgather_c, 7, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Allgatherv_c, 8, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Alltoall_c, 7, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Alltoallv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Alltoallw_c, 9, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Reduce_c, 7, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Allreduce_c, 6, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Reduce_scatter_c, 6, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Reduce_scatter_block_c, 6, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Scan_c, 6, COLLECTIVE, kPlain, -1, -1, -1)         \
  MPI_CALL(MPI_Exscan_c, 6, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Neighbor_allgather_c, 7, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Neighbor_allgatherv_c, 8, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Neighbor_alltoall_c, 7, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Neighbor_alltoallv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Neighbor_alltoallw_c, 9, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Ibcast_c, 6, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Igather_c, 9, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Igatherv_c, 10, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Iscatter_c, 9, COLLECTIVE, kPlain, -1, -1, -1)     \
  MPI_CALL(MPI_Iscatterv_c, 10, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Iallgather_c, 8, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Iallgatherv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ialltoall_c, 8, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ialltoallv_c, 10, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ialltoallw_c, 10, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ireduce_c, 8, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Iallreduce_c, 7, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Ireduce_scatter_c, 7, COLLECTIVE, kPlain, -1, -1, -1)       \
  MPI_CALL(MPI_Ireduce_scatter_block_c, 7, COLLECTIVE, kPlain, -1, -1, -1) \
  MPI_CALL(MPI_Iscan_c, 7, COLLECTIVE, kPlain, -1, -1, -1)        \
  MPI_CALL(MPI_Iexscan_c, 7, COLLECTIVE, kPlain, -1, -1, -1)      \
  MPI_CALL(MPI_Ineighbor_allgather_c, 8, COLLECTIVE, kPlain, -1, -1, -1)   \
  MPI_CALL(MPI_Ineighbor_allgatherv_c, 9, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ineighbor_alltoall_c, 8, COLLECTIVE, kPlain, -1, -1, -1)    \
  MPI_CALL(MPI_Ineighbor_alltoallv_c, 10, COLLECTIVE, kPlain, -1, -1, -1)  \
  MPI_CALL(MPI_Ineighbor_alltoallw_c, 10, COLLECTIVE, kPlain, -1, -1, -1)
// clang-format on
