"""The processes that a program starts: their names, and a note of each start.

Every start is a line in the trace (`started-HOST.jsonl`), written by functions of the core behind those of the
standard library. A reader compares them with the processes that are in the trace (trace/after_run/process_starts.py).
"""

from __future__ import annotations

import os
import sys

from strobe.native import core
from strobe.record.options.session_settings import Session
from strobe.record.program import threads
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# Started by multiprocessing with `-c` and a line of code that begins like this, since 3.14 behind an import of sys.
_HELPERS = {
    "from multiprocessing.resource_tracker ": "resource tracker of multiprocessing",
    "from multiprocessing.forkserver ": "fork server of multiprocessing",
}
_named = (0, "")


def start(settings: Session) -> None:
    """Name this process if it is a worker, and note what it starts from now on."""
    core.watch_starts(os.path.join(settings.folder, f"started-{os.uname().nodename}.jsonl"), settings.inject)
    _change_posix(core.replace_starts)
    if "_posixsubprocess" in sys.builtin_module_names:
        import _posixsubprocess

        core.replace_starts(_posixsubprocess)
    else:
        after_import("_posixsubprocess", core.replace_starts)
    code = sys.orig_argv[sys.orig_argv.index("-c") + 1] if "-c" in sys.orig_argv[:-1] else ""
    for beginning, name in _HELPERS.items():
        if code.removeprefix("import sys; ").startswith(beginning):
            core.name_process(name)
    threads.at_begin(_name_worker)


def stop() -> None:
    """Note no more starts."""
    core.watch_starts("", "")


def give_back() -> None:
    """Give the standard library its own functions back, which `start` has put ours behind."""
    _change_posix(core.restore_starts)
    if (module := sys.modules.get("_posixsubprocess")) is not None:
        core.restore_starts(module)


def _change_posix(change: Callable[[ModuleType], None]) -> None:
    import posix

    takes_fd = posix.execve in os.supports_fd
    os.supports_fd.discard(posix.execve)
    change(posix)
    if takes_fd:  # its hash is another now
        os.supports_fd.add(posix.execve)


def _name_worker() -> None:
    """Name a worker of multiprocessing: its main thread begins when its name is known."""
    global _named
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None or getattr(multiprocessing, "_parent_process", None) is None:
        return
    now = (os.getpid(), str(multiprocessing.current_process().name))
    if now != _named:
        _named = now
        core.name_process(now[1])
