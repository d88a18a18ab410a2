"""What an adapter is: something that can be recorded, described by the `ADAPTER` of a file in `record/adapters/`.

The launcher, the options and the doctor ask these descriptions and know no adapter by name. A description is imported
wherever options are listed, so it imports no more than it must: what runs in the program may be in a module `hooks`.
"""

from __future__ import annotations

import os
from importlib import import_module

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from strobe.model.option import Option
    from strobe.record.doctor.finding import Finding
    from strobe.record.options.recorder_options import Setting
    from strobe.record.options.session_settings import Session

    class Companion(Protocol):
        """Runs in `strobe run`, beside the program."""

        def started(self) -> None:
            """The program has been started."""

        def stop(self) -> None:
            """The program has ended, or could not be started."""


class Hooks:
    """What an adapter does in the measured program."""

    def available(self) -> str:
        """Return an empty string, or one sentence that says why this cannot be recorded here."""
        return ""

    def start(self, settings: Session) -> None:
        """Begin recording. Called at the begin of each window, with the core already active."""

    def stop(self) -> None:
        """Undo what start did."""

    def session_begins(self) -> None:
        """The session begins, with a window or without."""

    def session_ends(self) -> None:
        """The session ends."""


class Adapter(Hooks):
    """The description of an adapter, which is also its hooks unless a module has them.

    `short`: its name in `--trace`. `order`: adapters start in this order, then by name. `presets`: those it belongs to,
    `preset_options` values of options there. `levels`: what it records only where it is asked for (`+cuda+memory`).
    `injection`: the variable by which a library finds libstrobe, and `events`: what is lost where another tool has it.
    `variables`: of the environment that are its own, beside those of its options. `has_ranks`: processes may run on
    several nodes. `core`: fields of `strobe_options` while it records. `hooks`: the module whose `HOOKS` run in the
    program.
    """

    def __init__(
        self,
        name: str,
        *,
        short: str = "",
        order: int = 100,
        presets: tuple[str, ...] = (),
        preset_options: Mapping[str, Mapping[str, str]] | None = None,
        levels: tuple[str, ...] = (),
        options: tuple[Option, ...] = (),
        injection: str = "",
        events: str = "",
        variables: tuple[str, ...] = (),
        has_ranks: bool = False,
        core: Mapping[str, int] | None = None,
        hooks: str = "",
    ) -> None:
        self.name = name
        self.short = short or name
        self.order = order
        self.presets = presets
        self.preset_options = preset_options or {}
        self.levels = levels
        self.options = options
        self.injection = injection
        self.events = events or name
        self.variables = variables
        self.has_ranks = has_ranks
        self.core = core or {}
        self._hooks = hooks

    def hooks(self) -> Hooks:
        """Return what runs in the program."""
        if not self._hooks:
            return self
        hooks: Hooks = import_module(self._hooks).HOOKS
        return hooks

    # --- in the launcher

    def needed_by(self, environment: Mapping[str, str], command: Sequence[str]) -> bool:
        """Whether a program needs this adapter whatever the preset is."""
        return False

    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Whether it records, given that the preset and `--trace` have `chosen` it; may change other settings."""
        return chosen or any(option.asks and settings[option.name].text for option in self.options)

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a recorded program gets beside those in `environment`."""
        from strobe.native import library

        return {self.injection: library()} if self.injection and self.injection not in environment else {}

    def companion(self, settings: Session, environment: dict[str, str]) -> Companion | None:
        """Return what runs beside the program, whether this adapter records or not; may add to its environment."""
        return None

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return what `strobe doctor` shows of it."""
        return ()

    # --- in the program

    def available(self) -> str:
        """Another tool's injection is the user's own and stays."""
        from strobe.native import library

        other = os.environ.get(self.injection, "") if self.injection else ""
        return f"{self.injection} names another tool: {other}" if other not in ("", library()) else ""

    def start(self, settings: Session) -> None:
        """Name the injection library. Without a session its functions return at once."""
        from strobe.native import library

        if self.injection:
            os.environ[self.injection] = library()


def described(name: str) -> Adapter:
    """Import the description of an adapter."""
    adapter: Adapter = import_module(f"strobe.record.adapters.{name}").ADAPTER
    return adapter
