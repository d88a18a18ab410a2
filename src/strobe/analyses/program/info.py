"""What is in a trace: program, machine, how long, how it ended, how much was recorded.

Return (what, value) rows, for people; rows whose name ends in a unit hold plain numbers.
"""

from __future__ import annotations

from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    "info",
    "What is in this trace?",
    run="strobe.answers.program.info:run",
    details=__doc__,
    shows=0,
    columns=(
        Column("what", "string", "", "property"),
        Column("value", "string", "", "its value, as text"),
    ),
)
