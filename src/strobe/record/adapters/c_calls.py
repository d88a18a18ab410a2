"""C functions: built-in functions and methods (`len`, `list.append`, `torch.add`) that recorded Python functions call.

Off by default: `--trace +c_calls`. CPython 3.11 reports them through its profile hook only, later versions through
sys.monitoring. python_calls does the work, so this adapter needs it.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from strobe.record.options.session_settings import Session


class _CCalls(Adapter):
    needs_gil = "C functions are not recorded"

    def start(self, settings: Session) -> None:
        """Check that the adapter which records them is on. Raises ValueError if it is off."""
        if "python_calls" not in settings.adapters:
            raise ValueError("C functions are recorded where Python functions call them: --trace +python,+c_calls")


ADAPTER = _CCalls("c_calls")
