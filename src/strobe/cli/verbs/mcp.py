"""`strobe mcp [FOLDER|TRACE ...]`: lets an agent ask about runs, over MCP on stdin and stdout. Read-only."""

from __future__ import annotations

import sys

from strobe.cli.options import reading
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Serve tools with which an agent (Claude Code, an editor, ...) asks about runs, over the Model Context Protocol on stdin
and stdout, until stdin ends. Only the named folders and traces are read, and nothing is written.
Needs: pip install "strobe[mcp]". How to add it to an agent: docs/how-to/agents.md.
"""


def run(words: list[str]) -> int:
    """Parse the command line, serve until the client leaves."""
    reader = reading("mcp", _DESCRIPTION, trace=False)
    reader.add_argument(
        "places", nargs="*", default=["."], metavar="FOLDER|TRACE", help="What may be read (default: .)."
    )
    arguments = reader.parse_args(words)
    # Imported here, so that `--help` does not import them.
    from strobe.agents.runs import Runs
    from strobe.agents.serve import serve

    runs = Runs(arguments.places)
    if sys.stdin.isatty():
        talk("waiting for an agent on stdin, until Ctrl-C; usually a client starts this (docs/how-to/agents.md)")
    serve(runs)
    return 0


VERB = Verb("mcp", "Let an agent ask about runs, over MCP", run)
