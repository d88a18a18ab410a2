"""Option: one option of a verb, an analysis, a format, the recorder or a question of the page.

The command line, the environment, files, Python, the server and the reference are made from this one description.
Imports nothing, because the measured program needs it, too.
"""

from __future__ import annotations

from strobe.model.durations import UNITS_NS, duration_ns

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Kind = Literal["whole", "real", "text", "choice", "flag", "duration"]

Value = str | int | float | bool | tuple[int, ...] | None
LARGEST = 2**53  # a double, and so the page, holds no larger whole number
MOST_CHARACTERS = 32_768  # names of kernels have some thousands
_SHOWN = 60


class Option:
    """One option: its name, what it does, and which values it takes.

    `type` is str, int, float or bool; `choices` are the only texts allowed. `parse` reads texts of another form: it
    returns a value, or raises ValueError with a sentence. With `unit` (ns, us, ms, s) the value is a duration: text may
    have any unit, Python gets a number in this one, and the command line leaves the unit out of the name. `least` and
    `most` bound numbers; `most` also bounds the characters of a text. `of` names the things of a trace that the option
    numbers; with `items` it takes up to so many numbers with commas between them. A
    `required` option must be given. `argument` is the name in Python where it is not `name`.

    On the command line, `also` are other spellings, and with `flags` each choice is an option of its own: `--tree` for
    `--form tree`. `many` stands between several values in one text, and the option may be given several times.

    Options of recording have a `group`, the heading that they are shown under; their default is a text. `paths`: the
    value names files, in an options file relative to its folder. `asks`: a value switches on the option's adapter.
    """

    __slots__ = (
        *("also", "asks", "argument", "choices", "default", "flags", "group", "help", "items", "least", "many"),
        *("metavar", "most", "name", "of", "parse", "paths", "required", "type", "unit"),
    )

    def __init__(
        self,
        name: str,
        help: str,
        type: type = str,
        default: Value = None,
        choices: tuple[str, ...] = (),
        *,
        parse: Callable[[str], object] | None = None,
        unit: str = "",
        least: int | None = None,
        most: int | None = None,
        of: str = "",
        items: int = 0,
        required: bool = False,
        argument: str = "",
        metavar: str = "",
        also: tuple[str, ...] = (),
        flags: bool = False,
        many: str = "",
        group: str = "",
        paths: bool = False,
        asks: bool = False,
    ) -> None:
        self.name, self.help, self.type, self.choices = name, help, type, choices
        self.default = "" if default is None and group else default
        self.parse, self.unit, self.of, self.items, self.required = parse, unit, of, items, required
        self.least = -LARGEST if least is None else least
        self.most = most if most is not None else MOST_CHARACTERS if type is str else LARGEST
        self.argument, self.metavar, self.also, self.flags = argument, metavar, also, flags
        self.many, self.group, self.paths, self.asks = many, group, paths, asks

    @property
    def kind(self) -> Kind:
        """Which values it takes."""
        if self.unit:
            return "duration"
        if self.choices:
            return "choice"
        return (
            "flag" if self.type is bool else "whole" if self.type is int else "real" if self.type is float else "text"
        )

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        name = self.name.removesuffix("_" + self.unit) if self.unit else self.name
        return "--" + name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return "STROBE_" + self.name.upper().replace("-", "_")

    @property
    def keyword(self) -> str:
        """Its name in Python."""
        return self.argument or self.name.replace("-", "_") + ("_" if self.name == "for" else "")

    @property
    def default_text(self) -> str:
        """The default as users write it, empty if there is none."""
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        if self.default is None:
            return ""
        return f"{self.default:g}{self.unit}" if isinstance(self.default, float) else f"{self.default}{self.unit}"

    def read(self, text: str, most: int | None = None) -> Value:
        """Return the value of a text. `most` is a bound of numbers that only the trace knows.

        Raises ValueError with a sentence for a text that is not a value.
        """
        if not text and self.default == "" and (self.parse or self.choices):
            return None
        if self.items:
            texts = text.split(",")
            if len(texts) > self.items:
                raise ValueError(f"{len(texts)} numbers at once; at most {self.items} are allowed")
            return tuple(self._whole(each, most) for each in texts)
        if self.parse:
            return self.parse(text)  # type: ignore[return-value]  # whoever gives `parse` knows its values
        if self.kind == "duration":
            value = duration_ns(text, self.unit) / UNITS_NS[self.unit]
            return int(value) if self.type is int and value.is_integer() else value
        if self.kind == "choice" and text not in self.choices:
            raise ValueError(f"'{_short(text)}' is not one of {', '.join(self.choices)}")
        if self.kind == "flag":
            return yes_or_no(text)
        if self.kind == "whole":
            return self._whole(text, most)
        if self.kind == "real":
            return _real(text)
        if len(text) > self.most:
            raise ValueError(f"'{_short(text)}' has more than {self.most} characters")
        return text

    def _whole(self, text: str, most: int | None) -> int:
        digits = text.removeprefix("-")
        highest = self.most if most is None else most
        if digits.isascii() and digits.isdigit() and len(digits) < 20 and self.least <= int(text) <= highest:
            return int(text)
        if highest < LARGEST:
            bounds = f" from {self.least} to {highest}"
        else:
            bounds = f" from {self.least} on" if self.least > -LARGEST else ""
        raise ValueError(f"'{_short(text)}' is not a whole number{bounds}")


def one_of(name: str, help: str, *choices: str, flags: bool = False) -> Option:
    """Return an option that takes one of these texts, by default the first."""
    return Option(name, help, default=choices[0], choices=choices, flags=flags)


def yes_or_no(text: str) -> bool:
    """Read 1, yes, true, on and their opposites. Raises ValueError."""
    word = text.strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("0", "no", "false", "off", ""):
        return False
    raise ValueError(f"'{_short(text)}' is neither yes nor no")


def _real(text: str) -> float:
    """Read a finite number; what else Python reads as one (`nan`, `1_0`) is refused."""
    if set(text) <= set("0123456789.eE+-"):
        try:
            value = float(text)
        except ValueError:
            value = float("inf")
        if abs(value) <= 1.8e308 and len(text) < 64:
            return value
    raise ValueError(f"'{_short(text)}' is not a number")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
