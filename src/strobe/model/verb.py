"""Verb: the description of a verb. Separate from other plug-ins, because every command imports it."""

from __future__ import annotations

from collections.abc import Callable


class Verb:
    """One verb of the command line. The file `cli/verbs/NAME.py` holds it; `run(words)` returns the exit code.

    A plain class: a dataclass or a NamedTuple would cost every command more to import than all the rest of it.
    """

    def __init__(self, name: str, help: str, run: Callable[[list[str]], int]) -> None:
        self.name, self.help, self.run = name, help, run
