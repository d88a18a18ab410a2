"""What is recorded, and how every process of a job gets to know it: from one environment variable.

Runs inside the measured program at its very start, so it imports nothing that the program would not import itself.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from typing import Any

SESSION_VARIABLE = "STROBE_SESSION"
KILL_SWITCH = "STROBE_DISABLE"
_OPTION = "--"  # before the name of an option in the text of a session
_CORE = "core."  # before the name of a setting of the core


def disabled() -> bool:
    """Return whether the kill switch is on: then nothing is recorded, anywhere."""
    return os.environ.get(KILL_SWITCH, "") not in ("", "0")


class Switch:
    """The switch of `strobe.region`."""

    core: Any = None  # while this process is recorded
    counted: tuple[str, ...] = ()  # patterns of regions whose counters are recorded
    on_step: Any = None  # called by `strobe.step` while record/program/windows.py waits for a step


switch = Switch()


class Session:
    """Settings of a recording, as text in the environment: `key=value` lines (JSON would import json at start-up).

    `options` has the text of every option by name.
    """

    def __init__(
        self,
        folder: str,
        adapters: tuple[str, ...],
        options: dict[str, str],
        *,
        supervisor: int = 0,
        strings: bool = False,
        inject: str = "",
        library: str = "",
        began_ns: int = 0,
        leader: str = "",
        clock: str = "",
        levels: tuple[str, ...] = (),
        attached: bool = False,
    ) -> None:
        self.folder = folder
        self.adapters = adapters
        self.options = options
        self.supervisor = supervisor
        self.strings = strings
        self.inject = inject
        self.library = library  # path of libstrobe, for programs without Python
        self.began_ns = began_ns  # of the job, CLOCK_MONOTONIC
        self.leader = leader  # record/program/windows.py
        self.levels = levels  # requested of adapters: cuda+memory
        self.attached = attached  # the program was started without us, and goes on without us
        self.clock = clock  # record/launch/clock_server.py: address of the clock for other nodes

    def to_text(self) -> str:
        """The value of SESSION_VARIABLE."""
        from strobe.record.options.recorder_options import core_settings

        own = {name: _as_text(value) for name, value in vars(self).items() if name != "options"}
        # For processes without Python: they read numbers, not options (native/core/session/from_environment.cpp).
        core = {_CORE + name: str(value) for name, value in core_settings(self.options, self.adapters).items()}
        options = {_OPTION + name: _one_line(text) for name, text in self.options.items()}
        return "\n".join(f"{key}={text}" for key, text in {**own, **core, **options}.items())

    @classmethod
    def from_text(cls, text: str) -> Session:
        """Inverse of to_text. Raises ValueError when the text does not describe a session."""
        fields = dict(line.partition("=")[::2] for line in text.split("\n"))
        if "folder" not in fields:
            raise ValueError(f"{SESSION_VARIABLE} does not describe a recording")
        options = {key[len(_OPTION) :]: _lines(value) for key, value in fields.items() if key.startswith(_OPTION)}
        session = cls(fields["folder"], (), options)
        for name, default in vars(session).items():
            if name in fields:
                setattr(session, name, _from_text(fields[name], default))
        return session


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _from_text(text: str, default: object) -> object:
    """Return a value of the type of the default."""
    if isinstance(default, tuple):
        return tuple(filter(None, text.split(",")))
    if isinstance(default, bool):
        return text == "1"
    return int(text) if isinstance(default, int) else text


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _lines(text: str) -> str:
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))


def json_text(value: object) -> str:
    """JSON of strings, numbers, booleans, lists and dicts, for programs that have not imported json."""
    if isinstance(value, str):
        out = []
        for character in value:
            if " " <= character <= "~" and character not in '"\\':
                out.append(character)
            elif ord(character) > 0xFFFF:
                high, low = divmod(ord(character) - 0x10000, 0x400)
                out.append(f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}")
            else:
                out.append(f"\\u{ord(character):04x}")
        return '"' + "".join(out) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(str(k))}: {json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return "null"
