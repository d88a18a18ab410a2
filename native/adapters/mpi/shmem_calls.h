// shmem_calls.h - the functions of OpenSHMEM 1.4 that are recorded, as a table for the preprocessor.
//
// SHMEM_CALL(result, name, parameters, arguments, arity, role, kind, facts). A parameter is a word (mpi_library.h), but
// for values of floating-point types, which have registers of their own. `facts`: shmem_... in call_arguments.h.
#pragma once

#include "adapters/mpi/call_parameters.h"

// clang-format off
// X(name, type of a value, bytes).
#define SHMEM_FLOATS(M, X) M(X, float, float, 4) M(X, double, double, 8)
#define SHMEM_INTS(M, X) M(X, int, Word, 4) M(X, long, Word, 8) M(X, longlong, Word, 8)
#define SHMEM_BITS(M, X) \
  SHMEM_INTS(M, X) M(X, uint, Word, 4) M(X, ulong, Word, 8) M(X, ulonglong, Word, 8) M(X, int32, Word, 4) \
  M(X, int64, Word, 8) M(X, uint32, Word, 4) M(X, uint64, Word, 8)
#define SHMEM_COUNTS(M, X) SHMEM_BITS(M, X) M(X, size, Word, 8) M(X, ptrdiff, Word, 8)
#define SHMEM_TYPES(M, X) \
  SHMEM_FLOATS(M, X) SHMEM_COUNTS(M, X) M(X, longdouble, long double, 16) M(X, char, Word, 1) M(X, schar, Word, 1) \
  M(X, uchar, Word, 1) M(X, short, Word, 2) M(X, ushort, Word, 2) M(X, int8, Word, 1) M(X, uint8, Word, 1) \
  M(X, int16, Word, 2) M(X, uint16, Word, 2)

#define SHMEM_WORDS(X, name, n, ...) X(Word, name, (ARGUMENTS_##n(Word)), (ARGUMENTS_##n()), n, __VA_ARGS__)
// With and without a context. Of many elements: their number and the PE come last; of one only the PE.
#define SHMEM_MANY(X, name, n, with_context, traffic, out, in) \
  SHMEM_WORDS(X, shmem_##name, n, P2P, kPlain, shmem_moves(Traffic::traffic, n, true, out, in)) \
  SHMEM_WORDS(X, shmem_ctx_##name, with_context, P2P, kPlain, shmem_moves(Traffic::traffic, with_context, true, out, in))
#define SHMEM_ONE(X, name, n, with_context, traffic, out, in) \
  SHMEM_WORDS(X, shmem_##name, n, P2P, kPlain, shmem_moves(Traffic::traffic, n, false, out, in)) \
  SHMEM_WORDS(X, shmem_ctx_##name, with_context, P2P, kPlain, shmem_moves(Traffic::traffic, with_context, false, out, in))
// Those that take a value, or return one.
#define SHMEM_TAKES(X, R, name, V, traffic, out, in) \
  X(R, shmem_##name, (Word a, V b, Word c), (a, b, c), 3, P2P, kPlain, shmem_moves(Traffic::traffic, 3, false, out, in))
#define SHMEM_RETURNS(X, name, V, traffic, in) \
  X(V, shmem_##name, (Word a, Word b), (a, b), 2, P2P, kPlain, shmem_moves(Traffic::traffic, 2, false, 0, in))
#define SHMEM_VALUES(X, puts, gets, V, put_traffic, get_traffic, bytes) \
  SHMEM_TAKES(X, void, puts, V, put_traffic, bytes, 0) \
  SHMEM_RETURNS(X, gets, V, get_traffic, bytes) \
  X(void, shmem_ctx_##puts, (Word a, Word b, V c, Word d), (a, b, c, d), 4, P2P, kPlain, \
    shmem_moves(Traffic::put_traffic, 4, false, bytes, 0)) \
  X(V, shmem_ctx_##gets, (Word a, Word b, Word c), (a, b, c), 3, P2P, kPlain, \
    shmem_moves(Traffic::get_traffic, 3, false, 0, bytes))

#define SHMEM_TRANSFERS(X, puts, gets, bytes) \
  SHMEM_MANY(X, puts, 4, 5, put, bytes, 0) SHMEM_MANY(X, puts##_nbi, 4, 5, put, bytes, 0) \
  SHMEM_MANY(X, gets, 4, 5, get, 0, bytes) SHMEM_MANY(X, gets##_nbi, 4, 5, get, 0, bytes)
#define SHMEM_SIZED(X, bits, bytes) \
  SHMEM_TRANSFERS(X, put##bits, get##bits, bytes) \
  SHMEM_MANY(X, iput##bits, 6, 7, put, bytes, 0) SHMEM_MANY(X, iget##bits, 6, 7, get, 0, bytes)
#define SHMEM_TYPED(X, type, V, bytes) \
  SHMEM_TRANSFERS(X, type##_put, type##_get, bytes) SHMEM_VALUES(X, type##_p, type##_g, V, put, get, bytes) \
  SHMEM_MANY(X, type##_iput, 6, 7, put, bytes, 0) SHMEM_MANY(X, type##_iget, 6, 7, get, 0, bytes)

#define SHMEM_OPERATION(X, type, name, bytes) \
  SHMEM_ONE(X, type##_atomic_##name, 3, 4, accumulate, bytes, 0) \
  SHMEM_ONE(X, type##_atomic_fetch_##name, 3, 4, fetch_and_op, bytes, bytes)
#define SHMEM_BITWISE(X, type, V, bytes) \
  SHMEM_OPERATION(X, type, and, bytes) SHMEM_OPERATION(X, type, or, bytes) SHMEM_OPERATION(X, type, xor, bytes)
#define SHMEM_ARITHMETIC(X, type, V, bytes) \
  SHMEM_OPERATION(X, type, add, bytes) \
  SHMEM_ONE(X, type##_atomic_inc, 2, 3, accumulate, bytes, 0) \
  SHMEM_ONE(X, type##_atomic_fetch_inc, 2, 3, fetch_and_op, bytes, bytes) \
  SHMEM_ONE(X, type##_atomic_compare_swap, 4, 5, compare_and_swap, bytes, bytes)
#define SHMEM_EXCHANGES(X, type, V, bytes) \
  SHMEM_VALUES(X, type##_atomic_set, type##_atomic_fetch, V, accumulate, fetch_and_op, bytes) \
  SHMEM_TAKES(X, V, type##_atomic_swap, V, fetch_and_op, bytes, bytes) \
  X(V, shmem_ctx_##type##_atomic_swap, (Word a, Word b, V c, Word d), (a, b, c, d), 4, P2P, kPlain, \
    shmem_moves(Traffic::fetch_and_op, 4, false, bytes, bytes))
// The names of OpenSHMEM 1.3.
#define SHMEM_OLD_EXCHANGES(X, type, V, bytes) \
  SHMEM_TAKES(X, void, type##_set, V, accumulate, bytes, 0) \
  SHMEM_TAKES(X, V, type##_swap, V, fetch_and_op, bytes, bytes) \
  SHMEM_RETURNS(X, type##_fetch, V, fetch_and_op, bytes)
#define SHMEM_OLD_ARITHMETIC(X, type, V, bytes) \
  SHMEM_WORDS(X, shmem_##type##_add, 3, P2P, kPlain, shmem_moves(Traffic::accumulate, 3, false, bytes, 0)) \
  SHMEM_WORDS(X, shmem_##type##_inc, 2, P2P, kPlain, shmem_moves(Traffic::accumulate, 2, false, bytes, 0)) \
  SHMEM_WORDS(X, shmem_##type##_fadd, 3, P2P, kPlain, shmem_moves(Traffic::fetch_and_op, 3, false, bytes, bytes)) \
  SHMEM_WORDS(X, shmem_##type##_finc, 2, P2P, kPlain, shmem_moves(Traffic::fetch_and_op, 2, false, bytes, bytes)) \
  SHMEM_WORDS(X, shmem_##type##_cswap, 4, P2P, kPlain, shmem_moves(Traffic::compare_and_swap, 4, false, bytes, bytes))

#define SHMEM_WAITS(X, type, V, bytes) \
  SHMEM_WORDS(X, shmem_##type##_wait_until, 3, WAIT, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_##type##_wait, 2, WAIT, kPlain, kNothing)

#define SHMEM_TOGETHER(X, name, n, traffic, ...) \
  SHMEM_WORDS(X, shmem_##name, n, COLLECTIVE, kPlain, shmem_together(Traffic::traffic, __VA_ARGS__))
#define SHMEM_REDUCTION(X, type, name, bytes) SHMEM_TOGETHER(X, type##_##name##_to_all, 8, allreduce, 3, 2, bytes, bytes)
#define SHMEM_SUMS(X, type, V, bytes) SHMEM_REDUCTION(X, type, sum, bytes) SHMEM_REDUCTION(X, type, prod, bytes)
#define SHMEM_EXTREMES(X, type, V, bytes) \
  SHMEM_SUMS(X, type, V, bytes) SHMEM_REDUCTION(X, type, min, bytes) SHMEM_REDUCTION(X, type, max, bytes)
#define SHMEM_REDUCTIONS(X, type, V, bytes) \
  SHMEM_EXTREMES(X, type, V, bytes) SHMEM_REDUCTION(X, type, and, bytes) SHMEM_REDUCTION(X, type, or, bytes) \
  SHMEM_REDUCTION(X, type, xor, bytes)
#define SHMEM_COLLECTIVES(X, bits, bytes) \
  SHMEM_TOGETHER(X, broadcast##bits, 8, broadcast, 4, 2, bytes, bytes, 3) \
  SHMEM_TOGETHER(X, collect##bits, 7, allgatherv, 3, 2, bytes, -1) \
  SHMEM_TOGETHER(X, fcollect##bits, 7, allgather, 3, 2, bytes, bytes) \
  SHMEM_TOGETHER(X, alltoall##bits, 7, alltoall, 3, 2, bytes, bytes) \
  SHMEM_TOGETHER(X, alltoalls##bits, 9, alltoall, 5, 4, bytes, bytes)
#define SHMEM_BARRIER(X, name, n, set) SHMEM_WORDS(X, shmem_##name, n, SYNC, kPlain, shmem_together(Traffic::barrier, set))

#define SHMEM_CALLS(X) \
  SHMEM_WORDS(X, shmem_init, 0, OTHER, kInit, kNothing) \
  SHMEM_WORDS(X, shmem_init_thread, 2, OTHER, kInit, kNothing) \
  SHMEM_WORDS(X, start_pes, 1, OTHER, kInit, kNothing) \
  SHMEM_WORDS(X, shmem_finalize, 0, OTHER, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_global_exit, 1, OTHER, kAbort, kNothing) \
  SHMEM_WORDS(X, shmem_quiet, 0, SYNC, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_fence, 0, SYNC, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_ctx_quiet, 1, SYNC, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_ctx_fence, 1, SYNC, kPlain, kNothing) \
  SHMEM_WORDS(X, shmem_set_lock, 1, SYNC, kPlain, shmem_locks(Traffic::lock)) \
  SHMEM_WORDS(X, shmem_test_lock, 1, SYNC, kTest, shmem_locks(Traffic::lock)) \
  SHMEM_WORDS(X, shmem_clear_lock, 1, SYNC, kPlain, shmem_locks(Traffic::unlock)) \
  SHMEM_BARRIER(X, barrier_all, 0, -1) SHMEM_BARRIER(X, barrier, 4, 0) \
  SHMEM_BARRIER(X, sync_all, 0, -1) SHMEM_BARRIER(X, sync, 4, 0) \
  SHMEM_TOGETHER(X, malloc, 1, create_handle_and_allocate, -1) \
  SHMEM_TOGETHER(X, calloc, 2, create_handle_and_allocate, -1) \
  SHMEM_TOGETHER(X, align, 2, create_handle_and_allocate, -1) \
  SHMEM_TOGETHER(X, free, 1, destroy_handle_and_deallocate, -1) \
  SHMEM_TYPES(SHMEM_TYPED, X) SHMEM_TRANSFERS(X, putmem, getmem, 1) \
  SHMEM_SIZED(X, 8, 1) SHMEM_SIZED(X, 16, 2) SHMEM_SIZED(X, 32, 4) SHMEM_SIZED(X, 64, 8) SHMEM_SIZED(X, 128, 16) \
  SHMEM_BITS(SHMEM_BITWISE, X) SHMEM_COUNTS(SHMEM_ARITHMETIC, X) \
  SHMEM_COUNTS(SHMEM_EXCHANGES, X) SHMEM_FLOATS(SHMEM_EXCHANGES, X) \
  SHMEM_INTS(SHMEM_OLD_ARITHMETIC, X) SHMEM_INTS(SHMEM_OLD_EXCHANGES, X) SHMEM_FLOATS(SHMEM_OLD_EXCHANGES, X) \
  SHMEM_COUNTS(SHMEM_WAITS, X) SHMEM_WAITS(X, short, Word, 2) SHMEM_WAITS(X, ushort, Word, 2) \
  SHMEM_WORDS(X, shmem_wait_until, 3, WAIT, kPlain, kNothing) SHMEM_WORDS(X, shmem_wait, 2, WAIT, kPlain, kNothing) \
  SHMEM_INTS(SHMEM_REDUCTIONS, X) SHMEM_REDUCTIONS(X, short, Word, 2) \
  SHMEM_FLOATS(SHMEM_EXTREMES, X) SHMEM_EXTREMES(X, longdouble, Word, 16) \
  SHMEM_SUMS(X, complexf, Word, 8) SHMEM_SUMS(X, complexd, Word, 16) \
  SHMEM_COLLECTIVES(X, 32, 4) SHMEM_COLLECTIVES(X, 64, 8)
// clang-format on
