"""What an adapter is: something that can be recorded, described by the `ADAPTER` of a file in `record/adapters/`.

The launcher, the options and the doctor read these descriptions and do not know any adapter by name. A description is
imported wherever options are listed, so it imports as little as possible: what runs in the program may be in a module
`hooks`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

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

    # Of hooks that rely on the GIL: what is not done without one.
    needs_gil = ""

    def available(self) -> str:
        """Return an empty string, or a sentence: why this cannot be recorded here."""
        free_threaded = self.needs_gil and not getattr(sys, "_is_gil_enabled", lambda: True)()
        return f"{self.needs_gil} in a free-threaded Python" if free_threaded else ""

    def start(self, settings: Session) -> None:
        """Begin recording. Called at the begin of each window, with the core already active."""

    def stop(self) -> None:
        """Undo what start did."""

    def session_begins(self) -> None:
        """The session begins, with a window or without."""

    def session_ends(self) -> None:
        """The session ends."""


class Replacements:
    """Attributes of the program's modules and classes that are ours until `undo`."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, new: Any) -> None:
        """Replace an attribute."""
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    def undo(self) -> None:
        """Give every owner its own attribute back."""
        while self._originals:
            setattr(*self._originals.pop())


class Adapter(Hooks):
    """The description of an adapter, which is also its hooks unless a module has them.

    `short` is its name in `--trace`. Adapters start by `order`, then by name. `presets` are those it belongs to,
    `preset_options` the values of options there. `levels` are recorded only on request (`+cuda+memory`).
    `injection` is the variable by which a library finds libstrobe, and `events` what is lost if another tool uses it.
    `variables` are its own variables of the environment, beside those of its options. With `has_ranks`, processes may
    run on several nodes. `core` are fields of `strobe_options` while it records. `hooks` is the module whose `HOOKS`
    run in the program.
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
        """Return whether a program needs this adapter, whatever the preset is."""
        return False

    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Return whether it records; `chosen` by the preset and `--trace`. May change other settings."""
        return chosen or any(option.asks and settings[option.name].text for option in self.options)

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to add to the `environment` of a recorded program."""
        from strobe.native import library

        return {self.injection: library()} if self.injection and self.injection not in environment else {}

    def companion(self, settings: Session, environment: dict[str, str]) -> Companion | None:
        """Return what runs beside the program, even if this adapter does not record. May add to its environment."""
        return None

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return what `strobe doctor` shows about it."""
        return ()

    # --- in the program

    def available(self) -> str:
        """Another tool that the user has named for injection stays."""
        from strobe.native import library

        other = os.environ.get(self.injection, "") if self.injection else ""
        if other in ("", library()):
            return super().available()
        return f"{self.injection} names another tool: {other}"

    def start(self, settings: Session) -> None:
        """Set the variable of the injection library. Without a session its functions return at once."""
        from strobe.native import library

        if self.injection:
            os.environ[self.injection] = library()


def preloaded(adapter: str) -> bool:
    """Return whether this process was started with the library of an adapter that is preloaded."""
    return f"libstrobe_{adapter}.so" in os.environ.get("LD_PRELOAD", "")


def preloading(adapter: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return LD_PRELOAD with the library of an adapter.

    Last: a tool of the user's that interposes the same calls keeps its place, and hands on to us.
    """
    from strobe.native import adapter_library

    before = environment.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": os.pathsep.join(filter(None, [before, adapter_library(adapter)]))}


def described(name: str) -> Adapter:
    """Import the description of an adapter."""
    adapter: Adapter = import_module(f"strobe.record.adapters.{name}").ADAPTER
    return adapter
