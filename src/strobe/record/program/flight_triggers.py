"""What makes a flight recorder write a trace while this process goes on: slow steps, and exceptions nobody caught."""

from __future__ import annotations

import atexit
import sys
import time

from strobe.model.units import format_ns
from strobe.native import core
from strobe.record import flight_requests
from strobe.record.options.recorder_options import length
from strobe.record.options.session_settings import Session
from strobe.record.program import import_hooks

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_REMEMBERED = 64  # steps that the median is of
_LEAST = 16  # before a step counts as slow; the median is of so many older ones, too


class FlightTriggers:
    """The events of `--flight-on` in this process."""

    def __init__(self, settings: Session) -> None:
        self.folder = settings.folder
        self.on = flight_requests.triggers(settings.options["flight-on"])
        self.steps = "slow-step" in self.on
        self._rest_ns = int(flight_requests.rest_s(length(settings.options["flight"])) * 1e9)
        self._rested_until_ns: dict[str, int] = {}  # by reason: a slow step may come just before what it is due to
        self._count, self._began_ns, self._median_ns = 0, 0, 0
        self._lengths: list[int] = []
        self._threading: Any = None
        self._before: Any = None

    def begin(self) -> None:
        """Look at exceptions from now on."""
        if "exception" in self.on or "oom" in self.on:
            atexit.register(self._ends)
            import_hooks.after_import("threading", self._watch_threads)

    def end(self) -> None:
        """The recording ends."""
        atexit.unregister(self._ends)
        if self._threading is not None and self._threading.excepthook == self._in_thread:
            self._threading.excepthook = self._before
        self._threading = None

    def stepped(self) -> None:
        """A step has ended, and the next one begins."""
        now = time.monotonic_ns()
        took, self._began_ns = now - self._began_ns, now
        self._count += 1
        if self._count == 1:  # since the program started, not since a step
            return
        if self._median_ns and took > self.on["slow-step"] * self._median_ns:
            times = took / self._median_ns
            usual = f"the median of {len(self._lengths)} before it, {format_ns(self._median_ns)}"
            self._request("slow-step", f"step {self._count - 1} took {format_ns(took)}, {times:.1f} times {usual}")
        at = self._count % _REMEMBERED
        if len(self._lengths) < _REMEMBERED:
            self._lengths.append(took)
        else:
            self._lengths[at] = took
        if self._count % _LEAST == 0:
            self._median_ns = sorted(self._lengths)[len(self._lengths) // 2]

    def signalled(self, name: str) -> None:
        """The signal that asks for a trace has come."""
        self._ask("signal", f"signal {name}")

    def _watch_threads(self, module: ModuleType) -> None:
        self._threading = module
        self._before, self._threading.excepthook = self._threading.excepthook, self._in_thread

    def _in_thread(self, facts: Any) -> None:
        self._raised(facts.exc_type)
        self._before(facts)

    def _ends(self) -> None:
        # Where the interpreter puts what nobody caught, whatever the program's own sys.excepthook does.
        self._raised(getattr(sys, "last_type", None))

    def _raised(self, kind: Any) -> None:
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            return
        memory = issubclass(kind, MemoryError) or kind.__name__ == "OutOfMemoryError"
        for reason in ("oom", "exception"):
            if reason in self.on and (memory or reason == "exception"):
                self._request(reason, f"{kind.__name__} that nobody caught")
                return

    def _request(self, reason: str, event: str) -> None:
        now = time.monotonic_ns()
        if now >= self._rested_until_ns.get(reason, 0):
            self._rested_until_ns[reason] = now + self._rest_ns
            self._ask(reason, event)

    def _ask(self, reason: str, event: str) -> None:
        try:
            flight_requests.request(self.folder, reason, event)
        except OSError:  # the folder is gone, or its disk is full: the program goes on
            core.count("flight_requests_lost", 1)
