"""The summary as text: at most 40 lines of 100 columns, with box characters only if the stream can show them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence

from strobe.model.plugins import Finding
from strobe.model.units import format_bytes, format_count, format_interval_ns, format_ns, format_number_of, format_share
from strobe.present.engine import engine_lines
from strobe.present.gpus import Gpu
from strobe.present.run_facts import COMPILING
from strobe.present.summary import StepSummary, Summary, summarise
from strobe.present.text_page import WIDTH, as_shown, bar, page, processes, steps
from strobe.trace.info import LEFT
from strobe.trace.trace import Trace

LINES = 40
_BAR = 26
_PART_WORDS = {"data_wait": "data", "rest": "other"}
_MOST_FINDINGS = 5
_MOST_GPUS = 4
_WHOLE = 2  # findings whose advice has two lines; of the others it is cut after one
# How programs end that did not fail, or of which it is not known.
_WELL = ("ended", "ended with exit code 0", "running", LEFT)
_AUTOGRAD = "autograd::engine::evaluate_function: "  # in front of the name of every node of the backward graph


def summary_text(summary: Summary, *, unicode: bool = True, width: int = WIDTH) -> str:
    """Return the summary as text, ending with a newline. `unicode=False`: plain ASCII."""
    summary = as_shown(summary)
    width = max(60, min(width, WIDTH))
    blocks = [
        [*_head(summary, width)],
        [*(_step(summary.step, width) if summary.step else []), *_gpus(summary.gpus, width)],
        [_cut(line, width) for line in engine_lines(summary.engine, summary.latency)],
        _findings(summary, width),
        _hot(summary, width),
        _tail(summary, width),
    ]
    # If it is too long, drop the table of functions first, then findings from the end.
    while 2 + sum(len(block) + 1 for block in blocks if block) > LINES and (blocks[4] or blocks[3]):
        if blocks[4]:
            blocks[4] = []
        else:
            blocks[3].pop()
    return page(blocks, width, unicode=unicode)


def text_of(trace: Trace) -> str:
    """Return the summary of a trace as text."""
    return summary_text(summarise(trace))


def _head(summary: Summary, width: int) -> Iterable[str]:
    step = summary.step
    loop = [steps(step.count)] if step else []
    lasted = [format_ns(summary.duration_ns)] if summary.duration_ns else []
    facts = [summary.program or "?", processes(summary.process_count), *lasted, *loop]
    yield _cut("strobe  " + " · ".join(facts), width)
    yield from _wrapped("VERDICT   ", summary.verdict.text, width)
    for fact in summary.facts:
        if fact.name == COMPILING:
            yield from _wrapped("COMPILING ", f"{fact.value}: strobe compile", width)
    if summary.part:
        yield from _wrapped("ONLY PART ", f"{summary.part}; strobe summary reads everything", width)


def _step(step: StepSummary, width: int) -> list[str]:
    of_rank = f" of rank {step.rank}" if step.rank is not None else ""
    rare = " without outliers" if step.outlier_count else ""
    of = f"One step{of_rank}, median of {format_count(step.class_count)} `{step.class_name}`{rare}:"
    spread = f"p95 {format_ns(step.p95_ns)}, best {format_ns(step.best_ns)}"
    warm_up = f"; {step.warm_up_count} warm-up skipped" if step.warm_up_count else ""
    head = f"{of}  {format_ns(step.median_ns)}   ({spread}{warm_up})"
    lines = [head if len(head) <= width else _cut(f"{of}  {format_ns(step.median_ns)}   ({spread})", width)]
    if step.kept_count < step.count:
        lines.append(_cut(_kept(step), width))
    parts = [part for part in step.parts if part.duration_ns]
    # Without operators a step has no parts: the table of functions below shows more.
    if len(parts) < 2:
        return lines
    lines.append(f"  mean of {format_number_of(step.steady_count, 'steady step')}: {format_ns(step.mean_ns)}")
    trains = any(part.name in ("backward", "optimizer") for part in parts)
    for part in step.parts if trains else parts:
        name, drawn = _PART_WORDS.get(part.name, part.name), bar(part.share, _BAR)
        lines.append(f"  {name:<11}  {drawn:<{_BAR}} {format_ns(part.duration_ns):>10}  {format_share(part.share):>6}")
    return lines


def _kept(step: StepSummary) -> str:
    steps = format_number_of(step.count, "step")
    kept = f"  kept {format_count(step.kept_count)} of {steps} in detail; statistics for all"
    return kept + (
        "" if step.representativeness is None else f"; typical kept steps take {step.representativeness:.2f} x the mean"
    )


def _gpus(found: Sequence[Gpu], width: int) -> list[str]:
    """Return one line per GPU; if there are too many, those with the most idle time come first."""
    lines = []
    for gpu in sorted(found, key=lambda each: -each.idle)[:_MOST_GPUS] if len(found) > _MOST_GPUS else found:
        rank = "" if gpu.rank is None or len(found) == 1 else f"rank {gpu.rank} "
        parts = [("computes", gpu.computation), ("only communicates", gpu.communication), ("only copies", gpu.copy)]
        shares = "   ".join(f"{word} {format_share(share)}" for word, share in parts if share)
        lines.append(_cut(f"  {rank + gpu.name:<12} {shares}   idle {format_share(gpu.idle)}", width))
    if len(found) > _MOST_GPUS:
        lines.append(f"  ... {len(found) - _MOST_GPUS} more GPUs with less idle time: strobe overlap")
    return lines


def _findings(summary: Summary, width: int) -> list[str]:
    if not summary.findings:
        return ["Found nothing worth fixing."] if summary.step else []
    lines = [f"{'Most worth fixing':<{width - 38}}{'gain per step':>16}  {'sure':<8}{'rule':<12}"]
    for number, finding in enumerate(summary.findings[:_MOST_FINDINGS], 1):
        lines.extend(_finding(number, finding, width))
    more = len(summary.findings) - _MOST_FINDINGS
    return [*lines, f"  ... {more} more: strobe summary --json"] if more > 0 else lines


def _finding(number: int, finding: Finding, width: int) -> list[str]:
    room = width - 38
    gain = "info" if finding.informative else format_interval_ns(finding.gain_low_ns, finding.gain_high_ns)
    what = textwrap.wrap(finding.what, room - 6) or [""]
    first = f"  {number}  {what[0]:<{room - 5}}{gain:>16}  {finding.confidence:<8}{finding.rule:<12}"
    lines = [first, *(f"     {line}" for line in what[1:])]
    advice = " · ".join(filter(None, [finding.where, finding.do]))
    wrapped = textwrap.wrap(advice, width - 5, max_lines=2 if number <= _WHOLE else 1, placeholder=" ...")
    return [*lines, *(f"     {line}" for line in wrapped)]


def _hot(summary: Summary, width: int) -> list[str]:
    if not summary.hot:
        return []
    per_step = summary.step is not None
    room = width - 44
    unit, shown = ("time", format_ns) if summary.hot_unit == "ns" else (summary.hot_unit[:12], format_count)
    ranks = ", all ranks together" if summary.ranks is not None else ""
    head = f"Top {summary.hot_kind} by self {unit}{' per step' if per_step else ''}{ranks}"
    counted = "samples" if summary.hot_kind == "sampled functions" else "calls"
    lines = [f"{_cut(head, room - 1):<{room}}{unit:>14}{'share':>10}{counted:>10}"]
    for hot in summary.hot:
        time = hot.self_per_step_ns if hot.self_per_step_ns is not None else hot.self_ns
        name = _cut(hot.name.removeprefix(_AUTOGRAD), room - 2)
        lines.append(
            f"  {name:<{room - 2}}{shown(round(time)):>14}{format_share(hot.share):>10}{format_count(hot.calls):>10}"
        )
    verb = {"operators": "operators", "sampled functions": "samples"}.get(summary.hot_kind, "profile")
    return [*lines, f"  ... all: strobe {verb} {_name(summary)}"]


def _tail(summary: Summary, width: int) -> list[str]:
    quality = summary.quality
    failed = [] if quality.ended in _WELL or not quality.complete else [f"the program {quality.ended}"]
    state = "complete" if quality.complete else quality.ended
    if quality.records:
        state += f": {quality.records}"
    unit = "execution" if quality.folded_count else "span"
    density = f" ({_density(quality.bytes_per_span)} bytes per {unit})"
    folded = [f"{format_count(quality.folded_count)} more in statistics"] if quality.folded_count else []
    facts = [
        state,
        *failed,
        *quality.losses,
        *quality.remarks,
        *([quality.source] if quality.source else []),
        *([f"recording cost about {format_share(cost)}"] if (cost := quality.estimated_cost) is not None else []),
        format_number_of(quality.span_count, "span"),
        *folded,
        format_bytes(quality.size_bytes) + (density if quality.span_count else ""),
    ]
    lines = list(_wrapped("Quality   ", " · ".join(facts), width))
    if summary.step and len(summary.classes) > 1:
        classes = ", ".join(f"{each.name} {format_count(each.count)}" for each in summary.classes)
        lines.extend(_wrapped("          ", f"classes of steps: {classes}", width)[:2])
    lines.append(_cut(f"Saved     {_name(summary)}   open: strobe view {_name(summary)}", width))
    return lines


def _density(bytes_per_span: float) -> str:
    return f"{bytes_per_span:.1f}" if bytes_per_span >= 0.1 else f"{bytes_per_span:.2g}"


def _name(summary: Summary) -> str:
    """Return the shortest path of the trace from the current folder."""
    relative = os.path.relpath(summary.path)
    return summary.path if relative.startswith("..") else relative


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=label, subsequent_indent=" " * len(label))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
