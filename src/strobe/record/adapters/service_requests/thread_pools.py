"""Jobs that requests give to executors: when each began and ended, and which one it waited for."""

from __future__ import annotations

from collections import deque
from threading import current_thread
from time import monotonic_ns

from strobe.record.adapter import Replacements
from strobe.record.adapters.service_requests.awaits import qualified_name
from strobe.record.adapters.service_requests.event_loops import LONG_NS, current
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from typing import Any

_MOST_RECENT = 256


class Job:
    """One call in an executor. `behind`: the job that its pool ran longest while it waited for a thread."""

    __slots__ = ("began_ns", "behind", "ended_ns", "name", "pool", "submitted_ns")

    def __init__(self, name: str) -> None:
        self.name, self.submitted_ns = name, monotonic_ns()
        self.began_ns = self.ended_ns = 0
        self.behind = self.pool = ""

    def begin(self) -> None:
        """A thread takes it."""
        self.pool = current_thread().name.rpartition("_")[0]
        self.began_ns = now = monotonic_ns()
        if now - self.submitted_ns >= LONG_NS:
            busy_ns: dict[str, int] = {}
            for each in tuple(_recent):
                both = min(each.ended_ns or now, now) - max(each.began_ns, self.submitted_ns)
                if each.pool == self.pool and both > 0:
                    busy_ns[each.name] = busy_ns.get(each.name, 0) + both
            self.behind = max(busy_ns, key=lambda name: busy_ns[name], default="")
        _recent.append(self)


_waiting: dict[int, Job] = {}  # by identity of the future
_recent: deque[Job] = deque(maxlen=_MOST_RECENT)


def start(replaced: Replacements) -> None:
    """Watch jobs of thread pools once these are imported."""

    def imported(module: Any) -> None:
        item = module._WorkItem
        replaced.put(item, "__init__", _noting(item.__init__))
        replaced.put(item, "run", _running(item.run))

    after_import("concurrent.futures.thread", imported)


def _noting(original: Any) -> Any:
    def noted(self: Any, future: Any, *args: Any) -> None:
        original(self, future, *args)
        request = current.get()
        if request is not None and not request.written:
            function = args[0][0] if isinstance(args[0], tuple) else args[0]
            job = Job(qualified_name(function))
            _waiting[id(future)] = job
            request.jobs.append(job)

    return noted


def _running(original: Any) -> Any:
    def run(self: Any, *args: Any) -> None:
        job = _waiting.pop(id(self.future), None)
        if job is None:
            original(self, *args)
            return
        job.begin()
        try:
            original(self, *args)
        finally:
            job.ended_ns = monotonic_ns()

    return run
