"""Columns that answers of analyses share, and columns that an answer has with some options only."""

from __future__ import annotations

from dataclasses import replace

from strobe.model.schema import Column

# In `when`: the option has a value, whichever (not "", 0, False or None).
GIVEN = "given"

RANK = Column("rank", "int64", "", "rank of the process, null if it has none")
PROCESS = Column("process", "uint32", "", "process that used the GPU", extra=True)
DEVICE = Column("device", "int64", "", "number of the GPU, null if unknown")
# Whose row it is, of analyses about GPUs.
OF_GPU = (RANK, PROCESS, DEVICE)
STEP = Column("step", "int64", "", "number of the step in its process")


def when(*columns: Column, **options: str | tuple[str, ...]) -> tuple[Column, ...]:
    """Return columns that an answer has only where each of these options has this value, or one of these."""
    return tuple(
        replace(column, when=tuple((name, (is_,) if isinstance(is_, str) else is_) for name, is_ in options.items()))
        for column in columns
    )
