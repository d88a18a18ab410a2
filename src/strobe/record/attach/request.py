"""The request to a program that it records itself: made, made again where it got lost, withdrawn, and its answer."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from strobe.errors import RecordError
from strobe.model.private_files import opener
from strobe.native import RemoteScript
from strobe.record.attach import target
from strobe.record.launch.parallel_jobs import rank_of
from strobe.record.options.session_settings import Session
from strobe.record.sample import processes

_OPENS_S = 3  # from the request that is taken to the script that has begun, at most
_BEGINS_S = 30  # to load the recorder, on a machine that does much else
_TAKEN_S = 0.02  # a request that is withdrawn may have been taken just before


class Request:
    """One program that is asked to record itself for `for_ns`, or for `steps` whole steps (0: any number).

    Its script and its answer are files in the trace folder; the script removes itself as soon as it runs.
    """

    def __init__(self, pid: int, remote: RemoteScript, session: Session, steps: int, for_ns: int, wait_s: float):
        """Ask. Raises RecordError if the process is gone, or may not be written to."""
        self.pid, self.remote = pid, remote
        self._script, self._answer = (os.path.join(session.folder, f"attach-{pid}.{end}") for end in ("py", "txt"))
        rank = rank_of(processes.environment(pid))
        numbers = (rank.number, rank.size) if rank else None
        with open(self._script, "w", encoding="utf-8", opener=opener) as script:
            script.write(
                target.script(self._script, self._answer, remote.minor, session.to_text(), steps, for_ns, numbers)
            )
        try:
            with processes.refusals(pid, "attach", "attached to"):
                remote.request(self._script)
        except BaseException:
            os.unlink(self._script)
            raise
        self._wait_s = wait_s
        self._asked = time.monotonic()
        self._again = self._asked + _OPENS_S
        self._opened = 0.0  # when the script had begun; 0: it has not

    def answered(self) -> bool:
        """Return whether the program records by now. Raises RecordError with the reason if it will not."""
        if os.path.exists(self._answer):
            with open(self._answer, encoding="utf-8") as file:
                why = file.read()
            os.unlink(self._answer)
            if why:
                raise _refused(self.pid, why)
            return True
        if not self.remote.runs():
            self._remove_script()
            raise RecordError(f"process {self.pid} ended before it was recorded")
        now = time.monotonic()
        if not self._opened and os.path.exists(self._script):
            if now > self._asked + self._wait_s and self.withdraw():
                raise RecordError(
                    f"process {self.pid} has not come to a point where Python code can run for {self._wait_s:g} s: "
                    f"{_where(self.pid)}; the request is withdrawn, and nothing was changed",
                    do="Try again, with a longer --wait.",
                )
            self._ask_again(now)
            return False
        self._opened = self._opened or now
        if now > self._opened + _BEGINS_S:
            raise RecordError(
                f"process {self.pid} has begun to load the recorder, and has not ended that within {_BEGINS_S} s"
            )
        return False

    def _ask_again(self, now: float) -> None:
        """CPython imports a module to open a script, which fails where the running code has no builtins (the
        constructor of a named tuple).
        """
        if not self.remote.taken():
            self._again = now + _OPENS_S
        elif now > self._again:
            self.remote.request(self._script)
            self._again = now + _OPENS_S

    def withdraw(self) -> bool:
        """Take the request back. Returns False if the program runs the script already: it will answer."""
        with suppress(OSError, ValueError):  # it is gone
            self.remote.withdraw()
        time.sleep(_TAKEN_S)
        return self._remove_script()

    def _remove_script(self) -> bool:
        try:
            os.unlink(self._script)
        except FileNotFoundError:
            return False
        return True


def _where(pid: int) -> str:
    """What the main thread of a process does, as far as the kernel knows."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        state = file.read().rpartition(")")[2].split()[0]
        if state in "Tt":
            return "it is stopped"
        if state in "SD":
            return "its main thread waits in C code"
    return "its main thread is in C code"


def _refused(pid: int, why: str) -> RecordError:
    missing = why.startswith("strobe is missing")
    do = "Install strobe with the Python that runs the program: pip install strobe" if missing else ""
    return RecordError(f"process {pid} cannot be attached to: {why}", do=do)
