"""Every error that strobe raises on purpose, in one tree.

StrobeError                  the root; `exit_code` is what the command line ends with
├── UsageError        (2)    asked for something that does not exist: a verb, an option, a column, a run
│   └── QueryError    (2)    SQL that the engine refuses
├── InconclusiveError (3)    the question has no sound answer for this data
├── TraceError        (4)    the input cannot be read
│   └── FormatError   (4)    it is something else altogether
├── PartialError      (5)    answered, but some processes are missing and the caller asked for all of them
└── RecordError     (125)    recording could not start; the program was not run

Messages say what happened, where, and what to do, in one sentence each. Nothing here is ever raised into a measured
program.
"""

from __future__ import annotations


class StrobeError(Exception):
    """Something the user can understand and act on: `what` happened, `where`, and what to `do`."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = visible(what), visible(where), visible(do)
        super().__init__(self.what)

    def __str__(self) -> str:
        first = f"{self.what} ({self.where})" if self.where else self.what
        return f"{first}\n  {self.do}" if self.do else first


def visible(text: str) -> str:
    """Return a text with what a terminal obeys, or cannot encode, as escapes: names in files may hold anything."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


class UsageError(StrobeError):
    """The request names something that does not exist."""

    exit_code = 2


class QueryError(UsageError):
    """The query engine refused a query, or it ran past its time limit."""


class InconclusiveError(StrobeError):
    """The data does not allow a sound answer."""

    exit_code = 3


class TraceError(StrobeError):
    """A trace, or a file in it, cannot be read."""

    exit_code = 4


class FormatError(TraceError):
    """The path holds something that strobe cannot read as a trace."""


class PartialError(StrobeError):
    """Some processes of the job are missing from the answer."""

    exit_code = 5


class RecordError(StrobeError):
    """Recording could not start. `exit_code` is 125, or 126 (cannot be run) or 127 (not found), as for `env`."""

    exit_code = 125

    def __init__(self, what: str, *, where: str = "", do: str = "", exit_code: int = 125) -> None:
        super().__init__(what, where=where, do=do)
        self.exit_code = exit_code
