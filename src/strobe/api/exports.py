"""Writing a trace to files of other tools: which format is meant, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from strobe import registry
from strobe.errors import StrobeError, UsageError
from strobe.model.plugins import Format
from strobe.trace.archive import require_utf_8
from strobe.trace.trace import Trace


def formats() -> Iterator[Format]:
    """Yield every format; each is loaded when its turn comes."""
    for name in registry.names("formats"):
        plugin = registry.load("formats", name)
        assert isinstance(plugin, Format)
        yield plugin


def writers() -> dict[str, Format]:
    """Return the formats that can be written, by name."""
    return {plugin.name: plugin for plugin in formats() if plugin.write is not None}


def format_for(path: Path | None, name: str) -> Format:
    """Return the format that a name, or else the suffix of a path, means."""
    known = writers()
    if name:
        if name not in known:
            raise UsageError(f"no format '{name}' to export to", do=f"Formats: {', '.join(sorted(known))}")
        return known[name]
    fitting = [each for each in known.values() if path is not None and path.name.endswith(each.suffixes)]
    if not fitting:
        raise UsageError("no format to export to was given", do=f"Use --to with one of: {', '.join(sorted(known))}")
    return fitting[0]


def export(trace: Trace, path: Path, to: str, options: Mapping[str, object]) -> list[str]:
    """Write a trace in a format; return sentences about what that cannot hold."""
    require_utf_8(path)
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
