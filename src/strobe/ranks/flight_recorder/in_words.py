"""What was not complete when flight recorders were dumped, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from strobe.model.units import format_count, format_number_of
from strobe.ranks.flight_recorder.entries import Entry, entries, has_dumps, listed
from strobe.ranks.flight_recorder.unfinished import MISSING, NO_DUMP, OPERATION, SIZE, Part, Unfinished, unfinished
from strobe.trace.trace import Trace

_MOST = 3  # calls of missing or different ranks that are named
_MOST_RANGES = 6
_NO_RANK = "these dumps of a flight recorder are of unknown ranks: strobe import --ranks numbers the files"
_FOLDERS = re.compile(r".*[/\\]")


def in_words(trace: Trace) -> str:
    """Return the first unfinished operation of a trace with dumps: who waits in it, who is missing or differs, where.

    If all is complete, that; "" without dumps.
    """
    found, dumped = unfinished(trace), entries(trace)
    if not dumped:
        return _NO_RANK if has_dumps(trace) else ""
    if not found:
        count = sum(map(len, dumped.values()))
        ranks = format_number_of(len(dumped), "rank")
        return f"all {format_number_of(count, 'operation')} in the dumps of {ranks} are complete"
    text, more = _of(found[0]), len(found) - 1
    more_text = f"; {format_number_of(more, 'other operation')} {'is' if more == 1 else 'are'} not complete"
    return text + more_text if more else text


def _of(one: Unfinished) -> str:
    waiting = [each.rank for each in one.parts if each.entry and not each.difference and not each.entry.complete]
    text = f"{one.usual.title} ({_call(one.usual)}{_at(one.usual)})"
    if waiting:
        text = f"{ranks_text(waiting)} {'waits' if len(waiting) == 1 else 'wait'} in {text}"
    else:
        text += " is not complete"
    blamed = _grouped(one)
    text += "".join(f"; {each}" for each in blamed[:_MOST])
    if len(blamed) > _MOST:
        text += f"; {format_count(len(blamed) - _MOST)} more calls differ"
    unknown = [each.rank for each in one.parts if each.state == NO_DUMP]
    if unknown:
        text += f"; of {ranks_text(unknown)} there is no dump"
    if not blamed and all(each.entry for each in one.parts):
        text += "; all its ranks have called it alike"
    return text


def _grouped(one: Unfinished) -> list[str]:
    """Return what ranks did that have not called it, or called something else: those together that did the same."""
    same: dict[tuple[str, str], list[int]] = {}
    for each in one.blamed:
        same.setdefault(_missing(one, each) if each.state == MISSING else _different(each), []).append(each.rank)
    return [f"{ranks_text(ranks)} {did[len(ranks) > 1]}" for did, ranks in same.items()]


def _missing(one: Unfinished, part: Part) -> tuple[str, str]:
    """Return what a rank did that has not called it, for one rank and for several."""
    last = part.last
    if last is None:
        return "has called nothing", "have called nothing"
    name = last.title if last.group != one.group else f"{last.call.operation} {last.sequence}"
    called = f"last call is {name}{_at(last)}"
    return f"has not called it, its {called}", f"have not called it, their {called}"


def _different(part: Part) -> tuple[str, str]:
    entry = part.entry
    assert entry is not None
    about = f"({_call(entry)}{_at(entry)})"
    if part.difference == OPERATION:
        did = f"called {entry.call.operation} instead {about}"
    else:
        did = f"called it with another {'size' if part.difference == SIZE else 'type'} {about}"
    return did, did


def _call(entry: Entry) -> str:
    """Return shapes and types of a call: `[16] Float`; of what it puts in, else of what it gets out."""
    call = entry.call
    puts_in = call.in_shapes not in ("", "[]")
    texts = (call.in_shapes, call.in_types) if puts_in else (call.out_shapes, call.out_types)
    known, kinds = map(listed, texts)
    shown = ", ".join(map(str, known[:_MOST])) + (", ..." if len(known) > _MOST else "")
    return " ".join(filter(None, (shown, "/".join(dict.fromkeys(map(str, kinds)))))) or "no tensor"


def _at(entry: Entry) -> str:
    """Return where the program called it, with the name of the file without its folders."""
    function, _, place = entry.called_at.partition(" (")
    return f" at {function} ({_FOLDERS.sub('', place)}" if place else ""


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks in words: `rank 3`, `ranks 0, 1 and 5`, `ranks 0-6 and 8`."""
    ordered = sorted(ranks)
    if len(ordered) == 1:
        return f"rank {ordered[0]}"
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1), len(ordered)]
    runs = [ordered[begin:end] for begin, end in pairwise(breaks)]
    names = [name for run in runs for name in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    if len(names) > _MOST_RANGES:
        return f"{format_count(len(ordered))} ranks ({', '.join(names[:_MOST_RANGES])}, ...)"
    return f"ranks {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"ranks {names[0]}"
