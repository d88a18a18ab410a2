"""C and C++ functions of programs and extension modules that `strobe cc` has built (-finstrument-functions).

They carry their own hooks, which look for a session when the first of them runs (native/stubs/compiled_functions.c),
and cost nothing if there is none.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter("functions", order=80, presets=("auto", "light", "sampling"))
