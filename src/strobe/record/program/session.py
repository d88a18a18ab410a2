"""Recording of this process: the core, and the adapters around it."""

from __future__ import annotations

import atexit
import os
import sys

from strobe.model.private_files import opener
from strobe.model.terminal import talk
from strobe.native import core
from strobe.record.adapter import described
from strobe.record.command_line import without_secrets
from strobe.record.options.recorder_options import core_settings
from strobe.record.options.session_settings import Session, json_text, switch
from strobe.record.program import child_processes, import_hooks, threads
from strobe.record.program.worker_rank import worker_rank

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from strobe.record.adapter import Hooks


_running: list[Hooks] = []
_settings: Session | None = None  # while there is a session


def active() -> bool:
    """Return whether this process has a session: it is recorded, or will be in a window."""
    return _settings is not None or bool(core.active())


def notebook() -> list[str]:
    """Return the path of the notebook whose kernel this process is, as one word of a command; none if it is none."""
    if "ipykernel.kernelapp" not in sys.modules:
        return []
    of_vscode = getattr(sys.modules["__main__"], "__vsc_ipynb_file__", "")
    return [str(of_vscode or os.environ.get("JPY_SESSION_NAME") or "notebook.ipynb")]


def tell(message: str) -> None:
    """Let the user know: on stderr, which is ours, too, or in the trace where the program was started without us."""
    if _settings is None or not _settings.attached:
        talk(message)
        return
    try:
        with open(os.path.join(_settings.folder, "notes.txt"), "a", encoding="utf-8", opener=opener) as notes:
            notes.write(message.replace("\n", " ") + "\n")
    except (OSError, UnicodeError):
        pass  # the trace is gone, or its disk is full


def begun() -> bool:
    """Return whether this interpreter has begun the session."""
    return _settings is not None


def start(settings: Session, main: bool, *, recording: bool = True) -> None:
    """Record this process into `settings.folder`, which must exist; without `recording`, from `resume` on.

    Raises OSError when its files cannot be made.
    """
    global _settings
    description = {
        "argv": notebook() or without_secrets(sys.orig_argv),
        "host": os.uname().nodename,
        "python": sys.version.split()[0],
        "main": main,
    }
    options = settings.options
    core.start(
        settings.folder,
        json_text(description),
        silent=not main,
        clock_server=settings.clock,
        **core_settings(options, settings.adapters),
    )
    _settings = settings
    if (rank := worker_rank(os.environ, main)) is not None:
        core.note_rank(*rank)  # MPI and torch.distributed may correct it when they begin
    switch.counted = tuple(filter(None, (name.strip() for name in options["counters-per-region"].split(","))))
    for hooks in _hooks(settings).values():
        hooks.session_begins()
    if recording:
        _start_adapters(settings)
    else:
        core.mute()


def _start_adapters(settings: Session) -> None:
    switch.core = core
    threads.start()
    child_processes.start(settings)
    for name, hooks in _hooks(settings).items():
        if hooks.available():
            core.count(f"not_recorded_{name}", 1)
            continue
        try:
            hooks.start(settings)
            _running.append(hooks)
        except Exception as error:
            core.count(f"not_recorded_{name}", 1)
            tell(f"{name} is not recorded: {error}")


def _hooks(settings: Session) -> dict[str, Hooks]:
    return {name: described(name).hooks() for name in settings.adapters}


def _stop_adapters() -> None:
    switch.core = None
    while _running:
        _running.pop().stop()
    import_hooks.cancel_all()
    child_processes.stop()
    threads.stop()


def pause() -> None:
    """Record nothing until resume: what is open ends here."""
    _stop_adapters()
    core.mute()


def resume() -> None:
    """Record again."""
    if _settings is not None:
        core.unmute()
        _start_adapters(_settings)


def stop() -> None:
    """End the recording: what is in the buffers goes to disk."""
    global _settings
    _stop_adapters()
    if _settings is not None:
        for hooks in _hooks(_settings).values():
            hooks.session_ends()
    core.stop()
    _settings = None


def stop_at_exit() -> None:
    """End the recording when the process ends, as late as Python allows.

    atexit runs last what was registered first, so the program's own handlers are recorded. `os._exit` runs no handlers:
    worker processes of multiprocessing end by it.
    """
    atexit.register(core.stop_at_exit)
    os._exit = core._exit


def forget_exit() -> None:
    """Undo `stop_at_exit`."""
    import posix

    atexit.unregister(core.stop_at_exit)
    if os._exit == core._exit:
        os._exit = posix._exit


_rests_while_forking = False


def rest_while_forking() -> None:
    """Keep the core's own thread out of the way of forks.

    CPython 3.12 and later warn after a fork in a process of several threads, and count them in /proc; the program has
    done nothing to deserve it. The thread starts again with the first record that comes after the fork.
    """
    global _rests_while_forking
    if sys.version_info >= (3, 12) and not _rests_while_forking:
        _rests_while_forking = True
        os.register_at_fork(before=core.pause, after_in_parent=core.resume)
