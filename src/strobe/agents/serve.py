"""Serves the tools over MCP: JSON-RPC on stdin and stdout, until stdin ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import Any

import strobe
from strobe.agents import about_runs, about_spans, questions  # noqa: F401  # they make the tools
from strobe.agents.runs import Runs
from strobe.agents.tools import TOOLS, call
from strobe.errors import StrobeError
from strobe.server.http.work_queue import BusyError, LateError, Limits, WithdrawnError, WorkQueue

# Calls wait in one queue: most read spans. What takes longer than a client waits is of no use.
_LIMITS = Limits(slow=2, waiting=512, slow_s=120.0)
# Work that cannot be interrupted may go on so long after the client has left.
_GRACE_S = 2.0
_INSTRUCTIONS = """\
strobe answers questions about recorded runs of Python, GPU and MPI programs. Ask `summary` first, then `findings`; \
`steps` and `step` show where in the run, `spans` and `span` what ran. `analyses` lists what `ask` can answer, `sql` \
has the rest. Handles in answers (step:14, span:2.1207, finding:1) are arguments of other tools. Times are ns."""


def serve(runs: Runs) -> None:
    """Answer a client until it leaves. Raises StrobeError where the package `mcp` is missing."""
    try:
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise StrobeError("agents need the package mcp", do='Install it: pip install "strobe[mcp]"') from error
    # Ctrl-C ends the process at once: nothing else wakes the thread that waits for stdin.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    queue = WorkQueue(_LIMITS)
    server = _server(runs, queue)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        asyncio.run(run())
    except* BrokenPipeError:
        pass  # the client has left in the middle of an answer
    finally:
        queue.close()
        until = time.monotonic() + _GRACE_S
        while queue.unfinished and time.monotonic() < until:
            time.sleep(0.01)
        if queue.unfinished:
            sys.stderr.flush()
            os._exit(0)  # Python would wait for the threads


def _server(runs: Runs, queue: WorkQueue) -> Any:  # of a package that need not be there
    from mcp import types
    from mcp.server import Server

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        only_reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        tools = [
            types.Tool(name=each.name, description=each.description, input_schema=each.schema, annotations=only_reads)
            for each in TOOLS.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        text, is_error = await _answer(runs, queue, asked.name, asked.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    return Server(
        "strobe",
        version=strobe.__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(runs: Runs, queue: WorkQueue, name: str, arguments: dict[str, object]) -> tuple[str, bool]:
    async def gone() -> None:
        await asyncio.Event().wait()  # a call that is withdrawn is cancelled instead

    key = name, repr(sorted(arguments.items()))
    try:
        return await queue.answer(key, call(runs, name, arguments), slow=True, gone=gone)
    except BusyError:
        return "too many calls wait already: ask again in a moment", True
    except LateError:
        return f"the answer takes longer than {_LIMITS.slow_s:g} s: ask about a part of the run", True
    except WithdrawnError:
        return "the server ends", True
