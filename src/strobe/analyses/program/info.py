"""What is in a trace: program, machine, how long, how it ended, how much was recorded.

Return (what, value) rows, for people; rows whose name ends in a unit hold plain numbers.
"""

from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    __name__,
    "What is in this trace?",
    shows=0,
    columns=(
        Column("what", "string", "", "property"),
        Column("value", "string", "", "its value, as text"),
    ),
)
