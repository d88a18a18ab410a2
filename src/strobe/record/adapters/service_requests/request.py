"""A request: what it did and waited for, where that lasted 1 ms and more. The rest is in C (native/python/requests).

Its time is split along one chain: what its main task does, and where that waits for other tasks of the request, what
the one of them does that ends last.
"""

from __future__ import annotations

from strobe.native import core
from strobe.record.adapters.service_requests.event_loops import COLLECTOR, LONG_NS, LoopState

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from strobe.record.adapters.service_requests.awaits import Wait

    Part = tuple[int, int, str, str, object]  # begin, end, kind, code, cause: a text, or the request that is it
    Row = tuple[int, int, int, int, int, int]  # region, begin, end, and the texts of kind, code, cause

PYTHON, RANGE, WAIT = 1, 3, 4  # model/kinds.py: paradigm, roles
_kinds: dict[str, tuple[int, int]] = {}  # region and text of each


class Request(core.Request):
    """One request. Its route may be what returns it, where the application decides it; its status comes later."""

    __slots__ = ()

    def parts(self, began_ns: int, ended_ns: int) -> list[Row]:
        """Return what it did and waited for, as rows."""
        state = self.state
        parts: list[Part] = []
        if began_ns - self.arrived_ns >= LONG_NS:
            parts.append((self.arrived_ns, began_ns, "start", "", state.causes(self.arrived_ns, began_ns)))
        for begin, end, wait in self._chain(began_ns, ended_ns):
            parts += self._split(begin, end, wait, state)
        return rows_of(parts)

    def _chain(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, Wait | None]]:
        """Return pieces that follow each other, from those of the main task."""
        chain: list[tuple[int, int, Wait | None]] = []
        others = [each for each in self.pieces if each[0] is not self.main]
        for task, begin, end, wait in self.pieces:
            if task is not self.main:
                continue
            if wait is None or wait.kind != "task" or not others:
                chain.append((begin, end, wait))
                continue
            # From the end backwards: what ended last is what the task waited for then.
            inner: list[tuple[int, int, Wait | None]] = []
            at = end
            while at > begin:
                ended = [each for each in others if begin < each[2] <= at and each[2] > each[1]]
                ended = [each for each in ended if each[3] is None or each[3].kind != "task"] or ended
                if not ended:
                    break
                _, first, last, what = max(ended, key=lambda each: (each[2], -each[1]))
                if at - last >= LONG_NS:
                    inner.append((last, at, wait))
                inner.append((max(first, begin), last, what))
                at = max(first, begin)
            if at - begin >= LONG_NS:
                inner.append((begin, at, wait))
            chain += reversed(inner)
        return [(max(begin, begin_ns), min(end, end_ns), wait) for begin, end, wait in chain]

    def _split(self, begin: int, end: int, wait: Wait | None, state: LoopState) -> list[Part]:
        """Return the parts of a piece: the wait, and the time when it was over but the loop ran others."""
        if wait is None:
            collects = state.causes(begin, end) == COLLECTOR
            return [(begin, end, "running", "", COLLECTOR if collects else "")]
        # Of several tasks it is not known which one could go on: only what comes right before its end is its own.
        since = begin if self.tasks == 1 else end - _NEAR_NS
        ready = [(max(at, begin), min(until, end)) for at, until in self.ready if until > since]
        parts: list[Part] = []
        awaited = [(begin, end, wait.kind, wait.code)]
        for job in self.jobs if wait.kind in ("thread", "other") else ():
            if begin <= job.submitted_ns <= end or begin <= job.began_ns <= end:
                done = job.ended_ns or end
                if end - done >= LONG_NS:
                    ready.append((done, end))
                parts.append(
                    (max(begin, job.submitted_ns), min(job.began_ns or end, end), "thread pool", wait.code, job.behind)
                )
                awaited = [(max(begin, job.began_ns), min(done, end), "thread", job.name)] if job.began_ns else []
        if wait.kind in _EVENTS:  # it may have come while the loop ran others: when is not known
            ready += [(max(at, begin), end) for at, until, _ in state.long if begin < until <= end < until + LONG_NS]
        if ready and wait.kind in _OF_ONE:
            ready = [(min(ready)[0], end)]
        ready = _merged([each for each in ready if each[1] - each[0] >= LONG_NS])
        for at, until in ready:
            parts.append((at, until, "loop", wait.code, state.causes(at, until)))
        for first, last, kind, code in awaited:
            for at, until in ready:
                if at - first >= LONG_NS:
                    parts.append((first, min(at, last), kind, code, wait.cause))
                first = max(first, until)
            if last > first:
                parts.append((first, last, kind, code, wait.cause))
        return sorted(parts, key=lambda part: part[:2])


# Over once anything of the task's is ready; in others, callbacks of the wait itself run.
_OF_ONE = ("sleep", "lock", "semaphore", "condition", "event", "queue", "thread")
_NEAR_NS = 5 * LONG_NS
_EVENTS = ("outgoing call", "socket", "client")


def _merged(times: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(times):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def rows_of(parts: list[Part]) -> list[Row]:
    """Return the rows of parts; those below 1 ms are left out."""
    rows: list[Row] = []
    for begin, end, kind, code, cause in parts:
        if end - begin >= LONG_NS:
            shown = cause.route_now() if isinstance(cause, Request) else str(cause)
            region, text = _kind_of(kind)
            rows.append((region, begin, end, text, core.text(code), core.text(shown)))
    return rows


def _kind_of(kind: str) -> tuple[int, int]:
    known = _kinds.get(kind)
    if known is None:
        role = RANGE if kind in ("running", "thread") else WAIT
        known = _kinds[kind] = core.region(_SHOWN.get(kind, f"waits: {kind}"), PYTHON, role), core.text(kind)
    return known


_SHOWN = {
    "running": "runs",
    "thread": "runs in a thread",
    "start": "waits to start",
    "loop": "waits for the event loop",
    "core": "waits for a core",
}
