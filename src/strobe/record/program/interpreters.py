"""Records the Python calls of an interpreter with a GIL of its own (`concurrent.futures.InterpreterPoolExecutor`).

`strobe._native` is for the main interpreter alone. The same file holds a second module, which any interpreter may load
and which records into the session of the process.
"""

from __future__ import annotations

import os

from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def start() -> str:
    """Record this interpreter's calls until it ends. Returns a note for the trace, or "". Never raises."""
    try:
        module = _load()
        recorded = module.start()
    except Exception as error:
        return f"an interpreter of process {os.getpid()} was not recorded: {error}"
    if not recorded:
        return f"an interpreter of process {os.getpid()} was not recorded: Python calls were not when it began"
    after_import("threading", lambda threading: _name_threads(threading, module.name_thread))
    return ""


def _load() -> Any:
    import _imp
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    import strobe

    suffixes = _imp.extension_suffixes()
    files = (os.path.join(folder, "_native" + suffix) for folder in strobe.__path__ for suffix in suffixes)
    path = next(file for file in files if os.path.exists(file))
    loader = ExtensionFileLoader("strobe._interpreter", path)
    module = loader.create_module(ModuleSpec("strobe._interpreter", loader, origin=path))
    loader.exec_module(module)
    return module


def _name_threads(threading: ModuleType, name_thread: Any) -> None:
    thread_class = threading.Thread
    original = thread_class._set_native_id

    def _set_native_id(thread: Any) -> None:
        original(thread)
        try:  # noqa: SIM105 - contextlib is nothing that every program imports
            name_thread(str(thread.name))
        except Exception:
            pass  # a property of the program

    thread_class._set_native_id = _set_native_id
