"""Loops that generate tokens without marks of an engine: requests, and the iterations that compute their tokens.

Known by structure: an iteration looks tokens up, computes, and chooses the next token of each sequence; something is
carried on to the next iteration (keys and values, or the text); and the first iteration of a request computes more, as
it has the prompt. What is not sure is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.engine_work import launched_in
from strobe.operators.flops import is_product, parsed
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints, Stream, are_backward, main_location, outermost, read_streams
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Columns, Floats, interval_at, place_of, rows_by
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# What turns numbers of tokens into vectors: an index only where there is no embedding.
_EMBEDDING, _INDEX = frozenset({"aten::embedding"}), frozenset({"aten::index", "aten::index_select"})
_CHOICE = frozenset({"aten::argmax", "aten::multinomial", "aten::topk", "aten::max"})
# What carries something on to the next token.
_CARRY = frozenset({"aten::cat", "aten::index_copy_", "aten::index_put_", "aten::slice_scatter", "aten::copy_"})

_NEARLY_ALL = 0.9  # of iterations or requests: the others are cut off, or slow
_FEWEST = 3  # iterations of a request, and requests without a cache, that prove anything
_MORE_WORK = 2.0  # the median product with a prompt takes so many times one without, which differ less
_MOST = 0.75  # of what is known by its time, which a busy machine lengthens
_GROWS = 1.1  # without a cache: products of the last third of a request, by those of the first third
_ALIGNED, _LATEST = 0.02, 0.5  # of a step: so late its iteration begins if it is the step; and if it is any
_SAME_CALL = 0.9  # of a call around each request: it is the request ...
_WRAPPED = 0.999  # ... unless it is a decorator


@dataclass(frozen=True)
class Tokens(Columns):
    """Iterations of requests, an entry each. Nanoseconds.

    place: in the request, from 0. They divide the request: the first begins with it, each ends where the next begins.
    sequences: in the batch; ids: tokens that are computed. -1 where shapes were not recorded.
    """

    request: Ints
    place: Ints
    start_ns: Ints
    end_ns: Ints
    sequences: Ints
    ids: Ints


@dataclass(frozen=True)
class Generation:
    """The requests of a process.

    function: whose calls they are, "" where each begins with its prompt. in_detail: spans of all iterations are in the
    trace. left_out: there are more requests, of which only statistics remain.
    """

    process: int
    function: str
    tokens: Tokens
    in_detail: bool
    left_out: bool


@dataclass(frozen=True)
class _Seen(Columns):
    """Iterations whose spans are in the trace. row: of the lookup. length: ids of a sequence, -1: not recorded.

    work: time of the median product (or of the median kernel). products: how many. carries, chooses: whether anything
    is carried on, or chosen.
    """

    row: Ints
    begin_ns: Ints
    sequences: Ints
    length: Ints
    work: Floats
    products: Ints
    carries: Bools
    chooses: Bools


@dataclass(frozen=True)
class _Iterations(Columns):
    """All iterations. until_ns: when the next one begins. belongs_ns: lies in its request."""

    begin_ns: Ints
    until_ns: Ints
    belongs_ns: Ints


@dataclass(frozen=True)
class _Requests(Columns):
    begin_ns: Ints
    end_ns: Ints


@cached_on_trace
def generations(trace: Trace) -> tuple[Generation, ...]:
    """Return what each process generates. Nothing if any of them trains, or where it is not sure."""
    names = [each.name for each in region_rows(trace)]
    there = frozenset(names)
    if not (there & (_EMBEDDING | _INDEX) and there & _CHOICE and there & _CARRY) or _trains(trace):
        return ()
    steps = {each.process: each for each in find_steps(trace).processes}
    found = (_of_process(trace, stream, steps[at]) for at, stream in read_streams(trace) if at in steps)
    return tuple(each for each in found if each is not None)


def _trains(trace: Trace) -> bool:
    operators = [each.name for each in region_rows(trace) if each.paradigm == "torch"]
    return bool(are_backward(operators).any())


def _of_process(trace: Trace, stream: Stream, steps: ProcessSteps) -> Generation | None:
    folded = not steps.kept.all()
    seen = _seen(trace, stream, steps, folded)
    if len(seen) < _FEWEST:
        return None
    every = _of_steps(steps, seen) if folded else None
    until_ns = np.append(seen.begin_ns[1:], stream.end_ns.max())
    all_of, moment = every or (_Iterations(seen.begin_ns, until_ns, seen.begin_ns), np.arange(len(seen)))
    function, requests = _calls(stream, seen.row, all_of.belongs_ns)
    if folded and every is None:  # of others the begin or the end may be missing
        kept_ns = steps.start_ns[steps.kept], steps.end_ns[steps.kept]
        within = [interval_at(*kept_ns, each) for each in (requests.begin_ns, requests.end_ns - 1)]
        requests = requests.chosen((within[0] >= 0) & (within[0] == within[1]))
    elif not function and (seen.length > 0).all():
        requests = _by_prompts(seen, int(until_ns[-1]))
    if not function and len(requests) == 1:
        inside = (seen.begin_ns >= requests.begin_ns) & (seen.begin_ns < requests.end_ns)
        requests = _Requests(seen.begin_ns[inside][:1], requests.end_ns[inside.any() - 1 :])
    number = interval_at(requests.begin_ns, requests.end_ns, all_of.belongs_ns)
    if every is not None:  # a step may begin before its request does
        before = interval_at(requests.begin_ns, requests.end_ns, all_of.until_ns - 1)
        number = np.where(number >= 0, number, before)
    if (np.diff(number[number >= 0]) < 0).any():
        return None
    place = _places(number)
    late = _without_prompt(seen, number[moment], place[moment], requests)
    if len(late) > (1 - _NEARLY_ALL) * len(np.unique(number)):
        return None
    number[np.isin(number, late)] = -1
    known, ours = np.flatnonzero(number >= 0), (moment >= 0) & (number[moment] >= 0)
    mine, seen, first = moment[ours], seen.chosen(ours), place[known] == 0
    if not len(known) or not _sure(seen, number[mine], place[mine]):
        return None
    shapes = np.full((2, len(number)), -1)
    shapes[:, mine] = seen.sequences, seen.sequences * seen.length
    shapes[:, mine[seen.length < 0]] = -1
    tokens = Tokens(
        request=number[known],
        place=place[known],
        start_ns=np.where(first, requests.begin_ns[number[known]], all_of.begin_ns[known]),
        end_ns=np.minimum(all_of.until_ns[known], requests.end_ns[number[known]]),
        sequences=shapes[0, known],
        ids=shapes[1, known],
    )
    return Generation(steps.process, function, tokens, not folded, folded and every is None)


# Iterations


def _seen(trace: Trace, stream: Stream, steps: ProcessSteps, folded: bool) -> _Seen:
    """Return the iterations in the spans of a thread: from the first lookup after a choice on, if products follow."""
    names = np.array(stream.names, dtype=object)
    wanted = _EMBEDDING if np.isin(stream.region, _regions(stream, _EMBEDDING)).any() else _INDEX
    lookups, choices, carries = (_rows(stream, each) for each in (wanted, _CHOICE, _CARRY))
    is_operator = np.append(np.array(stream.paradigms, dtype=object) == "torch", False)
    around = stream.parent[carries]
    carries = carries[~is_operator[np.where(around >= 0, stream.region[around], -1)]]  # operators copy for themselves
    products = np.flatnonzero(np.array([is_product(name) for name in names], dtype=bool)[stream.region])
    products = products[outermost(stream.start_ns[products], stream.end_ns[products])]
    firsts = _firsts(stream, lookups, choices, products)
    edges = np.append(firsts, len(stream))
    start_ns = stream.start_ns[firsts]
    step = interval_at(steps.start_ns, steps.end_ns, start_ns)
    earliest = np.where((step >= 0) & folded, steps.start_ns[step], stream.start_ns[:1].min(initial=0))
    begin_ns = _begins(stream, firsts, earliest)
    parts = np.split(stream.duration_ns[products], np.searchsorted(products, edges))[1:-1]
    launched = launched_in(trace, steps.process, begin_ns, np.append(begin_ns[1:], stream.end_ns.max(initial=0)))
    on_gpu = {at: (launched.end_ns - launched.start_ns)[rows] for at, rows in rows_by(launched.step)}
    work = [on_gpu.get(at, none) for at, none in enumerate(np.zeros((len(parts), 0)))] if on_gpu else parts
    sequences, length = _shapes(trace, stream, steps.process, lookups, firsts)
    return _Seen(
        row=firsts,
        begin_ns=begin_ns,
        sequences=sequences,
        length=length,
        work=np.array([float(np.median(each)) if len(each) else 0.0 for each in work]),
        products=np.array([len(each) for each in parts], dtype=np.int64),
        carries=np.diff(np.searchsorted(carries, edges)) > 0,
        chooses=np.diff(np.searchsorted(choices, edges)) > 0,
    )


def _firsts(stream: Stream, lookups: Ints, choices: Ints, products: Ints) -> Ints:
    """Return the lookups with which an iteration begins: the first one after a choice, or at the same place again.

    Tokens and positions are looked up at one place. The last token of a request need not be followed by a choice.
    """
    chosen, computed = np.searchsorted(choices, lookups), np.searchsorted(products, lookups)
    after = np.diff(chosen, prepend=-1) > 0
    leading = np.maximum.accumulate(np.where(after, np.arange(len(lookups)), 0))
    again = stream.call_path[lookups] == stream.call_path[lookups[leading]]
    firsts = lookups[after | (again & (np.diff(computed, prepend=0) > 0))]
    found: Ints = firsts[np.diff(np.searchsorted(products, np.append(firsts, len(stream)))) > 0]
    return found


def _regions(stream: Stream, names: frozenset[str]) -> Ints:
    return np.array([at for at, name in enumerate(stream.names) if name in names], dtype=np.int64)


def _rows(stream: Stream, names: frozenset[str]) -> Ints:
    return np.flatnonzero(np.isin(stream.region, _regions(stream, names)))


def _around(stream: Stream, rows: Ints) -> Iterator[Ints]:
    """Yield the spans around some rows, from inside out; -1 beyond the outermost."""
    at = stream.parent[rows]
    while (at >= 0).any():
        yield at
        at = np.where(at >= 0, stream.parent[at], -1)


def _begins(stream: Stream, rows: Ints, earliest_ns: Ints) -> Ints:
    """Return when what is around each lookup begins: the outermost span with no other lookup, from a time on."""
    begin_ns, levels = stream.start_ns[rows], list(_around(stream, rows))
    spans, holds = np.unique(np.concatenate([*levels, rows]), return_counts=True)
    for around in levels:
        alone = (around >= 0) & (holds[np.searchsorted(spans, around)] == 1)
        alone &= stream.start_ns[around] >= earliest_ns
        begin_ns = np.where(alone, stream.start_ns[around], begin_ns)
    return begin_ns


def _shapes(trace: Trace, stream: Stream, process: int, lookups: Ints, firsts: Ints) -> tuple[Ints, Ints]:
    """Return how many sequences each iteration looks up, and how many tokens of each.

    Positions are looked up as well, perhaps once for all sequences.
    """
    sequences, length = np.full((2, len(firsts)), -1)
    location = main_location(trace, process)
    if location is None or not len(lookups):
        return sequences, length
    texts = Attributes(trace, "operator_spans", location, ("shapes",)).of(lookups).column("shapes").to_pylist()
    iteration = np.searchsorted(firsts, lookups, side="right") - 1
    for at, text in zip(iteration.tolist(), texts, strict=True):
        shape = parsed(text, None).shape(1)
        if at < 0 or len(shape) not in (1, 2):
            continue
        rows = shape[0] if len(shape) == 2 else 1
        if length[at] < 0:
            sequences[at], length[at] = rows, shape[-1]
        elif length[at] == shape[-1]:
            sequences[at] = max(sequences[at], rows)
    return sequences, length


def _of_steps(steps: ProcessSteps, seen: _Seen) -> tuple[_Iterations, Ints] | None:
    """Return all iterations, though most were folded, and which were seen, if each step in detail has one: else None.

    A step may be cut in the midst of one, which then begins as late in steps that were folded as in the others.
    """
    at = interval_at(steps.start_ns, steps.end_ns, seen.begin_ns)
    if (np.bincount(at[at >= 0], minlength=len(steps))[steps.kept] == 1).mean() < _NEARLY_ALL:
        return None
    inside = at[at >= 0]
    late_ns, usual_ns = seen.begin_ns[at >= 0] - steps.start_ns[inside], np.median(steps.duration_ns)
    aligned = bool((late_ns <= _ALIGNED * usual_ns).mean() >= _NEARLY_ALL)
    if np.median(late_ns) > _LATEST * usual_ns:
        return None
    begins_ns, ends_ns = steps.start_ns, steps.end_ns
    if not aligned:
        begins_ns = np.minimum(begins_ns + int(np.median(late_ns)), ends_ns)
        begins_ns[inside] = steps.start_ns[inside] + late_ns
    until_ns = np.append(np.where(ends_ns[:-1] == steps.start_ns[1:], begins_ns[1:], ends_ns[:-1]), ends_ns[-1])
    ran = np.flatnonzero(~steps.kept | np.isin(np.arange(len(steps)), at))  # others follow the last token
    belongs_ns = begins_ns if aligned else ends_ns - 1
    return _Iterations(begins_ns[ran], until_ns[ran], belongs_ns[ran]), place_of(at, ran)


# Requests


def _calls(stream: Stream, rows: Ints, begins_ns: Ints) -> tuple[str, _Requests]:
    """Return the function whose calls hold the iterations of a request each, and these calls.

    Of all that hold several, it is the one that is called most often; and around it one that does little else. None
    where that is one call only: it may do anything before.
    """
    regions = np.unique(
        np.concatenate([stream.region[each[each >= 0]] for each in _around(stream, rows)] or [rows[:0]])
    )
    found = list[tuple[str, _Requests]]()
    for region in regions[stream.functions[regions]].tolist():
        own = np.flatnonzero(stream.region == region)
        own = own[outermost(stream.start_ns[own], stream.end_ns[own])]
        calls = _Requests(stream.start_ns[own], stream.end_ns[own])
        each = np.searchsorted(begins_ns, calls.end_ns) - np.searchsorted(begins_ns, calls.begin_ns)
        if each.sum() >= _NEARLY_ALL * len(begins_ns) and np.median(each[each > 0]) >= 2:
            found.append((stream.names[region], calls.chosen(each > 0)))
    if not found:
        return "", _Requests(begins_ns[:0], begins_ns[:0])
    most = max(len(calls) for _, calls in found)
    if most == 1:
        return "", min((calls for _, calls in found), key=_lasts)
    found = sorted((each for each in found if len(each[1]) == most), key=lambda each: _lasts(each[1]))
    alike = [each for each in found if _lasts(found[0][1]) >= _SAME_CALL * _lasts(each[1])]
    return next(each for each in alike if _lasts(each[1]) >= _WRAPPED * _lasts(alike[-1][1]))


def _lasts(calls: _Requests) -> int:
    return int((calls.end_ns - calls.begin_ns).sum())


def _by_prompts(seen: _Seen, end_ns: int) -> _Requests:
    """Return requests that begin with each prompt: more than a token, and not the text before with one more."""
    grown = (seen.length[1:] == seen.length[:-1] + 1) & (seen.sequences[1:] == seen.sequences[:-1])
    prompts = np.flatnonzero(np.append(True, (seen.length[1:] > 1) & ~grown))
    begin_ns = seen.begin_ns[prompts]
    return _Requests(begin_ns, np.append(begin_ns[1:], end_ns))


# Whether it is generation


def _places(number: Ints) -> Ints:
    """Return the place of each iteration in its request, given the numbers of the requests in order, -1 for none."""
    known, place = np.flatnonzero(number >= 0), np.full(len(number), -1)
    first = np.flatnonzero(np.diff(number[known], prepend=-1) > 0)
    place[known] = np.arange(len(known)) - np.repeat(first, np.diff(np.append(first, len(known))))
    return place


def _without_prompt(seen: _Seen, request: Ints, place: Ints, requests: _Requests) -> Ints:
    """Return the requests with an iteration before the first one that was found: it began before the steps did."""
    firsts = np.flatnonzero(place == 0)
    earliest = np.searchsorted(seen.begin_ns, requests.begin_ns[request[firsts]])
    late: Ints = request[firsts[earliest != firsts]]
    return late


def _sure(seen: _Seen, request: Ints, place: Ints) -> bool:
    """Whether iterations of these requests, in these places, are of a generation."""
    groups = [rows for _, rows in rows_by(request)]
    alone = len(groups) == 1
    pairs = [(int(rows[0]), rows[1:]) for rows in groups if place[rows[0]] == 0 and len(rows) > 1]
    if not pairs or max(len(rest) for _, rest in pairs) < _FEWEST - 1:
        return False
    if seen.chooses[:-1][np.diff(request) == 0].mean() < _NEARLY_ALL:
        return False
    if (seen.length > 0).all():
        return _share(_has_prompt(seen, first, rest) for first, rest in pairs) >= _NEARLY_ALL
    if seen.carries[place > 0].mean() < _NEARLY_ALL:
        return False
    if _share(_works_more(seen, first, rest, alone=alone) for first, rest in pairs) >= _MOST:
        return True
    growing = [_grows(seen.work[np.append(first, rest)]) for first, rest in pairs if len(rest) >= 2 * _FEWEST]
    return len(growing) >= _FEWEST and _share(iter(growing)) >= _MOST


def _share(each: Iterator[bool]) -> float:
    return float(np.mean(list(each)))


def _has_prompt(seen: _Seen, first: int, rest: Ints) -> bool:
    """Whether the first iteration has more tokens, the others one of each sequence: or the text, and one more each."""
    length = seen.length[np.append(first, rest)]
    if (seen.sequences[rest] != seen.sequences[first]).any():
        return False
    return bool((length[0] > 1 and (length[1:] == 1).all()) or (np.diff(length) == 1).all())


def _works_more(seen: _Seen, first: int, rest: Ints, *, alone: bool) -> bool:
    """Whether the products of the first iteration take longer, as many as in the others, which are alike.

    alone: there is no other request. Then none of the others may have a prompt: it would be of another one.
    """
    usual, count = np.median(seen.work[rest]), np.median(seen.products[rest])
    others = seen.work[rest]
    alike = ((others < _MORE_WORK * usual) & (others * _MORE_WORK > usual)).mean() >= _MOST
    if alone:
        alike &= others.max() < np.sqrt(usual * seen.work[first])
    same = count / 2 <= seen.products[first] <= 2 * count
    return bool(alike and same and seen.work[first] >= _MORE_WORK * usual)


def _grows(work: Floats) -> bool:
    third = len(work) // 3
    return bool(np.median(work[-third:]) >= _GROWS * np.median(work[:third]))
