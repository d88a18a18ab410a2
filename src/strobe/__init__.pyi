"""The public names, for editors and type checkers: see __init__.py."""

from strobe.api.trace import Trace as Trace
from strobe.api.trace import last as last
from strobe.api.trace import open_trace as open
from strobe.errors import StrobeError as StrobeError
from strobe.record.api import counter as counter
from strobe.record.api import current as current
from strobe.record.api import mark as mark
from strobe.record.api import pause as pause
from strobe.record.api import record as record
from strobe.record.api import region as region
from strobe.record.api import resume as resume
from strobe.record.api import start as start
from strobe.record.api import step as step
from strobe.record.api import stop as stop
from strobe.tables.table import Table as Table
from strobe.trace.archive import runs as runs

__version__: str

__all__ = [
    "StrobeError",
    "Table",
    "Trace",
    "__version__",
    "counter",
    "current",
    "last",
    "mark",
    "open",
    "pause",
    "record",
    "region",
    "resume",
    "runs",
    "start",
    "step",
    "stop",
]
