"""A scripted agent: asks `strobe mcp` through the official client, over real stdin and stdout."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.golden.answers import TRACES

STROBE = str(Path(sys.executable).with_name("strobe"))
MOST_CHARACTERS = 4 * 2_000  # of an answer: 2,000 tokens


class Agent:
    """Calls tools, one after the other, and counts the calls."""

    def __init__(self, portal: object, client: object) -> None:
        self._portal, self.client, self.calls = portal, client, 0

    def call(self, tool: str, **arguments: object) -> tuple[str, bool]:
        """Call a tool: its answer, and whether that is an error."""
        self.calls += 1
        result = self._portal.call(self.client.call_tool, tool, arguments)  # type: ignore[attr-defined]
        text = "\n".join(each.text for each in result.content)
        assert len(text) <= MOST_CHARACTERS
        return text, bool(result.is_error)

    def tools(self) -> list[Any]:
        """The tools that there are."""
        return list(self._portal.call(self.client.list_tools).tools)  # type: ignore[attr-defined]

    def ask(self, tool: str, **arguments: object) -> str:
        """Call a tool, which must not refuse."""
        text, is_error = self.call(tool, **arguments)
        assert not is_error, text
        return text

    def rows(self, tool: str, **arguments: object) -> list[dict[str, str]]:
        """Call a tool that answers with a table: its rows."""
        lines = [line.split("\t") for line in self.ask(tool, **arguments).splitlines() if "\t" in line]
        return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]

    def sql(self, trace: str, query: str) -> list[str]:
        """Ask for the one row of a query."""
        head, columns, row = self.ask("sql", trace=trace, query=query).splitlines()
        assert head
        assert columns
        return row.split("\t")


@contextmanager
def agent(places: Sequence[Path], cache: Path | None = None) -> Iterator[Agent]:
    """Start `strobe mcp PLACES` and connect to it."""
    environment = {"STROBE_CACHE": str(cache or os.environ["STROBE_CACHE"])}
    server = StdioServerParameters(command=STROBE, args=["mcp", *map(str, places)], env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(stdio_client(server))) as client:
        yield Agent(portal, client)


def unpacked(folder: Path, *names: str) -> Path:
    """Unpack golden traces into a folder."""
    for name in names:
        with tarfile.open(TRACES / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
    return folder
