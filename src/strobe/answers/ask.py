"""Asking an analysis by its name, as the command line, the server and summaries do."""

from __future__ import annotations

from strobe import registry
from strobe.errors import UsageError
from strobe.model.plugins import Analysis
from strobe.tables.table import Table
from strobe.trace.trace import Trace


def ask(trace: Trace, name: str, **options: object) -> Table:
    """Run an analysis; options that are left out have their defaults.

    An empty answer explains itself: its note names what was not recorded. Raises UsageError for an analysis,
    an option or a choice that does not exist.
    """
    if name not in registry.names("analyses"):
        raise UsageError(f"no analysis '{name}'", do=f"Analyses: {', '.join(registry.names('analyses'))}")
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    values: dict[str, object] = {option.name: option.default for option in analysis.options}
    if unknown := set(options) - set(values):
        raise UsageError(f"{name} has no option '{sorted(unknown)[0]}'", do=f"Options: {', '.join(values) or 'none'}")
    values |= options
    for option in analysis.options:
        if option.choices and values[option.name] not in option.choices:
            raise UsageError(
                f"{name} has no '{values[option.name]}' for '{option.name}'", do=f"Choices: {', '.join(option.choices)}"
            )
    table: Table = registry.function(analysis.run)(trace, **values)
    note = table.note if len(table) or table.note else trace.missing(analysis.needs) or "nothing matches"
    shows = table.shows or analysis.shows
    return Table(table.to_arrow(), name=table.name or name, about=table.about, note=note, shows=shows)
