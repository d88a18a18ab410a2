"""Columns that answers of analyses share, and columns that an answer has with some options only."""

from __future__ import annotations

from dataclasses import replace

from strobe.model.schema import Column as Column

# In `when`: the option has a value, whichever (not "", 0, False or None).
GIVEN = "given"

RANK = Column("rank", "int64", "", "rank of the process, null if it has none")
PROCESS = Column("process", "uint32", "", "process that used the GPU", extra=True)
DEVICE = Column("device", "int64", "", "number of the GPU, null if unknown")
# Whose row it is, of analyses about GPUs.
OF_GPU = (RANK, PROCESS, DEVICE)
STEP = Column("step", "int64", "", "number of the step in its process")


def durations(
    *, calls: str = "executions", what: str = "duration", shown: tuple[str, ...] = ("avg_ns", "max_ns")
) -> tuple[Column, ...]:
    """Return the columns of `sums.groups.Summary.cells`: of the statistics, those that are not `shown` are extra."""
    statistics = (
        ("avg_ns", "float64", f"mean {what}"),
        ("median_ns", "float64", f"median {what}"),
        ("min_ns", "int64", "shortest"),
        ("max_ns", "int64", "longest"),
        ("stddev_ns", "float64", f"standard deviation of the {what}s"),
    )
    return (
        Column("total_ns", "int64", "ns", f"sum of the {what}s"),
        Column("calls", "int64", "", calls),
        *(Column(name, type, "ns", meaning, extra=name not in shown) for name, type, meaning in statistics),
    )


def when(*columns: Column, **options: str | tuple[str, ...]) -> tuple[Column, ...]:
    """Return columns that an answer has only where each of these options has this value, or one of these."""
    return tuple(
        replace(column, when=tuple((name, (is_,) if isinstance(is_, str) else is_) for name, is_ in options.items()))
        for column in columns
    )
