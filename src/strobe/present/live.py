"""A run as it is now, also while it is being recorded: steps of the last seconds, the verdict, ranks, GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strobe.answers.ask import ask
from strobe.model.kinds import PARTS
from strobe.model.units import format_ns, format_share
from strobe.present.gpus import Gpu, gpus
from strobe.present.summary import rows_of
from strobe.present.text_page import bar, processes, steps
from strobe.present.verdict import verdict
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import usual_steps
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace

RECENT_NS = 10_000_000_000
_MOST_RANKS = 16  # lines of ranks: those with the longest steps first
_QUANTILES = (0.5, 0.95)


@dataclass(frozen=True)
class Pace:
    """The steps of one process: all of them so far, and those that ended in the last `recent_ns` of the run.

    Without such steps, `recent` is 0 and the times are those of the last one. parts_ns: mean of each part of a step.
    late_ns: how much later than the middle rank it comes to collectives, mean over the run; wait_ns: what it waits
    there itself, of all collectives so far. None where nothing is known of that.
    """

    process: int
    rank: int | None
    steps: int
    recent: int
    recent_ns: int
    median_ns: int
    p95_ns: int
    parts_ns: Mapping[str, int]
    late_ns: float | None = None
    wait_ns: int | None = None


@dataclass(frozen=True)
class Status:
    """A run as it is now. duration_ns: from its start to the last record. ended: as in `strobe info`.

    usual_ns: median of all steps of the usual class so far; 0 without steps. loop: what the steps are iterations of.
    """

    name: str
    program: str
    process_count: int
    ended: str
    running: bool
    duration_ns: int
    verdict: str
    loop: str
    usual_ns: int
    paces: tuple[Pace, ...]
    gpus: tuple[Gpu, ...]

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(asdict(self))


def status(trace: Trace, recent_ns: int = RECENT_NS) -> Status:
    """Return the state of a run; `recent_ns`: of how long a stretch at its end steps are called recent."""
    info, usual, on_gpus = trace.info, usual_steps(trace), gpus(trace)
    found = find_steps(trace).processes
    until = max([info.duration_ns, *(int(each.end_ns[-1]) for each in found if len(each))])
    late = _lateness(trace) if len(found) > 1 else {}
    ranks = [each.rank for each in process_rows(trace)]
    known = bool(trace.span_count + trace.folded_count)
    return Status(
        name=trace.path.name,
        program=info.program,
        process_count=info.process_count,
        ended=info.ended,
        running=info.running,
        duration_ns=until,
        verdict=verdict(trace, usual, on_gpus, "").text if known else "nothing was recorded yet",
        loop=usual.steps.loops[usual.loop].name if usual else "",
        usual_ns=int(usual.median_ns) if usual else 0,
        paces=tuple(_pace(each, ranks[each.process], until, recent_ns, late) for each in found if len(each)),
        gpus=on_gpus,
    )


def _pace(
    steps: ProcessSteps, rank: int | None, until_ns: int, recent_ns: int, late: Mapping[int, tuple[float, int]]
) -> Pace:
    of_late = steps.end_ns > until_ns - recent_ns
    chosen = np.flatnonzero(of_late & steps.complete)
    recent = len(chosen)
    chosen = chosen if recent else np.array([len(steps) - 1])
    median, p95 = np.quantile(steps.duration_ns[chosen], _QUANTILES)
    parts = steps.parts_ns[chosen].mean(axis=0)
    late_ns, wait_ns = late.get(steps.process, (None, None))
    return Pace(
        steps.process,
        rank,
        len(steps),
        recent,
        recent_ns,
        int(median),
        int(p95),
        {name: int(ns) for name, ns in zip(PARTS, parts, strict=True) if ns > 0},
        late_ns,
        wait_ns,
    )


def _lateness(trace: Trace) -> dict[int, tuple[float, int]]:
    """Return how late each process comes to collectives, mean, and what it waits there, ns."""
    return {row["process"]: (row["late_mean_ns"], row["wait_ns"]) for row in rows_of(ask(trace, "stragglers"))}


def status_text(now: Status, *, unicode: bool = True) -> Iterator[str]:
    """Yield the lines of a status for a terminal."""
    facts = [now.program or now.name, processes(now.process_count), format_ns(now.duration_ns), now.ended]
    yield "strobe  " + " · ".join(facts)
    yield f"VERDICT {now.verdict}"
    yield ""
    if not now.paces:
        yield "no steps were found yet"
    elif len(now.paces) == 1:
        pace = now.paces[0]
        yield f"step `{now.loop}`: {_pace_text(pace, now.usual_ns)}"
        total = sum(pace.parts_ns.values())
        if len(pace.parts_ns) > 1:
            for name, ns in pace.parts_ns.items():
                yield f"  {name:10} {bar(ns / total, 30)} {format_ns(ns):>9}  {format_share(ns / total)}"
    else:
        yield f"step `{now.loop}`, by rank, the slowest of the last {format_ns(now.paces[0].recent_ns)} first"
        slowest = max(pace.median_ns for pace in now.paces)
        for pace in sorted(now.paces, key=lambda each: -each.median_ns)[:_MOST_RANKS]:
            who = f"rank {pace.rank}" if pace.rank is not None else f"process {pace.process}"
            late = "" if pace.late_ns is None else f"  late to collectives {format_ns(pace.late_ns)}"
            yield f"  {who:12} {bar(pace.median_ns / slowest, 20)} {_pace_text(pace, 0)}{late}"
        if len(now.paces) > _MOST_RANKS:
            yield f"  ... and {len(now.paces) - _MOST_RANKS} more"
    for gpu in now.gpus:
        shares = (
            (gpu.computation, "computes"),
            (gpu.communication, "communicates"),
            (gpu.copy, "copies"),
            (gpu.idle, "idle"),
        )
        of_rank = f", rank {gpu.rank}" if gpu.rank is not None else ""
        yield f"{gpu.name}{of_rank}: " + " · ".join(f"{name} {format_share(share)}" for share, name in shares if share)


def _pace_text(pace: Pace, usual_ns: int) -> str:
    if not pace.recent:
        return f"{steps(pace.steps)}, none in the last {format_ns(pace.recent_ns)}"
    rate = pace.recent / (pace.recent_ns / 1e9)
    usual = f", {format_ns(usual_ns)} over the run" if usual_ns else ""
    times = f"median {format_ns(pace.median_ns)}{usual}, p95 {format_ns(pace.p95_ns)}"
    return f"{times} · {steps(pace.steps)}, {rate:.3g} per second"


def openmetrics(now: Status) -> str:
    """Return a status in the OpenMetrics text format (https://prometheus.io/docs/specs/om/open_metrics_spec/)."""
    lines: list[str] = []

    def family(name: str, kind: str, unit: str, about: str, values: list[tuple[dict[str, Any], float]]) -> None:
        if not values:
            return
        lines.append(f"# TYPE strobe_{name} {kind}")
        if unit:
            lines.append(f"# UNIT strobe_{name} {unit}")
        lines.append(f"# HELP strobe_{name} {about}")
        suffix = "_total" if kind == "counter" else ""
        for labels, value in values:
            given = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in {"run": now.name, **labels}.items())
            lines.append(f"strobe_{name}{suffix}{{{given}}} {value:.9g}")

    paces = [(_labels(each), each) for each in now.paces]
    family("running", "gauge", "", "1 while the run is being recorded.", [({}, int(now.running))])
    family("steps", "counter", "", "Steps so far.", [(labels, each.steps) for labels, each in paces])
    recent = [(labels, each) for labels, each in paces if each.recent]
    family(
        "step_seconds",
        "gauge",
        "seconds",
        "Length of the steps that ended lately, by quantile.",
        [
            ({**labels, "quantile": quantile}, ns / 1e9)
            for labels, each in recent
            for quantile, ns in zip(_QUANTILES, (each.median_ns, each.p95_ns), strict=True)
        ],
    )
    family(
        "step_part_seconds",
        "gauge",
        "seconds",
        "Mean time of each part of the steps that ended lately.",
        [({**labels, "part": name}, ns / 1e9) for labels, each in recent for name, ns in each.parts_ns.items()],
    )
    family(
        "late_seconds",
        "gauge",
        "seconds",
        "How much later than the middle rank a rank comes to collectives, mean over the run.",
        [(labels, each.late_ns / 1e9) for labels, each in paces if each.late_ns is not None],
    )
    family(
        "wait_seconds",
        "counter",
        "seconds",
        "What a rank waited in collectives for later ones.",
        [(labels, each.wait_ns / 1e9) for labels, each in paces if each.wait_ns is not None],
    )
    family(
        "gpu_time_ratio",
        "gauge",
        "ratio",
        "Share of the time of the steps in which a GPU computes, only communicates, only copies, or is idle.",
        [
            (
                {**({} if gpu.rank is None else {"rank": gpu.rank}), "gpu": gpu.name, "activity": name},
                getattr(gpu, name),
            )
            for gpu in now.gpus
            for name in ("computation", "communication", "copy", "idle")
        ],
    )
    return "\n".join([*lines, "# EOF", ""])


def _labels(pace: Pace) -> dict[str, Any]:
    return {"process": pace.process} if pace.rank is None else {"rank": pace.rank}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
