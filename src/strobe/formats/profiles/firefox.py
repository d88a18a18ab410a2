"""Profiles of the Firefox Profiler: samply, Python's profiling.sampling --gecko, Firefox itself.

Both the processed format of every version and Gecko's own are read, with the symbols that samply writes beside a
profile. Each thread is a location. A sample stands for the interval between samples, times its weight. Markers,
counters and categories are not kept, nor is the time of a sample.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from strobe.formats.reading.json_input import exact_number, fields, integer, items, object_in, read_json, text
from strobe.formats.reading.prefix_tree import PrefixTree
from strobe.formats.reading.profile_import import ROOT, SAMPLES, CallTree, Function, ProfileProcess, Weight
from strobe.formats.reading.python_names import function_of_symbol
from strobe.formats.reading.samply_symbols import Symbols, symbols_beside
from strobe.model.losses import LEFT_OUT
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_TIME = Weight("time", "ms")
_OF_TYPE = {"tracing-ms": _TIME, "bytes": Weight("bytes", "bytes")}
# A frame of Gecko's own format is "name (file:line:column)"; this is what is in the brackets.
_PLACE = re.compile(r"(.+?)(?::(\d{1,9}))?(?::\d{1,9})?")
_BEHIND = re.compile(r"(?:\[\d+\])?")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_NOT_READ = ("markers", "jsAllocations", "nativeAllocations")
_Object = Mapping[str, object]


def sniff(head: bytes) -> bool:
    """Return whether it is an object with the profiler's description, or its tables."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or b'"traceEvents"' in head:
        return False
    described = b'"meta"' in head and (b'"preprocessedProfileVersion"' in head or b'"stackwalk"' in head)
    saved = re.match(rb'[^{]*\{\s*"label"\s*:[^\n]{0,300}"markers"\s*:', head)  # by the developer tools of Firefox
    return described or saved is not None or (b'"stackTable"' in head and b'"frameTable"' in head)


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import every thread of every process. Raises ValueError if it is not JSON, or has no threads."""
    body = read_json(source)
    body = fields(body.get("profile")) or body
    threads = list(_threads(body))
    if not threads:
        raise ValueError("it has no threads")
    process = ProfileProcess(source, target)
    symbols = symbols_beside(source, items(body.get("libs")))
    several = len({str(thread.get("pid", profile)) for profile, thread in threads}) > 1
    meta = fields(body.get("meta"))
    for number, (profile, thread) in enumerate(threads):
        name, tid, pid = text(thread.get("name")) or "thread", str(thread.get("tid", "")), str(thread.get("pid", ""))
        if several:
            name = f"{text(thread.get('processName')) or 'process'} {pid or number}, {name}"
        location = process.core.location(number, name, int(tid) if tid.isdecimal() and len(tid) < 19 else number + 1)
        _Thread(process, location, profile, thread, symbols).read(exact_number(meta.get("interval")))
    properties = {key: text(meta[key]) for key in ("product", "importedFrom", "oscpu") if text(meta.get(key))}
    return process.finish({"name": text(meta.get("product"))} | properties)


def _threads(body: _Object) -> Iterator[tuple[_Object, _Object]]:
    """Yield the threads, with the profile that each is of: Gecko nests those of its other processes."""
    profiles: list[object] = [body]
    for profile in profiles:  # grows by the processes
        found = fields(profile)
        for thread in items(found.get("threads")):
            if fields(thread):
                yield found, fields(thread)
            elif isinstance(thread, str):  # of Firefox before 49: the profile of another process
                profiles.append(object_in(thread))
        profiles += items(found.get("processes"))


class _Thread:
    """One thread: its tables, or those that threads share, by columns."""

    def __init__(
        self,
        process: ProfileProcess,
        location: int,
        profile: _Object,
        thread: _Object,
        symbols: Sequence[Symbols],
    ) -> None:
        self._process, self._location, self._symbols = process, location, symbols
        self._thread, self._shared = thread, fields(profile.get("shared"))
        self._texts = items(self._own("stringArray") or self._own("stringTable"))
        self._libs = items(profile.get("libs"))
        prefixes, self._frames = self._column("stackTable", "prefix"), self._column("stackTable", "frame")
        addresses = self._column("frameTable", "address")
        functions, self._locations = self._column("frameTable", "func"), self._column("frameTable", "location")
        self._names, self._lines = self._column("funcTable", "name"), self._column("funcTable", "lineNumber")
        self._files = self._column("funcTable", "fileName"), self._column("funcTable", "source")
        self._resources = self._column("funcTable", "resource")
        self._sources = self._column("sources", "filename")
        self._modules, self._resource_libs = self._column("resourceTable", "name"), self._column("resourceTable", "lib")
        self._regions: dict[object, int] = {}

        def caller_of(stack: int) -> int | None:
            caller = _at(prefixes, stack)
            return caller if isinstance(caller, int) and _inside(caller, self._frames) else None

        def regions_of(stack: int) -> Sequence[int]:
            frame = _at(self._frames, stack)
            key = _at(self._locations, frame) if self._locations else _at(functions, frame)
            if not isinstance(key, int):
                process.core.count("frames_not_understood")
                return ()
            address = _at(addresses, frame)
            symbols = _at(self._symbols, self._lib(key)) if isinstance(address, int) else None
            known = symbols.get(address) if isinstance(symbols, Mapping) else None
            if known:
                return [process.region(function) for function in known]
            if key not in self._regions:
                make: Callable[[int], Function] = self._gecko_function if self._locations else self._function
                self._regions[key] = process.region(make(key))
            return (self._regions[key],)

        self._tree = PrefixTree(process, caller_of, regions_of)

    def read(self, interval_ms: Fraction | None) -> None:
        """Add the samples."""
        samples = fields(self._thread.get("samples"))
        stacks, given = self._column("samples", "stack"), self._column("samples", "weight")
        weight = _OF_TYPE.get(text(samples.get("weightType")))
        timed = weight is None and interval_ms is not None and interval_ms > 0
        sums = CallTree(self._process, self._location, [weight] if weight else [SAMPLES, _TIME] if timed else [SAMPLES])
        self._process.core.left_out("samples_without_weight", abs(len(stacks) - len(given)) if given else 0)
        for stack, one in zip(stacks, given or [1] * len(stacks), strict=False):
            value = exact_number(one)
            if value is None or (stack is not None and not _inside(stack, self._frames)):
                self._process.core.left_out("samples_not_understood")
            elif not isinstance(stack, int) or (path := self._tree.path(stack)) == ROOT:
                self._process.core.left_out("samples_without_stack")
            else:
                sums.add(path, [value, value * interval_ms] if timed and interval_ms is not None else [value])
        sums.save()
        for table in _NOT_READ:
            self._process.core.left_out(LEFT_OUT + table, _rows(self._thread.get(table)))

    def _own(self, table: str) -> object:
        return self._thread.get(table) or self._shared.get(table)

    def _column(self, table: str, name: str) -> Sequence[object]:
        """Return a column; in Gecko's own format tables are rows, with the places of the columns in their schema."""
        found = fields(self._own(table))
        if "data" not in found:
            return items(found.get(name))
        place = fields(found.get("schema")).get(name)
        return [] if not isinstance(place, int) else [_at(items(row), place) for row in items(found["data"])]

    def _text(self, number: object) -> str:
        return text(_at(self._texts, number))

    def _lib(self, function: int) -> object:
        return _at(self._resource_libs, _at(self._resources, function))

    def _function(self, function: int) -> Function:
        lib = fields(_at(self._libs, self._lib(function)))
        files, sources = self._files
        file = self._text(_at(files, function)) or self._text(_at(self._sources, _at(sources, function)))
        module = text(lib.get("path")) or text(lib.get("name"))
        line = max(integer(_at(self._lines, function)), 0)
        return self._named(self._text(_at(self._names, function)), file, line, module)

    def _gecko_function(self, location: int) -> Function:
        symbol = self._text(location)
        # Cut first: one expression for all of it takes minutes for some texts of a few KB.
        name, _, inside = symbol.partition(" (")
        inside, _, behind = inside.rpartition(")")
        place = _PLACE.fullmatch(inside)
        if not name or place is None or not _BEHIND.fullmatch(behind):
            return self._named(symbol, "", 0, "")
        is_file = place[2] is not None or "/" in place[1]
        return self._named(name, place[1] if is_file else "", int(place[2] or 0), "" if is_file else place[1])

    def _named(self, symbol: str, file: str, line: int, module: str) -> Function:
        if _ADDRESS.fullmatch(symbol):
            self._process.core.count("frames_without_function")
        return function_of_symbol(symbol, file, line, module)


def _rows(table: object) -> int:
    """Return how many rows a table has, by columns or, in Gecko's own format, by rows."""
    return max((len(items(column)) for column in fields(table).values()), default=0)


def _inside(place: object, column: Sequence[object]) -> bool:
    return isinstance(place, int) and 0 <= place < len(column)


def _at(column: Sequence[object], place: object) -> object:
    return column[place] if isinstance(place, int) and 0 <= place < len(column) else None


FORMAT = Format(
    "firefox",
    "Firefox Profiler JSON (samply, profiling.sampling --gecko, Firefox)",
    suffixes=(".json", ".json.gz"),
    sniff=sniff,
    read=read,
)
