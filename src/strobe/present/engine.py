"""Steps of serving in the summary: a row for each class, the latency of requests, and their lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from strobe.answers.ask import ask
from strobe.model.units import format_count, format_ns, format_number_of
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


@dataclass(frozen=True)
class LatencyRow:
    """How fast requests are answered, as `strobe serving --by latency` has it: mean, median and 95th percentile."""

    rank: int | None
    requests: int
    time_to_first_token_ns: int
    median_time_to_first_token_ns: int
    p95_time_to_first_token_ns: int
    time_per_output_token_ns: int | None
    median_time_per_output_token_ns: int | None
    p95_time_per_output_token_ns: int | None
    tokens_per_second: float


def engine_rows(trace: Trace) -> tuple[EngineRow, ...]:
    """Return a row for each class of steps that an engine marks, or of a loop that generates tokens, on every rank."""
    names = [each.name for each in fields(EngineRow)]
    rows = ask(trace, "serving").to_arrow().to_pylist()
    return tuple(EngineRow(**{name: row["class" if name == "step_class" else name] for name in names}) for row in rows)


def latency_rows(trace: Trace) -> tuple[LatencyRow, ...]:
    """Return the latency of the requests of every rank that generates tokens without marks of an engine."""
    names = [each.name for each in fields(LatencyRow)]
    rows = ask(trace, "serving", by="latency").to_arrow().to_pylist()
    return tuple(LatencyRow(**{name: row[name] for name in names}) for row in rows)


def latency_lines(rows: Sequence[LatencyRow]) -> list[str]:
    """Return the lines of the summary about the latency of requests."""
    lines = []
    for row in rows:
        of_rank = f" of rank {row.rank}" if len({each.rank for each in rows}) > 1 else ""
        first = _times(row.time_to_first_token_ns, row.median_time_to_first_token_ns, row.p95_time_to_first_token_ns)
        lines.append(f"Time to first token{of_rank}: {first}; {format_number_of(row.requests, 'request')}")
        mean, median, p95 = (
            row.time_per_output_token_ns,
            row.median_time_per_output_token_ns,
            row.p95_time_per_output_token_ns,
        )
        if mean is not None and median is not None and p95 is not None:
            pace = f"a sequence has {_shown(row.tokens_per_second)} tokens/s"
            lines.append(f"Time per output token{of_rank}: {_times(mean, median, p95)}; {pace}")
    return lines


def _times(mean_ns: int, median_ns: int, p95_ns: int) -> str:
    return f"{format_ns(mean_ns)} (mean; median {format_ns(median_ns)}, p95 {format_ns(p95_ns)})"


def engine_lines(rows: Sequence[EngineRow], latency: Sequence[LatencyRow]) -> list[str]:
    """Return the lines of the summary about serving."""
    if not rows:
        return []
    ranks = len({row.rank for row in rows}) > 1
    heads = ("count" if latency else "steps", "requests", "tokens", "of prompts", "on the GPU", "per token", "tokens/s")
    title = "Mean iteration" if latency else "Mean engine step"
    lines = [f"{title:<20}" + "".join(f"{head:>11}" for head in heads)]
    for row in rows:
        counts = (row.steps, row.requests, row.tokens, row.prefill_tokens)
        cells = [_shown(each) for each in counts]
        cells += ["-" if each is None else format_ns(round(each)) for each in (row.gpu_ns, row.gpu_ns_per_token)]
        cells.append(_shown(row.tokens_per_second))
        name = f"rank {row.rank} {row.step_class}" if ranks else row.step_class
        lines.append(f"  {name:<18}" + "".join(f"{cell:>11}" for cell in cells))
    return lines + latency_lines(latency)


def _shown(number: float | None) -> str:
    if number is None:
        return "-"
    return format_count(round(number)) if number >= 100 or number == round(number) else f"{number:.1f}"
