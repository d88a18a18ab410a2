"""Events: the sequences in which loops are searched, and what each event is called in them (its signature)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strobe.model.kinds import GPU_PARADIGMS, PARADIGMS, RANK_PARADIGMS
from strobe.native import core
from strobe.steps.loop_choice.levels import Level, find_levels
from strobe.steps.thread_spans import Bools, Ints, Stream, innermost, of_definitions

# The sequences of a stream, in the order in which they are believed.
CALLS, OPERATORS, KERNELS, MPI, LOOPS = "calls", "operators", "kernels", "mpi", "loops"
KINDS = (CALLS, OPERATORS, KERNELS, MPI, LOOPS)
_KIND_OF_PARADIGM = {"torch": OPERATORS, **dict.fromkeys(RANK_PARADIGMS, MPI), **dict.fromkeys(GPU_PARADIGMS, KERNELS)}

# How far up a function is looked for among its own callers.
_RECURSION_DEPTH = 32


@dataclass(frozen=True)
class Events:
    """One sequence of events. `rows` are its spans in the stream, `ids` their signatures, numbered from 0.

    `starts_ns` is when each began; `times_ns` the same without silence (see core.without_silence).
    """

    kind: str
    rows: Ints
    ids: Ints
    starts_ns: Ints
    times_ns: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def chosen(self, which: Bools | slice) -> Events:
        """Return some of the events."""
        return Events(self.kind, self.rows[which], self.ids[which], self.starts_ns[which], self.times_ns[which])

    def levels(self, *, min_count: int = 3, most: int = 64) -> list[Level]:
        """Loop levels of the sequence; their positions are indices of events here."""
        return find_levels(self.ids, self.times_ns, min_count=min_count, max_levels=most)

    def occurrences(self, level: Level) -> Ints:
        """Indices of all events that a level's marker matches; its positions cover no more than a window."""
        at: Bools = self.ids == level.marker
        if level.marker_source is not None:
            at[1:] &= self.ids[:-1] == level.marker_source
            at[:1] = False
        return np.flatnonzero(at)


def events_of(stream: Stream) -> dict[str, Events]:
    """Return the sequences of a stream that hold any events.

    operators: what PyTorch reports, by name. kernels: what runs on a GPU, by name, in the order of the stream. mpi:
    calls of MPI, by call path (their peers are regions). calls: everything but operators and kernels; functions are
    called by name and caller, so that a function used at two places is two events; all else by call path. loops:
    iterations that were recorded themselves, because they call nothing; calls are without them, and without functions
    of which the recorder has left out the later calls.
    """
    paths, by_call = {**_paths_by_kind(stream)}, _call_signatures(stream)
    signatures = {kind: by_call if kind in (CALLS, MPI, LOOPS) else stream.path_region for kind in KINDS}
    # Calls of MPI are also among those of functions, where functions were recorded.
    if paths[CALLS][stream.call_path].any():
        paths[CALLS] = (paths[CALLS] | paths[MPI]) & ~_recursive(stream)
        if stream.throttled is not None:
            paths[CALLS] = paths[CALLS] & ~stream.throttled[stream.path_region]
    found = {kind: _events(stream, kind, paths[kind][stream.call_path], signatures[kind]) for kind in KINDS}
    return {kind: events for kind, events in found.items() if len(events)}


def without_peers(stream: Stream, events: Events) -> Events | None:
    """Return calls of MPI under the names that they have whoever the peer is; None where that is all the same.

    A master that answers whoever has asked does the same for all; what comes in from a neighbour is something else
    than what goes out to another, though both may be one call. Which one it is, the loops of the program show.
    """
    if events.kind != MPI or stream.call_of is None:
        return None
    path = stream.call_path[events.rows]
    width = len(stream.path_region)
    ids = (stream.path_parent[path] + 1) * width + stream.call_of[stream.path_region[path]]
    if len(np.unique(ids)) == len(np.unique(events.ids)):
        return None
    return replace(events, ids=np.unique(ids, return_inverse=True)[1].astype(np.int64))


def as_native_events(stream: Stream, events: Events) -> tuple[object, ...]:
    """Return a sequence as native/structure/decision.h takes it."""
    waited_ns, blind = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
    if events.kind == MPI:
        duration_ns = stream.duration_ns[events.rows]
        waited_ns = np.cumsum(duration_ns) - duration_ns
        if (without := without_peers(stream, events)) is not None:
            blind = without.ids.astype(np.uint32)
    ids, columns = events.ids.astype(np.uint32), (events.rows, events.starts_ns, events.times_ns)
    return KINDS.index(events.kind), ids, *map(np.ascontiguousarray, columns), waited_ns, blind


def _events(stream: Stream, kind: str, chosen: Bools, signature_of_path: Ints) -> Events:
    rows = np.flatnonzero(chosen)
    starts = stream.start_ns[rows]
    return Events(kind, rows, signature_of_path[stream.call_path[rows]], starts, core.without_silence(starts))


@of_definitions
def _paths_by_kind(stream: Stream) -> dict[str, Bools]:
    kinds = np.array([_KIND_OF_PARADIGM.get(paradigm, CALLS) for paradigm in stream.paradigms], dtype=object)
    kinds[iterations(stream)] = LOOPS
    return {kind: kinds[stream.path_region] == kind for kind in KINDS}


@of_definitions
def _call_signatures(stream: Stream) -> Ints:
    """By call path: functions by name and caller, everything else by the path itself."""
    above = stream.path_parent
    iteration = iterations(stream)[stream.path_region]
    callers = innermost(above, ~iteration, above)  # functions, not loops of theirs
    caller = np.where(callers >= 0, stream.path_region[callers], -1)
    function = np.isin(np.array(stream.paradigms, dtype=object), ("python", "user"))[stream.path_region]
    signatures = np.where(function, (stream.path_region << 32) | (caller + 1), -1 - np.arange(len(above)))
    return np.unique(signatures, return_inverse=True)[1].astype(np.int64)


@of_definitions
def iterations(stream: Stream) -> Bools:
    """Return which regions are iterations of a loop that were recorded themselves."""
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    named = zip(stream.names, stream.paradigms, strict=True)
    return np.array([core.is_iteration(name, number[paradigm]) for name, paradigm in named], dtype=bool)


@of_definitions
def _recursive(stream: Stream) -> Bools:
    """Which call paths end in a region that also lies above: a recursion repeats itself, but it is not a loop."""
    found = np.zeros(len(stream.path_region), dtype=bool)
    above = stream.path_parent
    for _ in range(_RECURSION_DEPTH):
        if not (above >= 0).any():
            break
        found |= (above >= 0) & (stream.path_region[above] == stream.path_region)
        above = np.where(above >= 0, stream.path_parent[above], -1)
    return found
