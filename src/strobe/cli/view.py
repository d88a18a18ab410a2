"""`strobe view [TRACE ...]`: look at runs in the browser. Serves this machine only, by a token, read-only."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from strobe.cli.options import Parser
from strobe.errors import StrobeError, UsageError
from strobe.model.verb import Verb

TYPE_CHECKING = False  # for type checkers; importing `typing` costs more than the rest of this file
if TYPE_CHECKING:
    from strobe.server.library import Source

_DESCRIPTION = """\
Open the timeline and the overview of runs in the browser. The page is served from this machine, works offline, and
only reads the traces. For runs on a machine far away: --remote says how to get there.
"""


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = Parser(prog="strobe view", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument(
        "traces", nargs="*", metavar="TRACE", help="paths, folders of runs, or last (default), last~1, ..."
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any that is free)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.add_argument(
        "--remote", action="store_true", help="print how to look at it from another machine (ssh), open nothing"
    )
    parser.add_argument(
        "--prefix",
        default="",
        metavar="PATH",
        help="path or address under which a proxy shows the page, for the printed address: /node/n17/{port}",
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name that a proxy calls this server by"
    )
    arguments = parser.parse_args(words)
    if not 0 <= arguments.port <= 65535:
        raise UsageError(f"--port: {arguments.port} is no port", do="--port 8888, or without: any that is free")
    return arguments


def run(words: list[str]) -> int:
    """Parse the command line, serve until Ctrl-C. The address is the one line on stdout."""
    arguments = _arguments(words)
    # Imported here: the other verbs and `--help` must not wait for a web server.
    from strobe.server.serve import serve

    def started(address: str, port: int) -> None:
        print(address, flush=True)
        if arguments.remote:
            print(f"strobe: on your machine: {ssh_line(arguments.host, port)}", file=sys.stderr)
            print("strobe: then open the address above there", file=sys.stderr)
        print("strobe: serving until Ctrl-C", file=sys.stderr)
        if not arguments.no_browser and not arguments.remote and _has_browser():
            import webbrowser

            webbrowser.open(address)

    try:
        serve(
            sources(arguments.traces or ["last"]),
            host=arguments.host,
            port=arguments.port,
            prefix=arguments.prefix,
            hosts=arguments.allow_host,
            started=started,
        )
    except OSError as error:
        raise StrobeError(
            f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}",
            do="Choose another port: strobe view --port N",
        ) from error
    return 0


def sources(names: list[str]) -> list[Source]:
    """Return the traces that names mean, each once; a folder of runs means all of them, the newest first.

    Raises StrobeError where there is only one, and nothing of its name.
    """
    from strobe.server.library import Source
    from strobe.store import archive, imports
    from strobe.store.trace import open_trace

    found: dict[Path, Source] = {}
    for name in names:
        try:
            path = archive.find(name)
        except StrobeError:
            if len(names) == 1:
                raise
            path = Path(name)  # the list says what is wrong with it, beside the others
        runs = [] if not path.is_dir() or archive.is_trace(path) else archive.runs(path)
        # A folder with other tools' files in it is one run, also where some of them were opened by themselves before.
        if runs and not imports.knows(path):
            # No pool of processes: many viewers ask at once, and the server's threads share the CPUs.
            found |= {each.resolve(): Source(each, lambda each=each: open_trace(each, jobs=1)) for each in runs}  # type: ignore[misc]
        else:
            found[path.resolve()] = Source(path, lambda path=path: open_trace(path, jobs=1))  # type: ignore[misc]
    return list(found.values())


def ssh_line(host: str, port: int) -> str:
    """Return the command that makes a port of this machine one of the user's; through the login node of a batch job."""
    import getpass
    import socket

    here = socket.getfqdn()
    if here.partition(".")[0] == "localhost":  # what a machine without a domain calls itself
        here = socket.gethostname()
    try:
        user = getpass.getuser() + "@"
    except (KeyError, OSError):  # a container's user without a name
        user = ""
    login = os.environ.get("SLURM_SUBMIT_HOST") or os.environ.get("PBS_O_HOST")
    jump = f"-J {user}{login} " if login and login.partition(".")[0] != here.partition(".")[0] else ""
    inside = "127.0.0.1" if host in ("0.0.0.0", "localhost") else f"[{host}]" if ":" in host else host
    return f"ssh -N -L {port}:{inside}:{port} {jump}{user}{here}"


def _has_browser() -> bool:
    # Without a display, `webbrowser` would start a text browser in this terminal.
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


VERB = Verb("view", "Look at runs in the browser: overview and timeline", run)
