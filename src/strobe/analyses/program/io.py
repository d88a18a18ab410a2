"""I/O of files: how often, how long and how fast a program opens, reads, writes and syncs which file.

Sum the calls of the C library that `strobe run --trace +io` recorded, and MPI_File_*. Calls, bytes and times are exact
for the whole run, whether steps were folded or not, also of a program that was killed.

bytes = read + written, of calls that read or write: mmap has none, as what is read through a mapping is no call;
bandwidth = these bytes / the time of the calls that moved them. Times of threads and ranks add up. A file has the
name that the kernel has for it: absolute, without links. `pipe`, `socket` and others are not files: they have rows,
but are not in the sentence. Programs that open thousands of files have them by folder (`/data/*`).

What fprintf, fgets and others write and read inside of the C library is not seen, nor sendfile, nor the I/O of a
program that makes system calls itself (Go, io_uring). Rows of the interface `mpi` are about MPI_File_*, whose files
are not known; what the MPI library does for them with calls of the C library is in rows of `posix`, too.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Which files take the time, by which calls, and how fast are they?",
    needs=("io",),
    options=(one_of("by", "What a row is of.", "file", "function", "rank"),),
    columns=(
        Column("interface", "string", "", "posix, or mpi"),
        *when(RANK, Column("process", "uint32", "", "process"), by="rank"),
        *when(Column("file", "string", "", "path of the file; `pipe`, `socket`, ...; null where unknown"), by="file"),
        *when(Column("function", "string", "", "open, read, ..."), by=("file", "function")),
        Column("calls", "int64", "", "calls"),
        Column("bytes", "int64", "bytes", "bytes read and written"),
        Column("total_ns", "int64", "ns", "time in these calls"),
        Column("bandwidth_gb_s", "float64", "GB/s", "bytes by the time of the calls that moved them, null: none"),
        Column("max_ns", "int64", "ns", "longest call"),
        Column("read_bytes", "int64", "bytes", "bytes read", extra=True),
        Column("written_bytes", "int64", "bytes", "bytes written", extra=True),
    ),
)
