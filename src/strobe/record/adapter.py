"""The seam between the session and its adapters."""

from typing import Protocol

from strobe.record.config import Session


class Adapter(Protocol):
    """Something that can be recorded: one file in `record/adapters/`, its `ADAPTER` object."""

    name: str

    def available(self) -> str:
        """Return an empty string, or one sentence that says why not."""

    def start(self, settings: Session) -> None:
        """Begin recording. Called at the begin of each window, with the core already active."""

    def stop(self) -> None:
        """Undo what start did."""


class OfSession(Protocol):
    """What an adapter has beside that where the program sees something of it, in a window or not."""

    def session_begins(self) -> None:
        """The session begins."""

    def session_ends(self) -> None:
        """The session ends."""
