"""Source lines: hits and time of each line of chosen functions (`--lines PATTERN`, `@profile`)."""

from __future__ import annotations

from strobe.model.option import Option
from strobe.record.adapter import Adapter
from strobe.record.options.recorder_options import separated

ADAPTER = Adapter(
    "source_lines",
    short="lines",
    options=(
        Option(
            "lines",
            "Count how often each line of these functions runs: module.function, Class.method, file.py, with the "
            "wildcards * and ?.",
            group="what",
            parse=separated(","),
            metavar="PATTERN",
            many=",",
            asks=True,
        ),
    ),
    hooks="strobe.record.adapters.source_lines.hooks",
)
