"""What one run, rank, class of steps or range of steps does otherwise than another, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strobe.analyses.steps.compare import ANALYSIS
from strobe.comparison.lines import Line
from strobe.comparison.sides import STEPS, WHOLE_RUN, Compared, Side, compared, doubtful, unaligned
from strobe.comparison.step_trees import HOST, LANES, StepTree
from strobe.comparison.waterfalls import REST
from strobe.errors import UsageError
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NOTHING = "with what to compare? strobe compare A B takes two traces, and --ranks, --classes or --steps parts of one"
_SAME = "no difference: B is equal to A in every call and every nanosecond"
_NO_CHANGE = "no change beyond the spread of the steps"
_ALIKE = 1.25  # by which factor steps differ in which no call changed
_NAMED = 3  # changes in a sentence
_LONGEST = 60  # characters of their names
_WORTH = 0.01  # share of the time that is not aligned, and of the step that a class takes longer


def run(
    trace: Trace, *, other: Trace | str | None, ranks: str | None, classes: str | None, steps: str | None, by: str
) -> Table:
    """Return the answer; see `strobe.analyses.steps.compare`."""
    if other is None and not any(each and "," in each for each in (ranks, classes, steps)):
        return make_table(ANALYSIS.columns, [], note=_NOTHING)
    if isinstance(other, str):
        raise UsageError(f"'{other}' is not open", do="Ask a strobe.Trace: trace.compare(other=PATH)")
    a, b = chosen_sides(trace, trace if other is None else other, ranks, classes, steps)
    found, mix = compared(a, b)
    rows = [_row("", line) for line in mix if any(each.change for each in mix)]
    for each in found:
        for lane in LANES:
            rows += [_row(each.name, line) for line in _shown([x for x in each.lines if x.lane == lane], by)]
    return make_table(ANALYSIS.columns, rows, about=_about(found), note="; ".join(sentences_of(found, mix, a, b)))


def chosen_sides(
    trace: Trace, other: Trace, ranks: str | None, classes: str | None, steps: str | None
) -> tuple[Side, Side]:
    """Return the sides A and B that options of the analysis choose. Raises UsageError for a choice that is neither."""
    of_rank, of_class, of_steps = (
        _two(name, text) for name, text in zip(("rank", "class", "step"), (ranks, classes, steps), strict=True)
    )
    a, b = (
        Side(each, _rank(of_rank[at]), of_class[at], of_steps[at] or ("all" if of_class[at] else "steady"))
        for at, each in enumerate((trace, other))
    )
    return a, b


def sentences_of(found: Sequence[Compared], mix: Sequence[Line], a: Side, b: Side) -> list[str]:
    """Return what changed most, what was not aligned, and why counts may not be exact, without full stops."""
    return [*_sentences(found, mix), *_unaligned(found), *doubtful(*dict.fromkeys((a.trace, b.trace)))]


def _two(name: str, text: str | None) -> tuple[str | None, str | None]:
    parts = [each.strip() for each in text.split(",")] if text else [None]
    if len(parts) > 2 or "" in parts:
        raise UsageError(f"'{text}' is not one {name}, or two with a comma between them")
    return parts[0], parts[-1]


def _rank(text: str | None) -> int | None:
    if text is not None and not text.isdecimal():
        raise UsageError(f"'{text}' is not a rank", do="Example: --ranks 0,1")
    return None if text is None else int(text)


def _shown(of_lane: Sequence[Line], by: str) -> Iterator[Line]:
    """Yield the lines of a lane, the largest difference first; what did not change as one."""
    ordered = sorted(of_lane, key=lambda line: (-abs(line.difference_ns), line.name, line.where))
    if by == "place":
        yield from (line for line in ordered if line.change or line.difference_ns or line.a_calls != line.b_calls)
        return
    yield from (line for line in ordered if line.change)
    rest = [line for line in ordered if not line.change]
    a_ns, b_ns = sum(line.a_ns for line in rest), sum(line.b_ns for line in rest)
    if any(line.difference_ns for line in rest):
        yield Line(rest[0].lane, REST, "", "", 0.0, 0.0, a_ns, b_ns)


def _row(class_name: str, line: Line) -> dict[str, object]:
    counted = line.a_calls or line.b_calls
    return {
        "class": class_name or line.name,
        "lane": line.lane,
        "name": line.name,
        "change": line.change or None,
        "a_calls": line.a_calls if counted else None,
        "b_calls": line.b_calls if counted else None,
        **{name: getattr(line, name) for name in ("a_ns", "b_ns", "difference_ns", "by_count_ns", "by_time_ns")},
        "where": line.where or None,
    }


def _sentences(found: Sequence[Compared], mix: Sequence[Line]) -> list[str]:
    """Return what changed most, of classes and in the class with most steps."""
    if not found:
        return ["no class of A is like one of B"]
    every = [*mix, *(line for each in found for line in each.lines)]
    if not any(line.change or line.difference_ns or line.a_calls != line.b_calls for line in every):
        return [_SAME]
    sentences = [
        f"{line.change} {line.name}: {format_share(line.a_calls)} -> {format_share(line.b_calls)} of the {STEPS}"
        for line in mix
        if line.change
    ][:_NAMED]
    for each in found:
        a_ns, b_ns = (tree.total_ns[HOST] / max(1, tree.counts[HOST]) for tree in (each.a, each.b))
        changes = sorted((line for line in each.lines if line.change), key=lambda line: -abs(line.difference_ns))
        named = [f"{line.change}: {_short(line.name)} ({_signed(line.difference_ns)})" for line in changes[:_NAMED]]
        more = [f"{len(changes) - _NAMED} more"] * (len(changes) > _NAMED)
        why = ", ".join([*named, *more]) or _without_change(a_ns, b_ns)
        sentences += [f"{tree.note} in {side}" for tree, side in ((each.a, "A"), (each.b, "B")) if tree.note]
        what = "the run" if each.name == WHOLE_RUN else f"a step ({each.name})"
        sentences.append(f"{what} takes {format_ns(a_ns)} in A and {format_ns(b_ns)} in B: {why}")
    return sentences


def _without_change(a_ns: float, b_ns: float) -> str:
    """Return what is said of steps in which no call changed: that they take another time all the same, or not."""
    factor = b_ns / a_ns if a_ns > 0 else 1.0
    if 1 / _ALIKE <= factor <= _ALIKE:
        return _NO_CHANGE
    return (
        f"{factor:.2g} times as long, and no call stands out from that: as on another machine, or beside other programs"
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"


def _unaligned(found: Sequence[Compared]) -> Iterator[str]:
    for each in found:
        for lane, (a, b) in unaligned(each).items():
            if max(a, b) > _WORTH:
                shares = f"{format_share(a)} of A's and {format_share(b)} of B's time"
                yield f"only in one of both: {shares} in the lane {lane} of {each.name}"


def _about(found: Sequence[Compared]) -> str:
    return ", ".join(f"{_steps(each.a)} of A and {_steps(each.b)} of B ({each.name})" for each in found)


def _steps(tree: StepTree) -> str:
    if tree.name == WHOLE_RUN:
        return "all"
    on_ranks = f" on {tree.processes} ranks" if tree.processes > 1 else ""
    return f"{format_number_of(round(tree.counts[HOST]), 'step')}{on_ranks}"
