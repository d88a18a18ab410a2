"""The traces that a server shows. Each is opened when somebody looks at it; one that is broken keeps to itself."""

from __future__ import annotations

import datetime
import gc
import html
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from strobe.api.trace import Trace
from strobe.errors import StrobeError, UsageError
from strobe.present.notebook import table_card
from strobe.server.recent import Recent
from strobe.server.trace_context import TraceContext
from strobe.trace import archive

# Traces that are held open at once: one that nobody looked at for longest is closed, and opened again when asked for.
_MOST_OPEN = 8
_SHOWN_COMMAND = 160

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>{title} – strobe</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }}
body {{ margin: 2rem auto; max-width: 90rem; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; vertical-align: top }}
td {{ overflow-wrap: anywhere }}
</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
_LIST = """\
<table><thead><tr><th>run</th><th>command</th><th>host</th><th>started (UTC)</th><th></th></tr></thead>
<tbody>
{rows}
</tbody></table>"""


@dataclass(frozen=True)
class Source:
    """A trace that can be opened. `open` raises StrobeError with a sentence where it cannot."""

    path: Path
    open: Callable[[], Trace]


class Library:
    """The traces of a server by the names in their addresses."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources: dict[str, Source] = {}
        for source in sources:
            self._sources[self._free_name(source.path)] = source
        self._open = Recent[TraceContext](_MOST_OPEN)

    @property
    def names(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self._sources)

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def opened(self, name: str) -> TraceContext | None:
        """Return a trace that is open already."""
        return self._open.get(name)

    def open(self, name: str) -> TraceContext:
        """Open a trace, and read what its first picture needs. Raises StrobeError where it is broken."""
        source = self._sources[name]
        with _nothing_collected():
            context = TraceContext(source.open(), source.path, name, self.names, self._trace)
            context.warm()
        self._open.put(name, context)
        return context

    def page(self) -> str:
        """Return the list of all traces as a page. Addresses are relative to its own."""
        first = self.names[0]
        rows = (_row(name, source.path, first) for name, source in self._sources.items())
        return _PAGE.format(title="Runs", body=_LIST.format(rows="\n".join(rows)))

    def comparison(self, context: TraceContext, other: str) -> str:
        """Return a page that compares a trace with another one. Addresses are relative to that of the first."""
        table = context.read.ask("compare", other=self._trace(other))
        title = f"{html.escape(context.name)} (A) and {html.escape(other)} (B)"
        return _PAGE.format(title=title, body=f'{table_card(table)}<p><a href="../../../">All runs</a></p>')

    def _trace(self, name: str) -> Trace:
        if name not in self:
            raise UsageError(f"this server shows no run '{name[:_SHOWN_COMMAND]}'", do=f"Runs: {', '.join(self.names)}")
        return (self.opened(name) or self.open(name)).read

    def _free_name(self, path: Path) -> str:
        name = path.name.removesuffix(archive.SUFFIX) or "trace"
        number = 1
        while (free := name if number == 1 else f"{name}-{number}") in self._sources:
            number += 1
        return free


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Leave what is made meanwhile to the last generation of the garbage collector, which looks at it rarely.

    Looking through the objects of 10,000 processes again and again takes as long as to make them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def _row(name: str, path: Path, first: str) -> str:
    link = f'<a href="t/{quote(name, safe="")}/">{html.escape(name)}</a>'
    try:
        if archive.is_trace(path) and not archive.process_files(path):
            return f"<tr><td>{link}</td><td colspan=4>holds no recorded process</td></tr>"
        job = archive.read_job(path) if path.is_dir() else archive.Job()
    except (StrobeError, OSError) as error:
        return f"<tr><td>{link}</td><td colspan=4>{html.escape(str(error))}</td></tr>"
    command = " ".join(job.command)
    command = command if len(command) <= _SHOWN_COMMAND else command[:_SHOWN_COMMAND] + " ..."
    cells = (command, job.host, _date(job.started_unix_ns))
    place = f"t/{quote(first, safe='')}/compare/{quote(name, safe='')}"
    compare = f'<a href="{place}">compare with {html.escape(first)}</a>' if name != first else ""
    return f"<tr><td>{link}</td>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}<td>{compare}</td></tr>"


def _date(unix_ns: int) -> str:
    if unix_ns <= 0:
        return ""
    try:
        return f"{datetime.datetime.fromtimestamp(unix_ns // 10**9, datetime.UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return ""  # a time that no calendar shows
