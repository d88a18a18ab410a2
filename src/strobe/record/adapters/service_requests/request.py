"""A request that is being answered: when it ran, what it waited for, and the row that it becomes.

Its time is split along one chain: what its main task does, and where that waits for other tasks of the request, what
the one of them does that ends last.
"""

from __future__ import annotations

from _thread import get_native_id
from itertools import count
from time import monotonic_ns

from strobe.native import core
from strobe.record.adapters.service_requests.awaits import Wait, wait_of
from strobe.record.adapters.service_requests.event_loops import LONG_NS, LoopState, state_of, watched

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strobe.record.adapters.service_requests.thread_pools import Job

    Part = tuple[int, int, str, str, object]  # begin, end, kind, code, cause: a text, or the request that is it

PYTHON, RANGE, WAIT = 1, 3, 4  # model/kinds.py: paradigm, roles
_MOST_PARTS = 500  # of a request: a stream of events may go on for days
_MOST_ROUTES = 500
_numbers = count(1)
_routes: dict[str, tuple[int, int]] = {}  # region and text of each
_kinds: dict[str, tuple[int, int]] = {}


class Request:
    """One request. `route` and `status` become known while it is answered."""

    def __init__(self, server: str, loop: Any, arrived_ns: int) -> None:
        self.server, self.number = server, next(_numbers)
        self.route = ""
        self.find_route: Callable[[], str] | None = None  # where the application decides it
        self.status = core.NOTHING_32
        self.arrived_ns = arrived_ns
        self.began_ns = 0  # its code
        self.ended_ns = 0  # the response
        self.written = False
        self.running_ns = self.collecting_ns = 0
        self.main: Any = None  # the task that answers it
        self.ready: list[tuple[int, int]] = []  # times in which it could have gone on
        self.jobs: list[Job] = []  # in executors
        self._state: LoopState | None = state_of(loop) if loop is not None and watched(loop) else None
        self._suspended: dict[Any, int] = {}  # tasks, and since when
        self._pieces: list[tuple[Any, int, int, Wait | None]] = []  # of tasks: times of running (None) and of waiting

    @property
    def own(self) -> Request:
        """Itself: of a connection, its present request."""
        return self

    def route_now(self) -> str:
        """Return its route, as far as it is known."""
        return self.find_route() if self.find_route is not None else self.route

    def begin(self, task: Any) -> None:
        """Its code begins, in this task."""
        if self.main is None:
            self.main, self.began_ns = task, monotonic_ns()

    def wakes(self, handle: Any, now_ns: int, timer: Any) -> None:
        """A callback of the request is about to run: what did its task wait for?"""
        if self.written:
            return
        if type(handle) is timer:
            due_ns = int(handle._when * 1e9)
            if now_ns - due_ns >= LONG_NS:
                self.ready.append((due_ns, now_ns))
        task = getattr(handle._callback, "__self__", None)
        since = self._suspended.get(task) if task is not None else None
        if since is not None and now_ns - since >= LONG_NS and len(self._pieces) < _MOST_PARTS:
            self._pieces.append((task, since, now_ns, wait_of(task)))

    def ran(self, handle: Any, began_ns: int, ended_ns: int, collected_ns: int) -> None:
        """A callback of the request has run."""
        if self.written or not self.began_ns:
            return
        if began_ns < self.began_ns:
            began_ns = self.began_ns
        until = self.ended_ns or ended_ns
        if until > began_ns:
            self.running_ns += until - began_ns
            self.collecting_ns += min(collected_ns, until - began_ns)
        task = getattr(handle._callback, "__self__", None)
        if hasattr(task, "get_coro"):
            self._suspended[task] = ended_ns
            if until - began_ns >= LONG_NS and len(self._pieces) < _MOST_PARTS:
                self._pieces.append((task, began_ns, until, None))
        if self.ended_ns or self.main.done():
            self.write(until)

    def responded(self) -> None:
        """The last byte of the response has been given to the socket."""
        if not self.ended_ns:
            self.ended_ns = monotonic_ns()
            if self._state is None:
                self.write(self.ended_ns)

    def write(self, ended_ns: int) -> None:
        """Record it."""
        if self.written:
            return
        self.written = True
        began_ns = self.began_ns or ended_ns
        route, self.find_route = self.route_now(), None
        self.route = route
        region, text = _routes.get(route) or _new_route(route)
        core.request(
            region, self.arrived_ns, ended_ns, text, self.number, self.status, core.text(self.server),
            began_ns - self.arrived_ns, self._running_ns(), self.collecting_ns,
            get_native_id(), tuple(self._parts(began_ns, ended_ns)),
        )  # fmt: skip
        self._suspended.clear()
        self._pieces.clear()
        self.jobs.clear()

    def _running_ns(self) -> int:
        return core.NOTHING if self._state is None else self.running_ns

    def _parts(self, began_ns: int, ended_ns: int) -> list[tuple[int, int, int, int, int, int]]:
        state = self._state
        parts: list[Part] = []
        if state is None:
            return []
        if began_ns - self.arrived_ns >= LONG_NS:
            parts.append((self.arrived_ns, began_ns, "start", "", state.causes(self.arrived_ns, began_ns)))
        if self._pieces:
            for begin, end, wait in self._chain(began_ns, ended_ns):
                parts += self._split(begin, end, wait, state)
        rows: list[tuple[int, int, int, int, int, int]] = []
        for begin, end, kind, code, cause in parts:
            if end - begin >= LONG_NS:
                shown = cause.route_now() if isinstance(cause, Request) else str(cause)
                region, text = kind_of(kind)
                rows.append((region, begin, end, text, core.text(code), core.text(shown)))
        return rows

    def _chain(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, Wait | None]]:
        """Return pieces that follow each other, from those of the main task."""
        chain: list[tuple[int, int, Wait | None]] = []
        others = [each for each in self._pieces if each[0] is not self.main]
        for task, begin, end, wait in self._pieces:
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
            return [(begin, end, "running", "", "")]
        # Of several tasks it is not known which one could go on: only what comes right before its end is its own.
        since = begin if len(self._suspended) == 1 else end - _NEAR_NS
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


def _new_route(route: str) -> tuple[int, int]:
    shown = route if len(_routes) < _MOST_ROUTES else "(other)"
    known = _routes[shown] = core.region(shown or "(no route)", PYTHON, RANGE), core.text(shown)
    return known


def kind_of(kind: str) -> tuple[int, int]:
    """Return the region and the text of a kind of parts."""
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
}
