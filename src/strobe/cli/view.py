"""`strobe view [TRACE]`: look at a run in the browser. Serves this machine only, behind a random token, read-only."""

from __future__ import annotations

import argparse
import os
import sys

from strobe.cli.options import Parser
from strobe.errors import StrobeError
from strobe.model.verb import Verb

_DESCRIPTION = """\
Open the timeline and the overview of a run in the browser. The page is served from this machine, works offline, and
only reads the trace. For a run on a machine far away: forward the port (ssh -L PORT:127.0.0.1:PORT HOST) and open the
printed address here.
"""


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = Parser(prog="strobe view", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument(
        "trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1, ..."
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any that is free)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    return parser.parse_args(words)


def run(words: list[str]) -> int:
    """Parse the command line, serve until Ctrl-C. The address is the one line on stdout."""
    arguments = _arguments(words)
    # Imported here: the other verbs and `--help` must not wait for a web server.
    from strobe.server.serve import serve
    from strobe.store.trace import open_trace

    trace = open_trace(arguments.trace)

    def started(address: str) -> None:
        print(address, flush=True)
        print("strobe: serving until Ctrl-C", file=sys.stderr)
        if not arguments.no_browser and _has_browser():
            import webbrowser

            webbrowser.open(address)

    try:
        serve(trace, host=arguments.host, port=arguments.port, started=started)
    except OSError as error:
        raise StrobeError(
            f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}",
            do="Choose another port: strobe view --port N",
        ) from error
    return 0


def _has_browser() -> bool:
    # Without a display, `webbrowser` would start a text browser in this terminal.
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


VERB = Verb("view", "Look at a run in the browser: overview and timeline", run)
