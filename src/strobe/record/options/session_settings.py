"""What is to be recorded, and how that travels to every process of a job: one environment variable.

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
_CORE = "core."  # before what the core itself keeps to


def disabled() -> bool:
    """Whether the kill switch is on: then nothing is recorded, anywhere."""
    return os.environ.get(KILL_SWITCH, "") not in ("", "0")


class Switch:
    """Where `strobe.region` looks: the core while this process is recorded, else None."""

    core: Any = None
    counted: tuple[str, ...] = ()  # patterns of regions whose counters are recorded
    on_step: Any = None  # who counts steps: record/program/windows.py while it waits for one


switch = Switch()


class Session:
    """Settings of a recording, as text in the environment: `key=value` lines (JSON would import json at start-up).

    `options` has the text of every option of record/options/recorder_options.py by name.
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
    ) -> None:
        self.folder = folder
        self.adapters = adapters
        self.options = options
        self.supervisor = supervisor
        self.strings = strings
        self.inject = inject
        self.library = library  # path of libstrobe, for programs that are no Python
        self.began_ns = began_ns  # of the job, CLOCK_MONOTONIC
        self.leader = leader  # record/program/windows.py
        self.levels = levels  # that adapters are asked for: cuda+memory
        self.clock = clock  # record/launch/clock_server.py: who tells the time to other nodes

    def to_text(self) -> str:
        """The value of SESSION_VARIABLE."""
        from strobe.record.options.recorder_options import core_settings

        own = {
            "folder": self.folder,
            "adapters": ",".join(self.adapters),
            "levels": ",".join(self.levels),
            "supervisor": str(self.supervisor),
            "strings": str(int(self.strings)),
            "inject": self.inject,
            "library": self.library,
            "began_ns": str(self.began_ns),
            "leader": self.leader,
            "clock": self.clock,
        }
        # For processes without Python: they read numbers, not options (native/core/session/from_environment.cpp).
        core = {_CORE + name: str(value) for name, value in core_settings(self.options, self.adapters).items()}
        options = {_OPTION + name: _one_line(text) for name, text in self.options.items()}
        return "\n".join(f"{key}={text}" for key, text in {**own, **core, **options}.items())

    @classmethod
    def from_text(cls, text: str) -> Session:
        """Inverse of to_text. Raises ValueError when the text is no session."""
        fields = dict(line.partition("=")[::2] for line in text.split("\n"))
        if "folder" not in fields:
            raise ValueError(f"{SESSION_VARIABLE} does not describe a recording")
        return cls(
            folder=fields["folder"],
            adapters=tuple(filter(None, fields.get("adapters", "").split(","))),
            options={key[len(_OPTION) :]: _lines(value) for key, value in fields.items() if key.startswith(_OPTION)},
            supervisor=int(fields.get("supervisor", "0")),
            strings=fields.get("strings") == "1",
            inject=fields.get("inject", ""),
            library=fields.get("library", ""),
            began_ns=int(fields.get("began_ns", "0")),
            leader=fields.get("leader", ""),
            clock=fields.get("clock", ""),
            levels=tuple(filter(None, fields.get("levels", "").split(","))),
        )


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
