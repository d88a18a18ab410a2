"""Whether CUPTI works here, found out by a child of the launcher: some versions of it crash the process that asks.

The child does what the program will do: it starts the CUDA driver, which loads libstrobe, which opens CUPTI. In the
child that is all (native/adapters/cupti/probe.cpp). The program, started meanwhile, waits for the verdict when it
starts CUDA itself, which most programs do later than a child that does nothing else.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping

from strobe.native import library
from strobe.record.adapters.cuda.injection import CANDIDATES, VARIABLE, of_packages

PROBE = "STROBE_CUPTI_PROBE"  # where the child writes what it found
_START_CUDA = """
import ctypes, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
ctypes.CDLL("libcuda.so.1").cuInit(0)
"""
_LONGEST_S = 20.0


def start(path: str, environment: Mapping[str, str]) -> threading.Thread:
    """Begin to find out; the verdict is written to `path` when it is known: one sentence, nothing if all is well."""
    thread = threading.Thread(target=_judge, args=(path, environment), name="strobe probe", daemon=True)
    thread.start()
    return thread


def _judge(path: str, environment: Mapping[str, str]) -> None:
    fresh = f"{path}.new"
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(judge(environment))
        os.replace(fresh, path)
    except OSError:  # a full disk; the folder is gone: the program waits no longer than it must
        return


def judge(environment: Mapping[str, str]) -> str:
    """Start CUDA in a child and return what is wrong with CUPTI there: one sentence; empty: nothing is.

    `environment`: of the program. Takes as long as the driver needs to start, 20 s at most.
    """
    with tempfile.NamedTemporaryFile(prefix="strobe-cupti-") as verdict:
        made = {
            name: value for name, value in environment.items() if not name.startswith(("STROBE_SESSION", "LD_PRELOAD"))
        }
        made |= {VARIABLE: library(), PROBE: verdict.name}
        if found := of_packages(sys.path):
            made.setdefault(CANDIDATES, os.pathsep.join(found))
        null = os.open(os.devnull, os.O_RDWR)
        try:
            child = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _START_CUDA],
                made,
                file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)],
                setsigmask=[],
            )
        finally:
            os.close(null)
        ended = threading.Event()
        watchdog = threading.Timer(_LONGEST_S, lambda: None if ended.is_set() else os.kill(child, signal.SIGKILL))
        watchdog.daemon = True
        watchdog.start()
        _, status = os.waitpid(child, 0)
        ended.set()
        watchdog.cancel()
        words = verdict.read().decode("utf-8", "replace").strip()
    if words:
        return words
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"the CUPTI that is here ends the process that opens it ({name}), as 13.2.x does with an unusable driver"
    return ""
