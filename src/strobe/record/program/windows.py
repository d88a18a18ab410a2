"""Recording windows: from when to when this process records.

`--start` and `--stop` wait for a step, a moment or a call; `--for` ends a window after some time; a signal and the
program's own `strobe.pause()`, `strobe.resume()` open and close windows, too, and an armed process takes requests from
outside (`strobe job record`). While none is open the session keeps its
files, its adapters are off, and the core drops what comes all the same.

A process that `strobe run` or a launcher of ranks started leads: its children follow it through a word of shared
memory, so that workers that were forked before the window record in it. Steps are calls of `strobe.step()`; in a
program that never calls it, steps of its first optimizer of PyTorch.

Only one thread opens or closes a window at a time. A request that comes meanwhile (from a signal, a timer, another
thread) is noted, and carried out by that thread next.
"""

from __future__ import annotations

import _thread
import atexit
import os
import time

from strobe.model.option import yes_or_no
from strobe.native import core
from strobe.record.options.recorder_options import Moment, length, moment
from strobe.record.options.session_settings import SESSION_VARIABLE, Session, switch
from strobe.record.program import call_watch, import_hooks, session
from strobe.record.program.flight_triggers import FlightTriggers

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

CLOSED, OPEN = 0, 1  # the shared word
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")


class Windows:
    """When this process records."""

    def __init__(self, settings: Session) -> None:
        self.settings = settings
        options = settings.options
        self.start = moment(options["start"]) if options["start"] else None
        self.stop = moment(options["stop"]) if options["stop"] else None
        self.duration_ns = length(options["for"]) if options["for"] else 0
        self.signal = options["signal"]
        self.armed = yes_or_no(options.get("armed", "no"))
        if self.armed and self.start is None:
            self.start = Moment("paused")
        self.flight = FlightTriggers(settings) if options.get("flight") else None
        self.counts = self.armed or (self.flight is not None and self.flight.steps)  # all steps
        # Whether any option is about windows.
        self.asked = bool(self.start or self.stop or self.duration_ns or self.signal or self.armed)
        self.open = False
        self._wanted = False  # what `open` is to be
        self._turning = _thread.allocate_lock()
        self.leads = True
        self.shared = ""  # file of the word that our children read
        self.steps = 0  # calls of strobe.step()
        self.optimizer_steps = 0
        self.calls = 0
        self._optimizer: Any = None
        self._hook: Any = None  # of PyTorch's optimizers, can be removed
        self._due_ns = -1
        self._before: Any = None  # the program's own handler of the signal

    def begin(self) -> None:
        """The session has begun, closed if a start is awaited. Raises OSError if windows that the user has asked for
        cannot be shared with our children.
        """
        self.open = self._wanted = self.start is None
        rank = next((f"{name}={os.environ[name]}" for name in _RANKS if name in os.environ), "")
        file, _, leader_rank = self.settings.leader.partition("|")
        own = f"window-{os.uname().nodename}-{os.getpid()}"
        # A program that becomes another one is the same process, and leads.
        self.leads = not file or leader_rank != rank or os.path.basename(file) == own
        if not self.leads:
            self._follow(file)
        if self.leads:
            self._lead(os.path.join(self.settings.folder, own), rank)
        if self.flight is not None:
            self.flight.begin()
        _watch_forks()

    def _lead(self, file: str, rank: str) -> None:
        try:
            core.watch_begin(file, self.changed, leads=True)
        except OSError:
            if self.asked:
                raise
            core.count("windows_not_shared", 1)
        else:
            self.shared = file
            self.settings.leader = f"{file}|{rank}"
            if os.environ.get(SESSION_VARIABLE):
                os.environ[SESSION_VARIABLE] = self.settings.to_text()
            core.watch_tell(OPEN if self.open else CLOSED)
            if self.armed:
                core.watch_arm(file, int(rank.partition("=")[2] or -1))
        if self.signal:
            number = _number(self.signal)
            self._before = _signals().getsignal(number)
            _signals().signal(number, self._signalled)
        if self.asked:
            self._await()
        if self.counts:
            self._count()

    def _follow(self, file: str) -> None:
        """Follow the leader. If it has ended, a window that was asked for stays closed; without one, we lead."""
        try:
            core.watch_begin(file, self.changed, leads=False)
        except OSError:
            if self.asked:
                self.close()
            else:
                self.leads = True
            return
        self.shared = file
        core.watch_run(True)
        self.changed()

    def resume(self) -> None:
        """Open a window, if none is open."""
        self._turn_to(True)

    def close(self) -> None:
        """Close the window, if one is open."""
        self._turn_to(False)

    def _turn_to(self, wanted: bool) -> None:
        self._wanted = wanted
        while self._wanted != self.open and self._turning.acquire(False):
            try:
                self.open = self._wanted
                self._forget()
                session.resume() if self.open else session.pause()
                if self.leads:
                    core.watch_tell(OPEN if self.open else CLOSED)
                    if self.asked:
                        self._await()
            finally:
                self._turning.release()

    def end(self) -> None:
        """The session ends."""
        self.armed = self.counts = False
        if self.flight is not None:
            self.flight.end()
        self._forget()
        core.watch_run(False)
        if self.leads:
            core.watch_disarm()
        if self.signal and self.leads:
            signals = _signals()
            number = _number(self.signal)
            if signals.getsignal(number) == self._signalled:
                signals.signal(number, self._before)
            else:
                core.count("signal_taken_over", 1)
        if self.leads and self.shared:
            try:  # noqa: SIM105 - contextlib is nothing that every program imports
                os.unlink(self.shared)
            except OSError:
                pass  # the folder is gone

    def forked(self) -> None:
        """This process was forked: it follows its parent."""
        self._turning = _thread.allocate_lock()
        self._forget()
        self.leads = False
        core.watch_forked()
        if self.shared:
            core.watch_run(True)
            self.changed()

    # What is awaited

    def _await(self) -> None:
        """Wait for what opens or closes the window next."""
        self._forget()
        due_ns = []
        if self.open and self.duration_ns:
            due_ns.append(_now_ns() + self.duration_ns)
            self.duration_ns = 0
        awaited = self.stop if self.open else self.start
        if awaited is not None:
            if awaited.kind == "sec":
                due_ns.append(self.settings.began_ns + awaited.number)
            elif awaited.kind == "step":
                self._count()
                if self._due(awaited):  # both at the same step, or in the past
                    self._turn()
                    return
            elif awaited.kind == "call":
                self._await_call(awaited)
        self._due_ns = min(due_ns, default=-1)
        core.watch_due(self._due_ns)
        core.watch_run(bool(due_ns) or self.armed)
        if self.counts:
            self._count()

    def _forget(self) -> None:
        self._due_ns = -1
        core.watch_due(-1)
        if not self.counts:
            switch.on_step = None
            if self._hook is not None:
                self._hook.remove()
                self._hook = None
        call_watch.stop()

    def _count(self) -> None:
        """Count steps from now on."""
        if switch.on_step is None:
            switch.on_step = self._step
            import_hooks.after_import("torch.optim.optimizer", self._optimizers)

    def request(self, begin_step: int, step_count: int, for_ns: int) -> None:
        """Another process asks for a window: from a step on (below 0: from now on), for so many steps, for so long."""
        first = begin_step if begin_step >= 0 else (self.steps or self.optimizer_steps)
        self.start = Moment("step", first)
        self.stop = Moment("step", first + step_count) if step_count else None
        self.duration_ns = for_ns
        if begin_step < 0:
            self._turn()
        elif not self.open:
            self._await()

    def lasts(self, for_ns: int) -> None:
        """The window that is open ends so long from now on."""
        if self.open:
            self.duration_ns = for_ns
            self._await()

    def _turn(self) -> None:
        """Open or close the window: what was awaited has come."""
        if self.open:
            self.stop = None
            self.close()
        else:
            self.start = None
            self.resume()

    def _step(self) -> None:
        self.steps += 1
        self._counted()

    def _counted(self) -> None:
        """A step has begun, or an optimizer has made one."""
        if self.armed:
            core.watch_steps(self.steps or self.optimizer_steps)
        if self.flight is not None and self.counts:
            self.flight.stepped()
        self._look()

    def _look(self) -> None:
        awaited = self.stop if self.open else self.start
        if awaited is not None and self._due(awaited):
            self._turn()

    def _due(self, awaited: Moment) -> bool:
        return awaited.kind == "step" and (self.steps or self.optimizer_steps) >= awaited.number

    def _optimizers(self, module: ModuleType) -> None:
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None or switch.on_step is None:
            return

        def stepped(optimizer: Any, *_: object) -> None:
            self._optimizer = self._optimizer or optimizer
            if optimizer is self._optimizer:
                self.optimizer_steps += 1
                if not self.steps:
                    self._counted()

        self._hook = register(stepped)

    def _await_call(self, awaited: Moment) -> None:
        self.calls = 0

        def came() -> None:
            self.calls += 1
            if self.calls == awaited.number:
                call_watch.stop()
                self._turn()

        begins = not self.open
        call_watch.start(awaited.name, came if begins else None, None if begins else came)

    def _signalled(self, number: int, frame: object) -> None:
        if self.flight is not None:
            self.flight.signalled(self.signal)
        else:
            self._turn_to(not self._wanted)
        if callable(self._before):
            self._before(number, frame)

    def changed(self) -> None:
        """The moment has come, or the process that leads has opened or closed its window. Called in the main thread."""
        try:
            if self.leads:
                if self.armed and (request := core.watch_request()):
                    self.request(*request)
                if 0 <= self._due_ns <= _now_ns():
                    self._turn()
            elif core.watch_word() == OPEN:
                self.resume()
            else:
                self.close()
        except Exception as error:
            session.tell(f"the recording window is not as asked for: {error}")


_current: Windows | None = None


def begin(settings: Session, main: bool, kind: type[Windows] = Windows) -> None:
    """Record this process in the windows of the options, of this `kind`. Raises OSError, and records nothing,
    if its files cannot be made.
    """
    global _current
    windows = kind(settings)
    _current = windows
    try:
        session.start(settings, main, recording=windows.start is None)
        windows.begin()
    except BaseException:
        if session.begun():
            end()
        else:
            _current = None  # what is recorded, if anything, is another interpreter's session: it goes on
        raise


def end() -> None:
    """End the recording."""
    global _current
    if _current is not None:
        _current.end()
        _current = None
    session.stop()


def current() -> Windows | None:
    """Return the windows of this process; None if it is not recorded."""
    return _current


def end_at_exit() -> None:
    """End windows at the exit, before the core: no thread waits, and no file of ours stays."""
    if _current is not None:
        atexit.register(_current.end)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _signals() -> Any:
    """Return the C part of `signal`: the rest would import `enum`, which the program may not have imported."""
    import _signal  # type: ignore[import-not-found]

    return _signal


def _number(name: str) -> int:
    return int(getattr(_signals(), f"SIG{name}"))


_watches_forks = False


def _watch_forks() -> None:
    global _watches_forks
    if not _watches_forks:
        os.register_at_fork(
            before=core.watch_before_fork, after_in_parent=core.watch_after_fork, after_in_child=_forked
        )
        atexit.register(core.watch_run, False)  # of forked children, too
        _watches_forks = True


def _forked() -> None:
    if _current is not None:
        _current.forked()
