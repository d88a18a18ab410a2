"""The steps of a serving engine in the summary: a row for each class, and its lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from strobe.answers.ask import ask
from strobe.model.units import format_count, format_ns
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class EngineRow:
    """Means of the steps of a class, as `strobe serving` has them; None where the trace does not have a number."""

    rank: int | None
    step_class: str
    steps: int
    requests: float | None
    tokens: float | None
    prefill_tokens: float | None
    duration_ns: int
    gpu_ns: int | None
    gpu_ns_per_token: float | None
    tokens_per_second: float | None


def engine_rows(trace: Trace) -> tuple[EngineRow, ...]:
    """Return a row for each class of steps that an engine marks, on every rank."""
    names = [each.name for each in fields(EngineRow)]
    rows = ask(trace, "serving").to_arrow().to_pylist()
    return tuple(EngineRow(**{name: row["class" if name == "step_class" else name] for name in names}) for row in rows)


def engine_lines(rows: Sequence[EngineRow]) -> list[str]:
    """Return the lines of the summary about an engine."""
    if not rows:
        return []
    ranks = len({row.rank for row in rows}) > 1
    heads = ("steps", "requests", "tokens", "of prompts", "on the GPU", "per token", "tokens/s")
    lines = [f"{'Mean engine step':<20}" + "".join(f"{head:>11}" for head in heads)]
    for row in rows:
        counts = (row.steps, row.requests, row.tokens, row.prefill_tokens)
        cells = [_shown(each) for each in counts]
        cells += ["-" if each is None else format_ns(round(each)) for each in (row.gpu_ns, row.gpu_ns_per_token)]
        cells.append(_shown(row.tokens_per_second))
        name = f"rank {row.rank} {row.step_class}" if ranks else row.step_class
        lines.append(f"  {name:<18}" + "".join(f"{cell:>11}" for cell in cells))
    return lines


def _shown(number: float | None) -> str:
    if number is None:
        return "-"
    return format_count(round(number)) if number >= 100 or number == round(number) else f"{number:.1f}"
