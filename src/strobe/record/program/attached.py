"""Recording of a program that `strobe attach` has found running: one window, after which nothing of ours is left.

What cannot be undone stays without effect: the core stays loaded, and its functions around forks return at once.
"""

from __future__ import annotations

import atexit
import os
import sys

from strobe.native import core
from strobe.record.options.session_settings import Session, switch
from strobe.record.program import child_processes, session, threads, windows

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType

_KEPT = "_strobe_attached"  # the module that has ours between two recordings
_LASTS_NS = 10_000_000_000  # longer than asked for, should a signal handler of the program prevent `lasts`
_keeps_modules = False


class _Window(windows.Windows):
    """The window whose end is the end of the recording."""

    def close(self) -> None:
        super().close()
        if not self.open:
            _end()


def begin(text: str, steps: int, for_ns: int, rank: tuple[int, int] | None, *, keeps_modules: bool) -> None:
    """Record this process until so many whole steps are over (0: any number), or `for_ns`, which `lasts` sets again.

    `text` is that of the session. `rank`: the number of its rank and of all ranks, by its launcher. `keeps_modules`:
    the program has imported strobe itself. Raises OSError and ValueError if nothing is recorded.
    """
    global _keeps_modules
    if session.active():
        raise ValueError("it is recorded already: strobe job record opens a window of an armed program")
    _keeps_modules = keeps_modules
    windows.begin(Session.from_text(text), main=True, kind=_Window)
    if rank is not None:
        core.note_rank(*rank)
    session.stop_at_exit()
    windows.end_at_exit()
    session.rest_while_forking()
    _name_threads()
    window = windows.current()
    if window is not None:
        environment = dict(os.environ)
        # The step that runs has begun already.
        window.request(-1, steps + 1 if steps else 0, for_ns + _LASTS_NS)
        _put_back(environment)


def lasts(for_ns: int) -> None:
    """End the window so long from now on, unless it has ended: our own work at its begin is not of its time."""
    window = windows.current()
    if window is not None:
        window.lasts(for_ns)


def _put_back(environment: dict[str, str]) -> None:
    """Undo what adapters have put into the environment, which children of the program get, too."""
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _name_threads() -> None:
    """Name the threads that run: those that begin later name themselves."""
    threading = sys.modules.get("threading")
    for thread in list(getattr(threading, "_active", {}).values()):
        number = getattr(thread, "native_id", None)
        if number and number != os.getpid():
            core.name_location(number, threads.name_of(thread))


def _end() -> None:
    """End the recording, and take away what is ours."""
    current = windows.current()
    if current is None:
        return
    atexit.unregister(current.end)
    windows.end()
    session.forget_exit()
    child_processes.give_back()
    switch.on_step = None
    if _keeps_modules:
        return
    kept: ModuleType = type(sys)(_KEPT, "Modules of strobe, which has recorded this program.")
    kept.recorder = {  # type: ignore[attr-defined]
        name: sys.modules.pop(name) for name in list(sys.modules) if name == "strobe" or name.startswith("strobe.")
    }
    sys.modules[_KEPT] = kept
