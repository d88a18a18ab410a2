"""What the time of steps went into: each nanosecond once, by priority, as PyTorch's TensorBoard plugin divides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.step_spans import StepSpans
    from strobe.structure.stream import Ints


def run(trace: Trace, *, by: str = "rank") -> Table:
    """Divide the time of every step among kinds of work by priority; all ranks, all threads and GPUs of each.

    Where several run at once, the first of these takes the time: kernels that compute, copies, memory sets,
    communication (kernels of NCCL and its like, collectives and messages on the host), calls of CUDA or HIP, waits for
    the data loader, operators and ranges on the host. `other` is what is left: Python, mostly. So the eight columns
    add up to `duration_ns`. Source: torch-tb-profiler 0.4.3 (overall_parser.py); unlike it, kernels that communicate
    are told by their own names. A step lasts until the work that it launched is done on the GPU; where the profiler
    marked steps, its marks are the steps. The rows of ranks and classes are means over steps that are complete.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.steps import known_steps

    rows = rows_of_processes(trace, _of_process, known=known_steps(trace), by=by)
    about = "; ".join(dict.fromkeys(rows.column("said").to_pylist()))
    note = "" if len(rows) else "no steps were found in this trace, so there is nothing to divide; see `strobe steps`"
    return Table(rows.drop_columns("said"), name="step_time", about=about, note=note)


def _of_process(part: Trace, by: str) -> pa.Table:
    """Return the rows of one process; `said` is what bounds its steps."""
    from strobe.store.table import make_table
    from strobe.structure.step_spans import step_spans
    from strobe.structure.step_time import split_by_priority

    rows = [
        (*row, each.said)
        for each in step_spans(part)
        if len(each)
        for row in _rows(each, split_by_priority(part, each), by)
    ]
    return make_table(_columns(by), rows).to_arrow()


def _columns(by: str) -> tuple[Column, ...]:
    from strobe.model.schema import Column
    from strobe.structure.step_time import ROLES

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *((Column("step", "int64", "", "number of the step in its process"),) if by == "step" else ()),
        *((Column("class", "string", "", "class of the steps"),) if by != "rank" else ()),
        *(
            (Column("start_ns", "int64", "ns", "when the step begins", extra=True),)
            if by == "step"
            else (Column("steps", "int64", "", "steps that the row is a mean over"),)
        ),
        Column("duration_ns", "int64", "ns", "how long the step takes"),
        *(Column(f"{role}_ns", "int64", "ns", _MEANINGS[role]) for role in ROLES),
        *(
            Column(f"{role}_share", "float64", "", f"{role} as a part of the step, 0 to 1", extra=True)
            for role in ROLES
        ),
        *((Column("counted", "bool", "", "whether it enters the means", extra=True),) if by == "step" else ()),
        Column("said", "string", "", "what bounds the steps"),
    )


_MEANINGS = {
    "kernel": "a kernel computes",
    "memcpy": "memory is copied on a GPU, and no kernel runs",
    "memset": "memory is set on a GPU, and nothing of the above",
    "communication": "collectives or messages, and nothing of the above: exposed communication",
    "runtime": "a call of CUDA or HIP, and nothing of the above",
    "data_loader": "the loop waits for its next batch, and nothing of the above",
    "cpu_exec": "an operator or a range on the host, and nothing of the above",
    "other": "nothing of all that",
}


def _rows(steps: StepSpans, split: Ints, by: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one process."""
    import numpy as np

    who = (steps.rank, steps.process)
    duration = steps.end_ns - steps.start_ns
    if by == "step":
        for k in range(len(steps)):
            facts = (int(steps.number[k]), steps.classes[k], int(steps.start_ns[k]))
            yield (*who, *facts, *_cells(int(duration[k]), split[k].tolist()), bool(steps.counted[k]))
        return
    classes = np.array(steps.classes, dtype=object)
    for name in dict.fromkeys(steps.classes) if by == "class" else (None,):
        chosen = steps.counted if name is None else steps.counted & (classes == name)
        count = int(chosen.sum())
        if count:
            means = [round(int(total) / count) for total in split[chosen].sum(axis=0)]
            of_class = () if name is None else (name,)
            yield (*who, *of_class, count, *_cells(round(int(duration[chosen].sum()) / count), means))


def _cells(duration: int, parts: list[int]) -> tuple[object, ...]:
    """Return duration, parts, and their shares."""
    return (duration, *parts, *(part / duration if duration else None for part in parts))


ANALYSIS = Analysis(
    "step_time",
    "What does the time of a step go into: kernels, copies, communication, launching, waiting for data, the host?",
    run,
    options=(
        Option(
            "by",
            "one row a rank (the mean of its steps), a rank and class of steps, or a step",
            default="rank",
            choices=("rank", "class", "step"),
        ),
    ),
)
