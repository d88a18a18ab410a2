"""C functions: built-in functions and methods (`len`, `list.append`, `torch.add`) that recorded Python functions call.

To ask for: `--trace +c_calls`. CPython 3.11 reports them by its profile hook only, later ones by sys.monitoring. The
work is in python_calls, which this adapter needs.
"""

from __future__ import annotations

import sys

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from strobe.record.options.session_settings import Session


class CCalls(Adapter):
    """The adapter."""

    def available(self) -> str:
        """Not in a free-threaded Python: the hooks rely on the GIL."""
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            return "C functions are not recorded in a free-threaded Python"
        return ""

    def start(self, settings: Session) -> None:
        """Check that there is somebody to record them. Raises ValueError where there is not."""
        if "python_calls" not in settings.adapters:
            raise ValueError("C functions are recorded where Python functions call them: --trace +python,+c_calls")


ADAPTER = CCalls("c_calls")
