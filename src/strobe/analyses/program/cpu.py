"""CPU time: what cores and threads did: user, system, waiting for a core or for I/O, idle.

Sum the time of the cores of each machine, of each process, of its groups of threads and of each recorded thread, over
the run, by class of steps, by part of the step, or by step.

The recorder reads what the kernel counts five times a second, more rarely where there are many threads. Readings of
the machine are of all its cores, whoever used them: user, system, I/O wait, stolen and idle add up to cores x time.
Of a process, user, system and idle (of the cores that it may use) add up to cores x time; its waits are the sum of
those of its threads but strobe's, and beside them. Of a thread, all add up to the time: idle is when it neither ran
nor waited for a core or a disk. What a thread did between the last reading and its end is in its process only.
strobe's own threads are part of the process, and a group of their own.

By class, part and step, a reading counts where at least 95 % of its time is of these steps. Where fewer than three
readings do, there is no row: steps, or parts of them, of less than about a second have none, unless steps of the
same kind follow each other. Parts are before the forward pass, forward and backward, and after them, as in `strobe
step-trace`, of the steps that are in the trace in detail.
"""

from __future__ import annotations

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.kinds import CPU_KINDS
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

_TICKS = "counted by the kernel in ticks of 10 ms"
_MEANING = {
    "user": f"running code of programs, {_TICKS}",
    "system": f"in the kernel, {_TICKS}; of a machine, interrupts, too",
    "io_wait": "of a machine: idle while a disk was waited for; else: threads waited for a disk, null where the kernel"
    " does not count it",
    "waiting": "threads could run, and others had the cores; null of a machine",
    "stolen": f"the virtual machine could run, and others had the hardware, {_TICKS}; null but of a machine",
    "idle": "cores had nothing to do; of a thread: it slept; null of groups of threads",
}

ANALYSIS = Analysis(
    __name__,
    "What did cores and threads do: user, system, waiting, idle?",
    options=(
        one_of(
            "by",
            "Rows over the whole run, per class of steps, per part of the step, or per step.",
            *("run", "class", "part", "step"),
        ),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that it is of, or that read the machine", extra=True),
        Column("what", "string", "", "machine, process, threads (a group of them), thread"),
        Column("name", "string", "", "of the machine, of the group, or of the thread"),
        Column("location", "uint32", "", "location of a thread, null of all else", extra=True),
        *when(STEP, by="step"),
        *when(Column("class", "string", "", "class of the steps"), by=("class", "step")),
        *when(Column("part", "string", "", "part of the step: interval, forward_backward, tail"), by="part"),
        Column("readings", "int64", "", "readings in it", extra=True),
        Column("duration_ns", "int64", "ns", "time that these stand for"),
        *when(
            Column("covered", "float64", "", "the same as a part of the time of the steps, 0 to 1", extra=True),
            by=("class", "part", "step"),
        ),
        Column("cores", "float64", "", "cores of the machine, or that the process may use; 1 of a thread"),
        *(Column(f"{kind}_ns", "int64", "ns", f"core-time: {_MEANING[kind]}", extra=True) for kind in CPU_KINDS),
        *(
            Column(f"{kind}_share", "float64", "", f"{kind}_ns as a part of cores x duration_ns, 0 to 1")
            for kind in CPU_KINDS
        ),
    ),
    needs=("metrics",),
)
