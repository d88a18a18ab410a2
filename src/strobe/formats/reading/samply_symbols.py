"""The symbols that samply writes beside a profile (--unstable-presymbolicate): profile.syms.json.

Without them, a saved profile of samply has addresses instead of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from strobe.formats.reading.json_input import fields, items, read_json, text
from strobe.formats.reading.profile_import import Function
from strobe.formats.reading.python_names import function_of_symbol
from strobe.model.plugins import ImportSource

_ID_DIGITS = 32  # the age of a file may follow
Symbols = Mapping[
    int, Sequence[Function]
]  # by address in the library: the function, and those inlined, outermost first


def symbols_beside(source: ImportSource, libs: Sequence[object]) -> list[Symbols]:
    """Return the symbols of each library of a profile; no symbols without the file.

    Raises ValueError if that is not JSON.
    """
    name = PurePosixPath(source.name.replace(":", "/")).name.removesuffix(".gz")
    found = source.beside(f"{name.removesuffix('.json')}.syms.json") or source.beside(f"{name}.syms.json")
    if found is None:
        return [{} for _ in libs]
    body = read_json(found)
    texts = items(body.get("string_table"))
    tables = {_identity(each, "debug_name", "debug_id"): fields(each) for each in items(body.get("data"))}
    keys = (_identity(lib, "debugName", "breakpadId") for lib in libs)
    return [
        _symbols(tables.get(key, {}), texts, text(fields(lib).get("path")) or text(fields(lib).get("name")))
        for key, lib in zip(keys, libs, strict=True)
    ]


def _identity(lib: object, name: str, number: str) -> tuple[str, str]:
    digits = text(fields(lib).get(number)).replace("-", "").upper()
    return text(fields(lib).get(name)), digits[:_ID_DIGITS]


def _symbols(table: Mapping[str, object], texts: Sequence[object], module: str) -> Symbols:
    known = [_functions(fields(entry), texts, module) for entry in items(table.get("symbol_table"))]
    pairs = (items(pair) for pair in items(table.get("known_addresses")))
    return {
        address: known[place]
        for address, place in (pair for pair in pairs if len(pair) == 2)
        if isinstance(address, int) and isinstance(place, int) and 0 <= place < len(known) and known[place]
    }


def _functions(entry: Mapping[str, object], texts: Sequence[object], module: str) -> Sequence[Function]:
    symbol, frames = _text(texts, entry.get("symbol")), [fields(frame) for frame in items(entry.get("frames"))]
    named = [(_text(texts, frame.get("function")), _text(texts, frame.get("file"))) for frame in reversed(frames)]
    # A frame has the line that ran, which is not where its function begins.
    return [
        function_of_symbol(name or symbol, file, module=module)
        for name, file in named or [(symbol, "")]
        if name or symbol
    ]


def _text(texts: Sequence[object], place: object) -> str:
    return text(texts[place]) if isinstance(place, int) and 0 <= place < len(texts) else ""
