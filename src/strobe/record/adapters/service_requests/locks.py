"""Who releases a lock or semaphore of asyncio that a request waits for.

Only releases are looked at, and of them only those that somebody waits for: a lock that is free costs one call more.
Whoever releases it has had it since the release before, because all that come meanwhile wait in a queue.
"""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic_ns

from strobe.record.adapter import Replacements
from strobe.record.adapters.service_requests.awaits import Wait, frames_of, place_of_code, wait_of
from strobe.record.adapters.service_requests.event_loops import current, not_read

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from typing import Any

_MOST_RECENT = 1024
_HALF = 0.5  # of a wait: who has the lock for less of it is not its cause
_released: deque[tuple[int, int, str]] = deque(maxlen=_MOST_RECENT)  # identity of the lock, when, by whom


def start(replaced: Replacements) -> None:
    """Watch releases of the locks of asyncio that are waited for."""
    from asyncio import locks

    for kind, name in ((locks.Lock, "_wake_up_first"), (locks.Semaphore, "_wake_up_next")):
        if hasattr(kind, name):
            replaced.put(kind, name, _noting(getattr(kind, name), kind.release.__code__))


def stop() -> None:
    """Forget all releases."""
    _released.clear()


def wait_for(task: Any, since_ns: int, until_ns: int) -> Wait:
    """Return what a task has waited for, and who released that if it is a lock."""
    wait = wait_of(task)
    if wait.kind in ("lock", "semaphore"):
        wait.cause = _releaser(_lock_of(task), since_ns, until_ns)
    return wait


def _noting(original: Any, release: object) -> Any:
    def wakes(self: Any) -> Any:
        if self._waiters:
            frame: Any = sys._getframe(1)
            if frame.f_code is release:
                try:
                    _released.append((id(self), monotonic_ns(), _who(frame)))
                except Exception as error:  # never into the program
                    not_read(error)
        return original(self)

    return wakes


def _who(frame: Any) -> str:
    """Return the route of the present request, or the function that releases."""
    request = current.get()
    own = request.own if request is not None and not request.written else None
    if own is not None:
        return str(own.route_now())
    file = frame.f_code.co_filename
    while frame.f_back is not None and frame.f_code.co_filename == file:
        frame = frame.f_back
    return place_of_code(frame.f_code)


def _lock_of(task: Any) -> object:
    from asyncio import locks

    for frame in frames_of(task.get_coro()):
        if frame.f_code.co_filename == locks.__file__ and frame.f_code.co_name == "acquire":
            return frame.f_locals.get("self")
    return None


def _releaser(lock: object, since_ns: int, until_ns: int) -> str:
    """Return who had a lock for most of a time, if that is half of it; else an empty text."""
    had_ns: dict[str, int] = {}
    at = since_ns
    for identity, released_ns, who in _released:
        if identity == id(lock) and at < released_ns <= until_ns:
            had_ns[who] = had_ns.get(who, 0) + released_ns - at
            at = released_ns
    most = max(had_ns, key=lambda who: had_ns[who], default="")
    return most if most and had_ns[most] >= _HALF * (until_ns - since_ns) else ""
