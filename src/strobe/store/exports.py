"""Writing a trace to files of other tools: which format is meant, where its file goes, and all tables one by one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from strobe import registry
from strobe.errors import StrobeError, UsageError
from strobe.model.plugins import Format
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.store.table import arrow_schema

if TYPE_CHECKING:
    from strobe.store.trace import Trace


def writers() -> dict[str, Format]:
    """Return the formats that can be written, by name."""
    plugins = [cast(Format, registry.load("formats", name)) for name in registry.names("formats")]
    return {plugin.name: plugin for plugin in plugins if plugin.write is not None}


def format_for(path: Path | None, name: str) -> Format:
    """Return the format that a name, or else the suffix of a path, means."""
    known = writers()
    if name:
        if name not in known:
            raise UsageError(f"no format '{name}' to export to", do=f"Formats: {', '.join(sorted(known))}")
        return known[name]
    fitting = [each for each in known.values() if path is not None and path.name.endswith(each.suffixes)]
    if not fitting:
        raise UsageError("which format to export to?", do=f"--to one of: {', '.join(sorted(known))}")
    return fitting[0]


def export(trace: Trace, path: Path, to: str, options: Mapping[str, object]) -> list[str]:
    """Write a trace in a format; return sentences about what that cannot hold."""
    plugin = format_for(path, to)
    assert plugin.write is not None
    unknown = set(options) - {option.name for option in plugin.options}
    if unknown:
        known = ", ".join(option.name for option in plugin.options) or "none"
        raise UsageError(f"{plugin.name} has no option '{sorted(unknown)[0]}'", do=f"Options: {known}")
    try:
        return list(plugin.write(trace, path, **options) or ())
    except OSError as error:
        raise StrobeError(f"cannot write '{error.filename or path}': {error.strerror or error}") from error


def every_table(trace: Trace) -> Iterator[tuple[str, pa.Schema, Iterator[pa.Table]]]:
    """Return every table of model/schema.py: its name, its schema, and its rows by location and start, in pieces.

    Of spans and side tables one location is in memory at a time.
    """
    for name, columns in TABLES.items():
        yield name, arrow_schema(columns), _pieces(trace, name)


def _pieces(trace: Trace, name: str) -> Iterator[pa.Table]:
    locations = range(len(trace.locations))
    if name == "spans":
        for location in locations:
            yield trace.spans(location).to_arrow()
    elif name in SPAN_TABLES or name in EVENT_TABLES:
        for location in locations:
            yield from trace.side_batches(name, location)
    elif name in registry.names("analyses"):
        yield trace.ask(name).to_arrow()
    elif name == "metrics":
        yield trace.metrics().to_arrow()
    else:
        yield getattr(trace, name).to_arrow()


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give a name to write to: the file appears under its own name when it is complete, or not at all."""
    work = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        yield work
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)


def only_files(suffix: str) -> tuple[Callable[[Path], bool], str]:
    """Return the last two arguments of `new_folder` for a folder of files of one kind."""
    what = f"it is no folder of {suffix} files"
    return lambda folder: all(each.name.endswith(suffix) for each in folder.iterdir()), what


@contextmanager
def new_folder(path: Path, is_ours: Callable[[Path], bool], else_why: str) -> Iterator[Path]:
    """Give a folder to write to, which appears when it is complete. One of an earlier export is replaced: `is_ours`.

    Raises UsageError where something else is in the way; `else_why` says what it is not.
    """
    if path.exists() and not (path.is_dir() and is_ours(path)):
        raise UsageError(f"'{path}' is in the way: {else_why}", do="Choose another one: -o")
    work = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        work.mkdir(parents=True)
        yield work
        shutil.rmtree(path, ignore_errors=True)
        work.rename(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
