"""Cuts: where one step ends and the next begins. Marks count the steps; a step begins where the loop asks for data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.thread_spans import Bools, Ints, Stream, occurrences_in_groups, within
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, MAX_PAUSE_NS, Activities
from strobe.tables.column_arrays import Columns

# An operator belongs to the usual forward pass if it runs there in this share of the steps ...
_USUAL = 0.9
# ... and operators between two waits are a forward pass if they hold this share of the usual ones. Between the end of
# one epoch and the first batch of the next run a few operators too: those of the sampler and the seed.
_LIKE_A_FORWARD = 1 / 3
# Updates that one batch of data may serve for them to be one step.
_MOST_UPDATES = 8


@dataclass(frozen=True)
class Cuts(Columns):
    """The steps of a stream. Nanoseconds; a step is [start_ns[i], end_ns[i]).

    `fed_ns` is when the data of a step had come: what lies before belongs to getting them. `complete` is false for a
    step whose beginning or end was not recorded.
    """

    start_ns: Ints
    end_ns: Ints
    fed_ns: Ints
    complete: Bools


def cut(stream: Stream, loop: MainLoop, acts: Activities) -> Cuts:
    """Cut a stream into steps."""
    cuts = _cut(stream, loop, acts)
    # A wait that holds other marks would reach into the next step.
    return replace(cuts, fed_ns=np.minimum(cuts.fed_ns, cuts.end_ns))


def _cut(stream: Stream, loop: MainLoop, acts: Activities) -> Cuts:
    if loop.kind == "optimizer":
        return _cut_at_waits(stream, loop.rows, acts)
    if loop.kind == "zero_grad":
        return _cut_before(stream, loop.rows, acts)
    if loop.kind == "data_wait":
        return _cut_at_feeds(stream, loop.rows, acts)
    if loop.kind == "range":
        return _cut_at_ranges(stream, loop.rows)
    if loop.kind == "hint":
        return _cut_after(stream, loop.rows)
    return _cut_at(stream, stream.start_ns[loop.rows], stream.start_ns[loop.rows])


def _cut_at_waits(stream: Stream, marks: Ints, acts: Activities) -> Cuts:
    """Steps that end with an optimizer's update: each begins at the data wait that feeds its first backward pass."""
    mark_end = stream.end_ns[marks]
    low = np.concatenate([[0], np.searchsorted(acts.start_ns, mark_end[:-1])])
    high = np.searchsorted(acts.start_ns, mark_end)
    first_backward = _next_of(acts.part == BACKWARD, low, high)
    feed = _last_of(acts.part == DATA_WAIT, low, first_backward)
    if (last_of_group := _groups(feed)) is not None:
        return _cut_at_waits(stream, marks[last_of_group], acts)
    usual = _usual_regions(acts, np.where(feed >= 0, feed, low) + (feed >= 0), first_backward, among=slice(1, None))
    fed_by_waits = np.count_nonzero(feed >= 0) * 2 > len(feed)

    start, fed = np.empty(len(marks), dtype=np.int64), np.empty(len(marks), dtype=np.int64)
    for step, (lowest, feeding) in enumerate(zip(low, feed, strict=True)):
        since = int(mark_end[step - 1]) if step else 0
        if feeding >= 0:
            start[step] = _asking_ns(stream, acts, _run_of_waits(acts, feeding, lowest, usual), feeding, since)
            fed[step] = acts.end_ns[feeding]
        elif step:
            start[step] = fed[step] = mark_end[step - 1]
        else:
            start[step] = fed[step] = acts.start_ns[_first_usual(acts, first_backward[0], usual)]
    complete = np.ones(len(marks), dtype=bool)
    complete[0] = feed[0] >= 0 or not fed_by_waits

    end = np.append(start[1:], 0)
    tails = within(stream.start_ns, mark_end[:-1], end[:-1])
    asking = np.flatnonzero((acts.part == DATA_WAIT) & np.isin(acts.call_path, acts.call_path[feed[feed >= 0]]))
    updated = np.searchsorted(mark_end, acts.start_ns[asking], side="right") - 1
    asked_again = asking[updated == len(marks) - 1]
    if (acts.start_ns[asking] < end[updated])[(updated >= 0) & (updated < len(marks) - 1)].any():
        asked_again = asked_again[:0]  # a validation asks at the same place: it is unknown what such a wait begins
    stop = int(acts.start_ns[asked_again[0]]) if len(asked_again) else None
    end[-1] = _end_of_last(stream, int(mark_end[-1]), np.unique(stream.call_path[tails]), stop)
    return _with_unfinished(Cuts(start, end, fed, complete), stream, acts, usual, asked_again)


def _groups(feed: Ints) -> Ints | None:
    """Last mark of every group, where each batch of data serves the same number of updates: a GAN has two optimizers.

    `feed` is the wait that feeds each mark, -1 where there is none.
    """
    fed = np.flatnonzero(feed >= 0)
    if len(fed) < 3:
        return None
    size = int(np.median(np.diff(fed)))
    if not 2 <= size <= _MOST_UPDATES or np.mean(np.diff(fed) == size) < _USUAL:
        return None
    return np.append(fed[1:] - 1, len(feed) - 1)


def _cut_before(stream: Stream, marks: Ints, acts: Activities) -> Cuts:
    """Steps with one mark somewhere in them: each begins at the run of waits before its mark, or at the mark."""
    start = stream.start_ns[marks]
    fed = start.copy()
    low = np.concatenate([[0], np.searchsorted(acts.start_ns, start[:-1])])
    feed = _last_of(acts.part == DATA_WAIT, low, np.searchsorted(acts.start_ns, start))
    for step in np.flatnonzero(feed >= 0).tolist():
        first = _run_of_waits(acts, feed[step], low[step], np.empty(0, dtype=np.int64))
        since = int(stream.start_ns[marks[step - 1]]) if step else 0
        start[step], fed[step] = _asking_ns(stream, acts, first, feed[step], since), acts.end_ns[feed[step]]
    return _cut_at(stream, start, fed)


def _cut_at_feeds(stream: Stream, loader: Ints, acts: Activities) -> Cuts:
    """Steps that begin where a loader is asked, twice at the end of an epoch, before the usual work follows."""
    waits = np.flatnonzero(np.isin(acts.row, loader))
    if not len(waits):  # the loader is a part of something else
        return _cut_at(stream, stream.start_ns[loader], stream.start_ns[loader])
    until = np.append(waits[1:], len(acts))
    usual = _usual_regions(acts, waits + 1, until, among=slice(0, -1))
    start: list[int] = []
    fed: list[int] = []
    asked = -1
    for wait, end in zip(waits.tolist(), until.tolist(), strict=True):
        asked = wait if asked < 0 else asked
        if _is_forward(acts, slice(wait + 1, end), usual):
            start.append(_asking_ns(stream, acts, asked, wait, fed[-1] if fed else 0))
            fed.append(int(acts.end_ns[wait]))
            asked = -1
    if not start:  # what is done with the data leaves no operators
        return _cut_at(stream, acts.start_ns[waits], acts.end_ns[waits])
    return _cut_at(stream, np.array(start, dtype=np.int64), np.array(fed, dtype=np.int64))


def _cut_at(stream: Stream, start: Ints, fed: Ints) -> Cuts:
    """Steps that begin at given times."""
    end = np.append(start[1:], 0)
    inside = within(stream.start_ns, start[:-1], start[1:])
    end[-1] = _end_of_last(stream, int(start[-1]), np.unique(stream.call_path[inside]), None)
    end[-1] = max(end[-1], fed[-1])
    return Cuts(start, end, fed, np.ones(len(start), dtype=bool))


def _cut_at_ranges(stream: Stream, ranges: Ints) -> Cuts:
    """Steps that are ranges: each lasts until the next one begins."""
    start = stream.start_ns[ranges]
    end = np.append(start[1:], stream.end_ns[ranges[-1]])
    return Cuts(start, end, start, np.ones(len(start), dtype=bool))


def _cut_after(stream: Stream, marks: Ints) -> Cuts:
    """Steps that the program itself ends with a mark. The first begins with the first call that the others make too."""
    end = stream.end_ns[marks]
    known = set(np.unique(stream.call_path[within(stream.start_ns, end[:-1], end[1:])]).tolist())
    first = int(marks[0])
    while first > 0 and int(stream.call_path[first - 1]) in known:
        first -= 1
    start = np.append(stream.start_ns[first], end[:-1])
    return Cuts(start, end, start, np.ones(len(start), dtype=bool))


def _asking_ns(stream: Stream, acts: Activities, first: int, feeding: int, earliest_ns: int) -> int:
    """When the program asked for the data: at the first wait, or where the function was called that does nothing else.

    A function around the wait does nothing else if it was called since the step before (`earliest_ns`), and ends before
    the next activity begins: a generator over epochs, a prefetcher. It also makes the iterator and starts the workers.
    """
    latest = acts.start_ns[feeding + 1] if feeding + 1 < len(acts) else acts.end_ns[feeding]
    row = int(acts.row[first])
    while (above := int(stream.parent[row])) >= 0:
        start = stream.start_ns[above]
        if start < earliest_ns or start + stream.duration_ns[above] > latest:
            break
        row = above
    return int(stream.start_ns[row])


def _next_of(wanted: Bools, low: Ints, high: Ints) -> Ints:
    """Index of the first wanted activity in each [low, high); the last one's index (high - 1) where there is none."""
    at = np.append(np.flatnonzero(wanted), len(wanted))
    found: Ints = np.minimum(at[np.searchsorted(at, low)], high - 1)
    return found


def _last_of(wanted: Bools, low: Ints, high: Ints) -> Ints:
    """Index of the last wanted activity in each [low, high), -1 where there is none."""
    at = np.concatenate([[-1], np.flatnonzero(wanted)])
    last = at[np.searchsorted(at, high) - 1]
    return np.where(last >= low, last, -1)


def _usual_regions(acts: Activities, low: Ints, high: Ints, *, among: slice) -> Ints:
    """Regions that run between low and high in nearly all steps of `among`."""
    low, high = low[among], high[among]
    if not len(low):
        return np.empty(0, dtype=np.int64)
    rows = np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])
    step = np.repeat(np.arange(len(low)), np.maximum(high - low, 0))
    operators = acts.row[rows] >= 0
    regions, steps = occurrences_in_groups(acts.region[rows[operators]], step[operators])
    return regions[steps >= _USUAL * len(low)]


def _is_forward(acts: Activities, rows: slice, usual: Ints) -> bool:
    """Whether these activities hold enough of the usual ones."""
    if not len(usual):
        return bool(rows.stop > rows.start)
    return bool(np.isin(usual, acts.region[rows]).mean() >= _LIKE_A_FORWARD)


def _run_of_waits(acts: Activities, feeding: int, lowest: int, usual: Ints) -> int:
    """First of the consecutive waits at the same place in the program that end with the one that feeds the step.

    At the end of an epoch the loader is asked in vain, and then asked again.
    """
    first = feeding
    waits = np.flatnonzero(acts.part[lowest:feeding] == DATA_WAIT)[::-1] + lowest
    for wait in waits.tolist():
        if acts.call_path[wait] != acts.call_path[feeding] or _is_forward(acts, slice(wait + 1, first), usual):
            break
        first = wait
    return int(first)


def _first_usual(acts: Activities, backward: int, usual: Ints) -> int:
    """First of the usual activities that lead up to a backward pass; where nothing is usual, after the last pause."""
    first = int(backward)
    while first > 0 and (
        acts.region[first - 1] in usual if len(usual) else acts.start_ns[first] - acts.end_ns[first - 1] <= MAX_PAUSE_NS
    ):
        first -= 1
    return first


def _end_of_last(stream: Stream, begin_ns: int, usual_paths: Ints, stop_ns: int | None) -> int:
    """End of the last step: it goes on while what runs is known from the other steps, at the same call path."""
    end, known = begin_ns, set(usual_paths.tolist())
    for row in range(int(np.searchsorted(stream.start_ns, begin_ns)), len(stream)):
        start = int(stream.start_ns[row])
        if stop_ns is not None and start >= stop_ns:
            break
        if start < end:
            continue  # inside of what was accepted already
        if int(stream.call_path[row]) not in known:
            break
        end = max(end, start + int(stream.duration_ns[row]))
    return end


def _with_unfinished(cuts: Cuts, stream: Stream, acts: Activities, usual: Ints, asked_again: Ints) -> Cuts:
    """Append the step that had begun when recording ended, if its forward pass had.

    `asked_again` are the waits for data after the last update, as indices of activities.
    """
    if not len(asked_again) or not _is_forward(acts, slice(asked_again[-1] + 1, len(acts)), usual):
        return cuts
    feeding = int(asked_again[-1])
    first = _run_of_waits(acts, feeding, int(asked_again[0]), usual)
    start = _asking_ns(stream, acts, first, feeding, int(cuts.end_ns[-1]))
    return Cuts(
        np.append(cuts.start_ns, start),
        np.concatenate([cuts.end_ns[:-1], [start, stream.end_ns.max()]]),
        np.append(cuts.fed_ns, acts.end_ns[feeding]),
        np.append(cuts.complete, False),
    )
