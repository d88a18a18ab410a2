"""Every error that strobe raises on purpose, in one tree.

StrobeError           (5)    the root: the answer cannot be delivered, for example because the disk is full
├── UsageError        (2)    the request names something that does not exist: a verb, an option, a column, a run
│   └── QueryError    (2)    the engine refuses the SQL
├── InconclusiveError (3)    the data allow no sound answer
├── TraceError        (4)    the input cannot be read
│   └── FormatError   (4)    the input is not a trace at all
└── RecordError     (125)    recording could not start; the program was not run

The number is `exit_code`, with which the command line ends (`model/exit_codes.py`). A message has one sentence each for
what happened, where, and what to do. Nothing here is ever raised into a measured program.
"""

from __future__ import annotations

from strobe.model import exit_codes
from strobe.model.terminal import visible


class StrobeError(Exception):
    """An error that the user can act on: `what` happened, `where`, and what to `do`."""

    exit_code = exit_codes.FAILED

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = visible(what), visible(where), visible(do)
        super().__init__(self.what)

    def __str__(self) -> str:
        first = f"{self.what} ({self.where})" if self.where else self.what
        return f"{first}\n  {self.do}" if self.do else first


class UsageError(StrobeError):
    """The request names something that does not exist."""

    exit_code = exit_codes.USAGE


class QueryError(UsageError):
    """The query engine refused a query, or the query exceeded its time limit."""


class InconclusiveError(StrobeError):
    """The data does not allow a sound answer."""

    exit_code = exit_codes.INCONCLUSIVE


class TraceError(StrobeError):
    """A trace, or a file in it, cannot be read."""

    exit_code = exit_codes.UNREADABLE


class FormatError(TraceError):
    """The path is not a trace, nor a file of a known format."""


class RecordError(StrobeError):
    """Recording could not start. `exit_code` is 125, or 126 (cannot be run) or 127 (not found), as for `env`."""

    exit_code = exit_codes.NOT_RECORDED

    def __init__(self, what: str, *, where: str = "", do: str = "", exit_code: int = exit_codes.NOT_RECORDED) -> None:
        super().__init__(what, where=where, do=do)
        self.exit_code = exit_code
