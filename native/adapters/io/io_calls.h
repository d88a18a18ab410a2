// io_calls.h - the functions of the C library that libstrobe_io.so interposes.
#pragma once

// X(symbol, function, kind, system call): `function` is its name in the trace. What has a system call of the same
// arguments can be called before the C library's own function is known: from an allocator that starts.
// clang-format off
#define IO_CALLS(X) \
  X(open, open, kOpen, kByPath) X(open64, open, kOpen, kByPath) \
  X(__open_2, open, kOpen, kByPath) X(__open64_2, open, kOpen, kByPath) \
  X(openat, open, kOpenAt, SYS_openat) X(openat64, open, kOpenAt, SYS_openat) \
  X(__openat_2, open, kOpenAt, SYS_openat) X(__openat64_2, open, kOpenAt, SYS_openat) \
  X(creat, open, kOpen, kNone) X(creat64, open, kOpen, kNone) \
  X(read, read, kRead, SYS_read) X(__read_chk, read, kRead, SYS_read) \
  X(pread, pread, kRead, SYS_pread64) X(pread64, pread, kRead, SYS_pread64) \
  X(__pread_chk, pread, kRead, SYS_pread64) X(__pread64_chk, pread, kRead, SYS_pread64) \
  X(readv, readv, kRead, SYS_readv) X(preadv, preadv, kRead, SYS_preadv) X(preadv64, preadv, kRead, SYS_preadv) \
  X(write, write, kWrite, SYS_write) X(pwrite, pwrite, kWrite, SYS_pwrite64) \
  X(pwrite64, pwrite, kWrite, SYS_pwrite64) \
  X(writev, writev, kWrite, SYS_writev) X(pwritev, pwritev, kWrite, SYS_pwritev) \
  X(pwritev64, pwritev, kWrite, SYS_pwritev) \
  X(fsync, fsync, kSync, SYS_fsync) X(fdatasync, fdatasync, kSync, SYS_fdatasync) \
  X(lseek, lseek, kSeek, SYS_lseek) X(lseek64, lseek, kSeek, SYS_lseek) \
  X(mmap, mmap, kMap, SYS_mmap) X(mmap64, mmap, kMap, SYS_mmap) \
  X(close, close, kClose, SYS_close) \
  X(fopen, fopen, kFileOpen, kNone) X(fopen64, fopen, kFileOpen, kNone) \
  X(fread, fread, kFileRead, kNone) X(__fread_chk, fread, kFileReadChecked, kNone) \
  X(fwrite, fwrite, kFileWrite, kNone) X(fflush, fflush, kFile, kNone) X(fclose, fclose, kFileClose, kNone) \
  X(freopen, freopen, kFileReopen, kNone) X(freopen64, freopen, kFileReopen, kNone) \
  X(pclose, pclose, kFileClose, kNone) \
  /* Only what they close matters. */ \
  X(dup2, dup2, kReplace, kNone) X(dup3, dup3, kReplace, SYS_dup3) X(closedir, closedir, kForgetDirectory, kNone) \
  X(close_range, close_range, kForgetRange, kNone)
// clang-format on
