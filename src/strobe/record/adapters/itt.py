"""ITT ranges of anybody (oneDNN, MKL, TBB, the program itself): libstrobe is the collector that ITT loads by name.

ITT reads its variable at its first call, so it must be set before the program's libraries load.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter("itt", order=50, presets=("auto", "light", "sampling"), injection="INTEL_LIBITTNOTIFY64")
