"""Data that a question needs and a trace lacks, and the option of `strobe run` that would have recorded them."""

from __future__ import annotations

from collections.abc import Sequence

from strobe.model.compiled_code import shows_compiled_code
from strobe.model.engine_steps import engine_step
from strobe.model.kinds import RECORDED_WITH
from strobe.trace.definitions import RegionRow
from strobe.trace.processes.process_reader import ProcessReader

# What is known by its side table.
_TABLES = {"lines": "lines", "io": "io_totals", "requests": "requests"}


def first_missing(
    needs: Sequence[str], readers: Sequence[ProcessReader], regions: Sequence[RegionRow], executions: int
) -> str:
    """Return a sentence about the first of `needs` (keys of RECORDED_WITH) that was not recorded; "" if all were."""
    for need in needs:
        if not _is_there(need, readers, regions, executions):
            what, option = RECORDED_WITH[need]
            return f"no {what} in this trace" + (f"; record them with: strobe run {option}" if option else "")
    return ""


def _is_there(need: str, readers: Sequence[ProcessReader], regions: Sequence[RegionRow], executions: int) -> bool:
    if need == "metrics":
        return any(len(metric["value"]) for reader in readers for metric in reader.metrics())
    if need in _TABLES:
        return any(reader.tables().get(_TABLES[need]) for reader in readers)
    if need == "engine":
        return any(engine_step(row[1]) is not None for row in regions)
    if need == "compiled":
        noted = any(reader.tables().get(name) for reader in readers for name in ("compilations", "compiled_kernels"))
        return noted or any(shows_compiled_code(row[1]) for row in regions)
    if need == "spans":
        return executions > 0
    # PyTorch's ranges come through ITT and NVTX; its operators are known by their role.
    return any(row[2] == need or (need == "torch" and row[3] == "operator") for row in regions)
