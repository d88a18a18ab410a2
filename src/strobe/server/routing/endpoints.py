"""How a question of the page is described: its parameters, their bounds, its answer, and the largest size of that.

From one description are made: the check of every request, `api/openapi.json`, and docs/reference/server.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeVar

from strobe.errors import UsageError
from strobe.model.option import Option, Value
from strobe.model.schema import Column
from strobe.server.pictures.cell_tiles import MAX_LEVEL, TILE_CELLS
from strobe.server.routing.bodies import ARROW_TYPE, JSON_TYPE, Body, body_of
from strobe.server.trace_context import TraceContext

# Characters of the part of an address behind "?": names of kernels are some thousands long, in UTF-8 and escaped more.
MOST_QUERY = 32_768
MOST_LOCATIONS = 1024
MOST_PIXELS = 4096
MB = 1 << 20
_SHOWN = 60

Answer = TypeVar("Answer", bound=Callable[..., object])


def parameter(
    name: str,
    help: str,
    type: type = int,
    default: Value | EllipsisType = ...,
    choices: tuple[str, ...] = (),
    *,
    least: int = 0,
    most: int | None = None,
    of: str = "",
    items: int = 0,
    argument: str = "",
) -> Option:
    """Return one parameter of a route: by default a number of at least 0, and required."""
    option = Option(name, help, type, choices=choices, least=least, most=most, of=of, items=items, argument=argument)
    if isinstance(default, EllipsisType):
        option.required = True
    else:
        option.default = default
    return option


def highest(option: Option, context: TraceContext) -> int:
    """Return the largest number that a parameter may be in a trace."""
    return _count(option.of, context) - 1 if option.of else option.most


@dataclass(frozen=True)
class Endpoint:
    """A question: `answer(context, **values)` answers it, with at most `most_bytes` bytes before compression.

    `media` are the media types that an answer may have. A `slow` question may take as long as reading the run takes:
    it waits in another queue than the pictures. `columns` are those of a table; `about` is the type of the JSON that
    comes with it. `noted`: the answer changes with the notes of the run.
    """

    name: str
    answer: Callable[..., object]
    question: str
    parameters: tuple[Option, ...]
    media: tuple[str, ...]
    most_bytes: int
    slow: bool
    columns: tuple[Column, ...] = ()
    about: type | None = None
    noted: bool = False

    def values(self, context: TraceContext, pairs: Iterable[tuple[str, str]]) -> dict[str, Value]:
        """Return the arguments of `answer` from what stands in a query: see `read_values`."""
        values = read_values(self.name, self.parameters, pairs, lambda option: highest(option, context))
        start_ns, end_ns = values.get("start_ns"), values.get("end_ns")
        if isinstance(start_ns, int) and isinstance(end_ns, int) and end_ns <= start_ns:
            raise UsageError("the time range ends before it begins")
        return values

    def rows(self, values: Mapping[str, Value]) -> int:
        """Return how many rows a question asks for: its cost grows with them."""
        count = values.get("count")
        numbers = [len(value) for value in values.values() if isinstance(value, tuple)]
        return max(1, *numbers, count if isinstance(count, int) else 1)

    def body(self, context: TraceContext, values: Mapping[str, Value]) -> Body:
        """Return the answer. Raises UsageError where it is larger than the endpoint may answer."""
        body = body_of(self.answer(context, **values))
        if len(body.data) > self.most_bytes:
            raise UsageError(
                f"the answer of '{self.name}' would have {len(body.data)} bytes; the limit is {self.most_bytes}",
                do="Ask for less at once; the command line (strobe --help) has no such limit.",
            )
        return body


def read_values(
    asked: str, options: Iterable[Option], pairs: Iterable[tuple[str, str]], highest: Callable[[Option], int]
) -> dict[str, Value]:
    """Return the values of options by keyword, from names and texts; `asked` is what has them.

    Raises UsageError: an option is unknown, given twice, missing, or beyond its bounds.
    """
    known = {option.name: option for option in options}
    values: dict[str, Value] = {}
    for name, text in pairs:
        if name not in known:
            raise UsageError(f"'{asked}' has no parameter '{name[:_SHOWN]}'", do=f"Known: {', '.join(known) or 'none'}")
        option = known[name]
        if option.keyword in values:
            raise UsageError(f"'{name}' is given twice")
        try:
            values[option.keyword] = option.read(text, highest(option))
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    for option in known.values():
        if option.keyword not in values:
            if option.required:
                raise UsageError(f"'{asked}' needs '{option.name}': {option.help}")
            values[option.keyword] = option.default
    return values


def _count(things: str, context: TraceContext) -> int:
    if things == "location":
        return len(context.span_counts)
    if things == "process":
        return len(context.trace.processes)
    if things == "region":
        return len(context.names.names)
    return len(context.trace.rows) if things == "place" else len(context.series)


ROUTES: dict[str, Endpoint] = {}


def route(
    name: str,
    *parameters: Option,
    most_bytes: int,
    media: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    about: type | None = None,
    slow: bool = False,
    noted: bool = False,
) -> Callable[[Answer], Answer]:
    """Describe the function below: it answers `api/NAME`. The question is the first line of its docstring.

    Its answer has one of the `media` types where it returns bytes, else it is a table with these `columns`, else JSON
    of the type that the function returns. `about` is the type of the JSON that comes with a table or a picture.
    """

    def describe(answer: Answer) -> Answer:
        question = (answer.__doc__ or "").strip().partition("\n")[0]
        types = media or ((ARROW_TYPE,) if columns else (JSON_TYPE,))
        ROUTES[name] = Endpoint(name, answer, question, parameters, types, most_bytes, slow, columns, about, noted)
        return answer

    return describe


# Parameters of several routes.
START_NS = parameter("start_ns", "begin of a time range, ns since the trace's zero")
END_NS = parameter("end_ns", "its end, ns since the trace's zero")
TIME_RANGE = (START_NS, END_NS)
LOCATION = parameter("location", "number of a thread or stream", of="location")
LOCATIONS = parameter("locations", "numbers of threads and streams", of="location", items=MOST_LOCATIONS)
TILE = (
    parameter("level", "a cell is 2^level ns", most=MAX_LEVEL),
    parameter("tile", f"number of the tile: {TILE_CELLS} cells, counted from the trace's zero"),
)
WIDTH = parameter("width", "pixels of the time range on the screen", least=1, most=MOST_PIXELS)
LOOP = parameter("level", "loop whose iterations are the steps; default: the one that was found", str, "", most=4096)
