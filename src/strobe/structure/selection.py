"""Which part of a run a question is about: `auto`, `all`, `steady`, `14`, `10..20`, and a class of steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.store.trace import Trace

_STEPS = re.compile(r"(\d+)?(\.\.)?(\d+)?")


@dataclass(frozen=True)
class Selection:
    """The spans a question is about, in words (`about`), and how many steps these are: None for the whole run."""

    about: str
    step_count: int | None
    keep: Callable[[int, npt.NDArray[np.int64]], npt.NDArray[np.bool_] | None]  # (location, start_ns) -> mask, or all


def select(trace: Trace, step: str = "auto", step_class: str | None = None) -> Selection:
    """Understand `step` and `step_class` (a class of the steps table).

    `auto` is the steady steps, or the whole run where no steps were found; `all` is the whole run, in steps or not;
    `A..B` includes both ends.
    """
    low, high = (0, 2**62) if step in ("auto", "all", "steady") else _range_of(step)
    whole_run = Selection("the whole run", None, lambda location, start_ns: None)
    if step == "all" and step_class is None:
        return whole_run
    steps = trace.ask("steps").to_arrow()
    if not steps.num_rows and step == "auto" and step_class is None:
        return whole_run
    if not steps.num_rows:
        raise UsageError("no steps were found in this trace, so none can be selected", do="Ask without step and class.")
    if step == "auto":
        step = "all" if step_class else "steady"
    number, process = (steps.column(name).to_numpy().astype(np.int64) for name in ("step", "process"))
    wanted = (number >= low) & (number <= high)
    if step == "steady":
        wanted &= steps.column("steady").to_numpy()
    if step_class is not None:
        classes = steps.column("class").to_pylist()
        if step_class not in classes:
            known = ", ".join(f"{name} ({count})" for name, count in Counter(classes).most_common())
            raise UsageError(f"no class of steps '{step_class}'", do=f"Classes: {known}")
        wanted &= np.array([name == step_class for name in classes], dtype=bool)
    chosen = {int(each): number[wanted & (process == each)] for each in np.unique(process)}
    process_of = cast(list[int], trace.locations.column("process"))

    def keep(location: int, start_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        # A process without steps of its own (a worker of the loader, say) lives in those of the first that has some.
        of_process = chosen.get(process_of[location], chosen[min(chosen)])
        return np.isin(trace.step_of(location, start_ns), of_process)

    # Ranks run the same steps: per-step figures are per step of the job, not per step and process.
    count = max(map(len, chosen.values()))
    kind = " ".join(filter(None, ["steady" if step == "steady" else "", step_class]))
    return Selection(f"{count} {kind} steps".replace("  ", " "), count, keep)


def _range_of(step: str) -> tuple[int, int]:
    """Return the first and the last step that `step` names."""
    match = _STEPS.fullmatch(step)
    if not match or not (match[1] or match[3]):
        raise UsageError(f"'{step}' names no steps", do="Examples: all, steady, 14, 10..20, 100..")
    low = int(match[1] or 0)
    return low, int(match[3]) if match[3] else (2**62 if match[2] else low)
