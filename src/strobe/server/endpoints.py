"""How a question of the page is described: its parameters, their bounds, what it answers, and how large that gets.

From one description are made: the check of every request, `api/openapi.json`, and docs/reference/server.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from strobe.errors import UsageError
from strobe.server.tables import Body

if TYPE_CHECKING:
    from strobe.model.plugins import Analysis, Option
    from strobe.server.facts import Facts

JSON_TYPE = "application/json"
# A double in the browser holds no larger whole number.
LARGEST = 2**53
# Characters of the part of an address behind "?": names of kernels are some thousands long, in UTF-8 and escaped more.
MOST_QUERY = 32_768
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_REAL = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,3})?")
_SHOWN = 60

Kind = Literal["whole", "real", "text", "choice", "flag"]
Things = Literal["", "location", "process", "region", "place", "series"]
Value = int | float | str | bool | tuple[int, ...] | None


class _Required:
    """The default of a parameter that has none."""


REQUIRED = _Required()


@dataclass(frozen=True)
class Parameter:
    """One parameter of a question.

    `least` and `most` bound numbers; `most` also the characters of a text. With `of`, it is the number of one of the
    trace's locations, say: those are what bounds it. With `items`, it is so many numbers at most, with commas between.
    `argument` is what the answering function calls it, where that is not `name`.
    """

    name: str
    help: str
    kind: Kind = "whole"
    default: Value | _Required = REQUIRED
    least: int = 0
    most: int = LARGEST
    choices: tuple[str, ...] = ()
    of: Things = ""
    items: int = 0
    argument: str = ""

    @property
    def required(self) -> bool:
        """Whether there is no question without it."""
        return isinstance(self.default, _Required)

    def highest(self, facts: Facts) -> int:
        """Return the largest number that it may be in a trace."""
        if not self.of:
            return self.most
        return _count(self.of, facts) - 1

    def read(self, text: str, facts: Facts) -> Value:
        """Return what a text means. Raises UsageError with a sentence where it means nothing."""
        if self.items:
            texts = text.split(",")
            if len(texts) > self.items:
                raise UsageError(f"{len(texts)} {self.name} at once", do=f"ask for at most {self.items}")
            return tuple(self._number(each, facts) for each in texts)
        if self.kind == "whole":
            return self._number(text, facts)
        if self.kind == "real":
            if not _REAL.fullmatch(text):
                raise self._refusal(text, "is no number")
            return float(text)
        if self.kind == "choice" and text not in self.choices:
            raise self._refusal(text, f"is not one of {', '.join(self.choices)}")
        if self.kind == "flag":
            if text not in ("true", "false"):
                raise self._refusal(text, "is not one of true, false")
            return text == "true"
        if len(text) > self.most:
            raise self._refusal(text, f"has more than {self.most} characters")
        return text

    def _number(self, text: str, facts: Facts) -> int:
        highest = self.highest(facts)
        if not _WHOLE.fullmatch(text) or not self.least <= int(text) <= highest:
            raise self._refusal(text, f"is no number from {self.least} to {highest}")
        return int(text)

    def _refusal(self, text: str, why: str) -> UsageError:
        return UsageError(f"'{self.name}={text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}' {why}")


@dataclass(frozen=True)
class Endpoint:
    """A question: `answer(facts, **values)` answers it, with at most `most_bytes` bytes before compression.

    `media` are the media types that an answer may have. A `slow` question may take as long as reading the run takes:
    it waits in another queue than the pictures.
    """

    name: str
    answer: Callable[..., Body]
    question: str
    parameters: tuple[Parameter, ...]
    media: tuple[str, ...]
    most_bytes: int
    slow: bool

    def values(self, facts: Facts, pairs: Iterable[tuple[str, str]]) -> dict[str, Value]:
        """Return the arguments of `answer` from what stands in a query.

        Raises UsageError: a parameter is unknown, given twice, missing, or beyond its bounds.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        found: dict[str, Value] = {}
        for name, text in pairs:
            if name not in known:
                raise UsageError(
                    f"'{self.name}' has no parameter '{name[:_SHOWN]}'", do=f"Known: {', '.join(known) or 'none'}"
                )
            parameter = known[name]
            argument = parameter.argument or name
            if argument in found:
                raise UsageError(f"'{name}' is given twice")
            found[argument] = parameter.read(text, facts)
        for parameter in self.parameters:
            if (parameter.argument or parameter.name) not in found:
                if parameter.required:
                    raise UsageError(f"'{self.name}' needs '{parameter.name}': {parameter.help}")
                found[parameter.argument or parameter.name] = cast(Value, parameter.default)
        return found

    def rows(self, values: Mapping[str, Value]) -> int:
        """Return how many rows a question asks for: its cost grows with them."""
        count = values.get("count")
        numbers = [len(value) for value in values.values() if isinstance(value, tuple)]
        return max(1, *numbers, count if isinstance(count, int) else 1)

    def body(self, facts: Facts, values: Mapping[str, Value]) -> Body:
        """Return the answer. Raises UsageError where it is larger than the endpoint may answer."""
        body = self.answer(facts, **values)
        if len(body.data) > self.most_bytes:
            raise UsageError(
                f"the answer of '{self.name}' would have {len(body.data)} bytes, and {self.most_bytes} are the most",
                do="Ask for less at once; the command line (strobe --help) has no such bound.",
            )
        return body


def parameter_of(option: Option) -> Parameter:
    """Return the parameter that an option of an analysis is."""
    kinds: dict[type, Kind] = {int: "whole", float: "real", bool: "flag"}
    kind: Kind = "choice" if option.choices else kinds.get(option.type, "text")
    default = option.default if option.default is None else option.type(option.default)
    return Parameter(
        option.name,
        option.help,
        kind,
        default=cast(Value, default),
        least=-LARGEST if kind == "whole" else 0,
        most=LARGEST if kind == "whole" else 1000,
        choices=option.choices,
    )


def parameters_of(analysis: Analysis) -> tuple[Parameter, ...]:
    """Return the parameters of an analysis: its options."""
    return tuple(parameter_of(option) for option in analysis.options)


def _count(things: Things, facts: Facts) -> int:
    if things == "location":
        return len(facts.span_counts)
    if things == "process":
        return len(facts.trace.processes)
    if things == "region":
        return len(facts.names.names)
    return len(facts.trace.rows) if things == "place" else len(facts.series)
