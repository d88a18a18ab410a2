"""Samples: what threads were doing, by function, line or thread; Python, C code and waiting apart.

Sum samples by function, by line, or by thread; those of folded steps are among them.

A sample stands for the time since its thread's sample before. python, native and collecting are CPU time: the
interpreter ran, it was inside of one call or operator of C code, or garbage was collected. ready: the thread waited
for the GIL or for a processor, and what is left of the time of samples that ran. waiting: it slept in the kernel; lock
(or another thread), file, socket (or pipe), sleep and threads (those of native code computed meanwhile) are parts of
it. All of these are of the innermost function;
total is the time that ran in it and in what it calls, recursion counted once. share: the time that ran as a part of
that of everything. By line: the line of the innermost function, of steps that were
kept. Imported samples without a time count as 1 ns each.

Of a program without Python, native is CPU time of a function, and what is waited for in pthreads has rows of its own:
pthread_mutex_lock(NAME) has all waits for the lock NAME (lock), pthread_join, pthread_cond_wait, sem_wait and
pthread_barrier_wait others (waiting). They are measured; other waits are seen 20 times a second, without a call stack.
"""

from strobe.model.columns import Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "What were the threads doing, by samples: Python, C code, or waiting?",
    options=(one_of("by", "One row per function, line, or thread.", "function", "line", "thread"),),
    columns=(
        *when(
            Column("name", "string", "", "function"),
            Column("file", "string", "", "source file"),
            by=("function", "line"),
        ),
        *when(Column("line", "int64", "", "first line of the function"), by="function"),
        *when(Column("line", "int64", "", "line that ran, null of folded steps"), by="line"),
        *when(
            Column("name", "string", "", "name of the thread"),
            Column("location", "uint32", "", "its location"),
            by="thread",
        ),
        Column("samples", "int64", "", "samples in it"),
        Column("share", "float64", "", "part of the time that ran, 0 to 1"),
        Column("python_ns", "int64", "ns", "the interpreter ran it"),
        Column("native_ns", "int64", "ns", "it was in C code"),
        Column("collecting_ns", "int64", "ns", "it collected garbage", extra=True),
        Column("ready_ns", "int64", "ns", "it waited for the GIL or for a processor"),
        Column("gil_ns", "int64", "ns", "of ready: it waited for the GIL", extra=True),
        Column("waiting_ns", "int64", "ns", "it waited for something else"),
        Column("lock_ns", "int64", "ns", "of waiting: for a lock or another thread", extra=True),
        Column("file_ns", "int64", "ns", "of waiting: for a file", extra=True),
        Column("socket_ns", "int64", "ns", "of waiting: for a socket or a pipe", extra=True),
        Column("sleep_ns", "int64", "ns", "of waiting: until a time", extra=True),
        Column("threads_ns", "int64", "ns", "of waiting: for threads of native code that compute", extra=True),
        *when(Column("total_ns", "int64", "ns", "time that ran in it and in what it calls"), by="function"),
    ),
)
