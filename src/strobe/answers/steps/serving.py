"""What steps of serving compute and how fast: prefill and decode, tokens, batch, attention, time to the first token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from strobe.analyses.steps.serving import ANALYSIS
from strobe.breakdown.engine_gaps import Gap, gaps_before
from strobe.breakdown.engine_work import NUMBERS, TYPES, Launched, launched_in, marks_of
from strobe.breakdown.generation import Generation, generations
from strobe.model.engine_steps import DECODE, PREFILL, EngineStep
from strobe.operators.labels import MODULE
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints, rows_by
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import path_tree, ranks_of, region_rows
from strobe.trace.trace import Trace

_NOTHING = {
    "layer": "no module of this trace launched anything; profiles of PyTorch with stacks (with_stack) hold modules",
    "gap": "no GPU is idle in the steps of the engine, or nothing of one was recorded",
    "class": "no step of the engine is complete",
    "step": "no step of the engine is complete",
    "latency": "an engine marks steps, not requests",
}
_NOT_HERE = "layers and gaps are known of the steps that an engine marks; loops that generate tokens have none of these"

_MOSTLY = 0.3  # of the time of a cause: a function with so much of it is named


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.serving`."""
    columns, rows = ANALYSIS.columns_with(by=by), list[dict[str, object]]()
    none: dict[str, object] = dict.fromkeys(column.name for column in columns)
    marked = False
    for steps in find_steps(trace).processes:
        marks = marks_of(trace, steps)
        if marks:
            marked = True
            rows += [none | dict(row) for row in _rows(trace, steps, marks, by)]
    found = () if marked else generations(trace)
    for each in found:
        who = {"rank": ranks_of(trace)[each.process], "process": each.process}
        rows += [none | who | dict(row) for row in _generated(trace, each, by)]
    if found:
        note = _left_out(found) if rows else _NOT_HERE
        return make_table(columns, rows, about="iterations of requests, found by structure", note=note)
    note = "" if rows or not marked else _NOTHING[by]
    return make_table(columns, rows, about="steps that the engine marks", note=note)


def _left_out(found: Sequence[Generation]) -> str:
    """Return how many requests the answer is about, where there are others."""
    count = sum(int(each.tokens.request[-1]) + 1 for each in found)
    return f"of {count} requests whose spans were kept" if any(each.left_out for each in found) else ""


def _generated(trace: Trace, found: Generation, by: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a loop that generates tokens; none by layer and gap."""
    tokens = found.tokens
    if by == "latency":
        yield _latency(found)
    if by not in ("class", "step"):
        return
    launched = launched_in(trace, found.process, tokens.start_ns, tokens.end_ns)
    if not found.in_detail:
        launched = launched.chosen(launched.step < 0)
    if by == "step":
        for at in range(len(tokens)):
            cells = _iterations(found, np.array([at]), launched)
            yield {"step": at, "start_ns": int(tokens.start_ns[at]), **cells}
        return
    for own in (np.flatnonzero(tokens.place == 0), np.flatnonzero(tokens.place > 0)):
        if len(own):
            yield {"steps": len(own), **_iterations(found, own, launched)}


def _iterations(found: Generation, own: Ints, launched: Launched) -> dict[str, object]:
    """Return the cells of some iterations of a class: means. They follow each other, so their time is their pace."""
    tokens, prefill = found.tokens, not found.tokens.place[own[0]]
    own_ns = tokens.end_ns[own] - tokens.start_ns[own]
    known = bool((tokens.ids[own] > 0).all())
    ids = int(tokens.ids[own].sum()) if known else 0
    sequences = float(tokens.sequences[own].mean()) if known else None
    computed = ids / len(own) if known else None
    return {
        "class": PREFILL if prefill else DECODE,
        "requests": sequences,
        "prefill_requests": sequences and (sequences if prefill else 0.0),
        "tokens": computed,
        "prefill_tokens": computed and (computed if prefill else 0.0),
        "duration_ns": round(float(own_ns.mean())),
        "tokens_per_second": 1e9 * ids / int(own_ns.sum()) if known else None,
        **_gpu_cells(launched.chosen(np.isin(launched.step, own)), len(own), ids),
    }


def _latency(found: Generation) -> dict[str, object]:
    tokens = found.tokens
    begin, count = np.flatnonzero(tokens.place == 0), np.bincount(tokens.request)
    count, last = count[count > 0], np.append(begin[1:], len(tokens)) - 1
    first_ns, rest_ns = tokens.end_ns[begin] - tokens.start_ns[begin], tokens.end_ns[last] - tokens.end_ns[begin]
    times = {"time_to_first_token": first_ns, "time_per_output_token": (rest_ns[count > 1] / (count[count > 1] - 1))}
    cells: dict[str, object] = {}
    for name, each in times.items():
        if len(each):
            cells[f"{name}_ns"] = round(float(each.mean()))
            cells[f"median_{name}_ns"], cells[f"p95_{name}_ns"] = (
                np.percentile(each, (50, 95)).round().astype(int).tolist()
            )
    return {
        "function": found.function or None,
        "requests": len(begin),
        "output_tokens": float(count.mean()),
        **cells,
        "tokens_per_second": 1e9 * len(tokens) / int((first_ns + rest_ns).sum()),
    }


def _rows(
    trace: Trace, steps: ProcessSteps, marks: Mapping[int, EngineStep], by: str
) -> Iterator[Mapping[str, object]]:
    who = {"rank": ranks_of(trace)[steps.process], "process": steps.process}
    if by == "latency":
        return
    launched = launched_in(trace, steps.process, steps.start_ns, steps.end_ns)
    if by == "step":
        for step in sorted(marks):
            cells = _cells(steps, marks, [step], launched)
            yield {**who, "step": step + steps.first_number, "start_ns": int(steps.start_ns[step]), **cells}
        return
    counted = [step for step in sorted(marks) if steps.steady[step]]
    gaps = gaps_before(trace, steps, marks, launched) if by == "gap" else []
    for name in dict.fromkeys(marks[step].step_class for step in counted):
        own = [step for step in counted if marks[step].step_class == name]
        if by == "gap":
            yield from ({**who, "class": name, "steps": len(own), **row} for row in _gaps(trace, steps, own, gaps))
        elif by == "class":
            yield {**who, "steps": len(own), **_cells(steps, marks, own, launched)}
        else:
            yield from ({**who, "steps": len(own), **row} for row in _layers(trace, marks, own, launched))


def _cells(
    steps: ProcessSteps, marks: Mapping[int, EngineStep], own: Sequence[int], launched: Launched
) -> dict[str, object]:
    """Return the cells of some steps of a class: means."""
    at = np.array(own)
    numbers = {name: _mean([getattr(marks[step], name) for step in own]) for name in NUMBERS}
    followed = [
        step
        for step in own
        if step + 1 < len(steps) and steps.loop[step + 1] == steps.loop[step] and _tokens(marks, step)
    ]
    pace_ns = sum(int(steps.start_ns[step + 1] - steps.start_ns[step]) for step in followed)
    return {
        "class": marks[own[0]].step_class,
        **numbers,
        "duration_ns": round(float(steps.duration_ns[at].mean())),
        "tokens_per_second": 1e9 * sum(_tokens(marks, step) for step in followed) / pace_ns if pace_ns else None,
        **_gpu_cells(launched.chosen(np.isin(launched.step, at)), len(own), sum(_tokens(marks, step) for step in own)),
    }


def _tokens(marks: Mapping[int, EngineStep], step: int) -> int:
    return marks[step].tokens or 0


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _layers(
    trace: Trace, marks: Mapping[int, EngineStep], own: Sequence[int], launched: Launched
) -> Iterator[Mapping[str, object]]:
    names, (_, region) = [each.name for each in region_rows(trace)], path_tree(trace)
    mine = launched.chosen(np.isin(launched.step, np.array(own)) & (launched.layer >= 0))
    tokens = sum(_tokens(marks, step) for step in own)
    of_region = region[mine.layer] if len(mine) else mine.layer
    order = np.argsort(mine.start_ns, kind="stable")
    for number in dict.fromkeys(of_region[order].tolist()):
        cells = _gpu_cells(mine.chosen(of_region == number), len(own), tokens)
        layer = names[number].removeprefix(MODULE)
        yield {"class": marks[own[0]].step_class, "layer": layer, **cells}


def _gaps(trace: Trace, steps: ProcessSteps, own: Sequence[int], gaps: Sequence[Gap]) -> Iterator[Mapping[str, object]]:
    """Yield a row for each cause of gaps before or in the steps of a class, most first: means over steps and GPUs."""
    wanted, regions = frozenset(own), region_rows(trace)
    mine = [each for each in gaps if each.step in wanted]
    gpus = len({each.device for each in mine})
    time_ns: dict[tuple[str, str | None], int] = {}
    count: Counter[tuple[str, str | None]] = Counter()
    by_region: dict[tuple[str, str | None], Counter[int]] = {}
    for gap in mine:
        for cause, (spent_ns, functions) in gap.causes.items():
            key = ("between" if gap.between else "inside", cause)
            time_ns[key] = time_ns.get(key, 0) + spent_ns
            count[key] += 1
            by_region.setdefault(key, Counter()).update(functions)
    whole_ns = int(steps.duration_ns[np.array(own)].sum()) * gpus
    for key in sorted(time_ns, key=lambda key: -time_ns[key]):
        ((region, region_ns),) = by_region[key].most_common(1) or [(-1, 0)]
        if region_ns < _MOSTLY * time_ns[key]:
            region = -1
        yield {
            "where": key[0],
            "cause": key[1],
            "idle_ns": round(time_ns[key] / len(own) / gpus),
            "share": time_ns[key] / whole_ns,
            "gaps": count[key] / len(own) / gpus,
            "function": regions[region].name if region >= 0 else None,
            "line": f"{regions[region].file}:{regions[region].line}" if region >= 0 and regions[region].file else None,
            "function_share": region_ns / time_ns[key] if region >= 0 else None,
        }


def _gpu_cells(mine: Launched, steps: int, tokens: int) -> dict[str, object]:
    """Return what GPUs did in so many steps, in the mean; None where the trace has nothing of a GPU."""
    time_ns = mine.end_ns - mine.start_ns
    sums = [int(time_ns[mine.type == at].sum()) for at in range(len(TYPES))]
    if not len(mine):
        return {}
    gpu_ns = _busy_ns(mine)
    return {
        "gpu_ns": round(gpu_ns / steps),
        "gpu_ns_per_token": gpu_ns / tokens if tokens else None,
        "kernels": int((mine.copies == 0).sum()) / steps,
        **{f"{name.replace(' ', '_')}_ns": round(of_type / steps) for name, of_type in zip(TYPES, sums, strict=True)},
    }


def _busy_ns(mine: Launched) -> int:
    """Return how long anything ran, by step and GPU, in sum."""
    order = np.lexsort((mine.start_ns, mine.device, mine.step))
    mine = mine.chosen(order)
    total = 0
    _, key = np.unique(np.stack((mine.step, mine.device)), axis=1, return_inverse=True)
    for _, rows in rows_by(key.ravel()):
        start, reach = mine.start_ns[rows], np.maximum.accumulate(mine.end_ns[rows])
        before = np.append(start[0], reach[:-1])
        total += int(np.maximum(0, reach - np.maximum(start, before)).sum())
    return total
