"""The page's types and decoders, made from what the server's routes describe: see `./dev gen`."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from strobe.model.kinds import GROUPS, HOST_KINDS, LOCATION_KINDS, PARTS
from strobe.model.option import Option
from strobe.model.schema import Column
from strobe.server.routing.analysis_routes import TableOption
from strobe.server.routing.bodies import Body, JsonText
from strobe.server.routing.routes import ROUTES
from strobe.trace.folded import DETAILS

NOTE = "// Written by ./dev gen: do not edit.\n"
WIDTH = 120
KINDS = {
    "GROUPS": GROUPS,
    "PARTS": PARTS,
    "HOST_KINDS": HOST_KINDS,
    "LOCATION_KINDS": LOCATION_KINDS,
    "DETAILS": DETAILS,
}
TYPES = {
    "GROUPS": "Group",
    "PARTS": "StepPart",
    "HOST_KINDS": "HostKind",
    "LOCATION_KINDS": "LocationKind",
    "DETAILS": "Detail",
}
PLAIN = {str: "text", bool: "flag", int: "number", float: "number"}


def kinds() -> str:
    """The enumerations that the page shares with the recorder."""
    lines = [f"{NOTE}// Enumerations of src/strobe/model/kinds.py, in their order.\n"]
    for name, values in KINDS.items():
        lines.append(f"export const {name} = [{', '.join(quoted(value) for value in values)}] as const;")
        lines.append(f"export type {TYPES[name]} = (typeof {name})[number];")
    return "\n".join([*lines, ""])


def wire() -> str:
    """A type and a decoder for every answer, and the parameters of every route."""
    made = Decoders()
    answers, tables, abouts, parameters = [], [], [], []
    for name, endpoint in sorted(ROUTES.items()):
        returned = get_type_hints(endpoint.answer, include_extras=True)["return"]
        if get_origin(returned) is JsonText:
            (returned,) = get_args(returned)
        if endpoint.columns:
            tables.append(f"  {key(name)}: {made.table(name, endpoint.columns)},")
        elif returned is not Body:
            answers.append(f"  {key(name)}: {made.of(returned)},")
        if endpoint.about:
            abouts.append(f"  {key(name)}: {made.of(endpoint.about)},")
        given = "; ".join(typed(each) for each in endpoint.parameters)
        parameters.append(f"  {key(name)}: {wrapped(f'{{ {given} }}' if given else 'Record<never, never>', ';')};")
    abouts.append(f"  table: {made.of(list[TableOption])},")
    used = sorted({name for name in TYPES if re.search(rf"\b{name}\b", "".join(made.lines + made.tables))})
    head = [
        f"{NOTE}// Every route of the server: what it is asked with, and what it answers.",
        f'import {{ {", ".join(used)} }} from "../../base/kinds.generated";',
        'import { choice, flag, list, maybe, number, object, orElse, record, text } from "./decoders";\n',
    ]
    return "\n".join(
        [
            *head,
            *made.lines,
            *made.tables,
            "\n/** Routes that answer with JSON. */",
            *("export const ANSWERS = {", *answers, "};\n"),
            "/** Routes that answer with a table: its columns by name. */",
            *("export const TABLES = {", *tables, "} as const;\n"),
            "/** JSON that comes with a table or a picture. */",
            *("export const ABOUTS = {", *abouts, "};\n"),
            "/** Parameters of every route. */",
            *("export type Routes = {", *parameters, "};"),
            "",
        ]
    )


class Decoders:
    """Decoders of the types met so far, each after those that it uses."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tables: list[str] = []
        self._made: dict[type, str] = {}
        self._columns: dict[Sequence[Column], str] = {}

    def of(self, kind: Any) -> str:
        """Return the decoder of a type as an expression."""
        if kind in PLAIN:
            return PLAIN[kind]
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return f"choice({constant(inner[1])})"
        if origin in (Union, UnionType):
            (one,) = (each for each in inner if each is not NoneType)
            return f"maybe({self.of(one)})"
        if origin is NotRequired:
            return self._field(inner[0], "null")
        if origin in (list, tuple):
            return f"list({self.of(inner[0])})"
        if origin is dict:
            return f"record({self.of(inner[1])})"
        if is_typeddict(kind) or is_dataclass(kind):
            return self._record(kind)
        raise TypeError(f"{kind} has no decoder: use plain types, TypedDict, and dataclasses")

    def _field(self, kind: Any, default: str | None) -> str:
        """Return the decoder of a field that has a default (JSON) where it is missing, or none."""
        decoder = self.of(kind)
        if default is None or (default == "null" and decoder.startswith("maybe(")):
            return decoder
        return f"maybe({decoder})" if default == "null" else f"orElse({decoder}, {default})"

    def _record(self, kind: type) -> str:
        if kind not in self._made:
            hints = get_type_hints(kind, include_extras=True)
            given = (
                {each.name: default(each) for each in fields(kind) if has_default(each)} if is_dataclass(kind) else {}
            )
            own = ", ".join(f"{name}: {self._field(each, given.get(name))}" for name, each in hints.items())
            name = kind.__name__.lstrip("_").removesuffix("Dict")
            if f"export type {name} " in "".join(self.lines):
                raise TypeError(f"two types are called {name}: {kind}")
            decoder = name[0].lower() + name[1:]
            self._made[kind] = decoder
            self.lines.append(wrapped(f"const {decoder} = object({{ {own} }});"))
            self.lines.append(f"export type {name} = ReturnType<typeof {decoder}>;")
        return self._made[kind]

    def table(self, route: str, columns: Sequence[Column]) -> str:
        """Return the name of a table's columns: that of the first route that has them."""
        if columns not in self._columns:
            name = re.sub(r"\W", "_", route).upper()
            self._columns[columns] = name
            own = ", ".join(f"{key(column.name)}: {column_kind(column)}" for column in columns)
            self.tables.append(wrapped(f"const {name} = {{ {own} }} as const;"))
        return self._columns[columns]


def has_default(field: Any) -> bool:
    """Whether a field may be missing in what an older version wrote."""
    return field.default is not MISSING or field.default_factory is not MISSING


def default(field: Any) -> str:
    """The default of a field, as JSON."""
    return json.dumps(field.default if field.default is not MISSING else field.default_factory())


def column_kind(column: Column) -> str:
    """How the page reads a column."""
    if column.values:
        return constant(column.values)
    kind = {"string": "text", "bool": "flag"}.get(column.type, "number")
    return quoted(f"{kind}?" if column.nullable and kind == "number" else kind)


def constant(values: tuple[str, ...]) -> str:
    """The name of an enumeration, or its values."""
    return next((name for name, known in KINDS.items() if known == values), None) or (
        f"[{', '.join(quoted(value) for value in values)}] as const"
    )


def typed(parameter: Option) -> str:
    """A parameter with its type."""
    kind = {"whole": "number", "real": "number", "flag": "boolean", "text": "string"}.get(parameter.kind, "")
    kind = kind or " | ".join(quoted(choice) for choice in parameter.choices)
    # Numbers with commas between; one is a number.
    kind = f"string | {kind}" if parameter.items else kind
    return f"readonly {key(parameter.name)}{'' if parameter.required else '?'}: {kind}"


def key(name: str) -> str:
    """A name as a key of an object."""
    return name if re.fullmatch(r"[a-zA-Z_]\w*", name) else quoted(name)


def quoted(text: str) -> str:
    """A text as TypeScript writes it."""
    return f'"{text}"'


def wrapped(line: str, between: str = ",") -> str:
    """Break a long line after commas."""
    lines, rest = [], line
    while len(rest) > WIDTH and (at := rest.rfind(f"{between} ", 0, WIDTH - 1)) > 0:
        lines.append(rest[: at + 1])
        rest = "  " + rest[at + 2 :]
    return "\n".join([*lines, rest])


def files() -> Iterable[tuple[str, str]]:
    """Path in the repository and text of every generated file."""
    yield "web/src/base/kinds.generated.ts", kinds()
    yield "web/src/data/wire/wire.generated.ts", wire()
