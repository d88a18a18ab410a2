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
# What everybody gets, in the order of starting: all of it is cheap. Other files in record/adapters/ are there to ask
# for.
ADAPTERS = ("python_calls", "torch_ops", "data_loader", "itt", "nvtx", "counters")
PRESETS = {
    "auto": ADAPTERS,
    "light": ("torch_ops", "data_loader", "itt", "nvtx", "counters"),
}
# Iterations of the main loop that stay in detail; the others become statistics. None: all stay.
KEEP = 10
SHORT_NAMES = {"python": "python_calls", "torch": "torch_ops", "loader": "data_loader", "metrics": "counters"}


def disabled() -> bool:
    """Whether the kill switch is on: then nothing is recorded, anywhere."""
    return os.environ.get(KILL_SWITCH, "") not in ("", "0")


def known_adapters() -> tuple[str, ...]:
    """Names of all adapters: a file in record/adapters/ is one by being there."""
    from strobe import registry

    return tuple(dict.fromkeys([*ADAPTERS, *registry.names("record.adapters")]))


def adapters(preset: str = "auto", changes: str = "", *, mpi: bool = False) -> tuple[str, ...]:
    """Names of the adapters of a preset after `changes` ("+python,-torch", or a plain list that replaces the preset).

    With `mpi`, the program will call MPI: then that adapter belongs to every preset.

    Raises ValueError with a sentence that names the unknown word and the known ones.
    """
    if preset not in PRESETS:
        raise ValueError(f"no preset '{preset}'; there are: {', '.join(PRESETS)}")
    words = [word.strip() for word in changes.split(",") if word.strip()]
    every = known_adapters()
    whole = PRESETS[preset] + (("mpi",) if mpi else ())
    chosen = dict.fromkeys(whole) if not words or words[0][0] in "+-" else {}
    for word in words:
        name = SHORT_NAMES.get(word.lstrip("+-"), word.lstrip("+-"))
        if name not in every:
            known = ", ".join(sorted({*SHORT_NAMES, *every} - {*SHORT_NAMES.values()}))
            raise ValueError(f"cannot trace '{word.lstrip('+-')}'; there are: {known}")
        if word[0] == "-":
            chosen.pop(name, None)
        else:
            chosen[name] = None
    return tuple(name for name in every if name in chosen)


def kept_iterations(text: str) -> int | None:
    """Return how many iterations `--keep TEXT` keeps in detail: a number, or None for `all`. Raises ValueError."""
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise ValueError(f"cannot keep '{text}' iterations; a number, or 'all'")
    return int(text)


def without_graph(changes: str) -> tuple[str, bool]:
    """Split `graph` from the words of `--trace`: it says that nothing is to be kept in detail, and is no adapter."""
    words = [word.strip() for word in changes.split(",")]
    others = [word for word in words if word.lstrip("+") != "graph"]
    return ",".join(others), len(others) < len(words)


class Switch:
    """Where `strobe.region` looks: the core while this process is recorded, else None."""

    core: Any = None


switch = Switch()


class Session:
    """Settings of a recording, as text in the environment: `key=value` lines (JSON would import json at start-up)."""

    def __init__(
        self,
        folder: str,
        adapters: tuple[str, ...] = ADAPTERS,
        supervisor: int = 0,
        strings: bool = False,
        include: tuple[str, ...] = (),
        inject: str = "",
        keep: int | None = None,
    ) -> None:
        self.folder = folder
        self.adapters = adapters
        self.supervisor = supervisor
        self.strings = strings
        self.include = include
        self.inject = inject
        self.keep = keep

    def to_text(self) -> str:
        """The value of SESSION_VARIABLE."""
        return "\n".join(
            [
                f"folder={self.folder}",
                f"adapters={','.join(self.adapters)}",
                f"supervisor={self.supervisor}",
                f"strings={int(self.strings)}",
                f"include={os.pathsep.join(self.include)}",
                f"inject={self.inject}",
                f"keep={'all' if self.keep is None else self.keep}",
            ]
        )

    @classmethod
    def from_text(cls, text: str) -> Session:
        """Inverse of to_text. Raises ValueError when the text is no session."""
        fields = dict(line.partition("=")[::2] for line in text.split("\n"))
        if "folder" not in fields:
            raise ValueError(f"{SESSION_VARIABLE} does not describe a recording")
        return cls(
            folder=fields["folder"],
            adapters=tuple(filter(None, fields.get("adapters", "").split(","))),
            supervisor=int(fields.get("supervisor", "0")),
            strings=fields.get("strings") == "1",
            include=tuple(filter(None, fields.get("include", "").split(os.pathsep))),
            inject=fields.get("inject", ""),
            keep=kept_iterations(fields.get("keep", "all")),
        )


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
