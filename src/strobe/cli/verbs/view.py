"""`strobe view [TRACE ...]`: view runs in the browser. Serves this machine only, with a token, read-only."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from functools import partial
from pathlib import Path

from strobe.cli.options import reading
from strobe.errors import StrobeError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

TYPE_CHECKING = False  # for type checkers; importing `typing` costs more than the rest of this file
if TYPE_CHECKING:
    from strobe.server.http.trace_library import Source

_DESCRIPTION = """\
Open the timeline and the overview of runs in the browser. The page is served from this machine, works offline, and
only reads the traces. For traces on another machine, --remote prints the command that reaches it.
"""


def origin(text: str) -> str:
    """Read an origin, or a scheme alone (`vscode-webview:`). Raises ValueError for what is neither."""
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*:(//[a-zA-Z0-9.\[\]:-]+)?", text):
        raise ValueError(f"'{text}' is not an origin, for example http://localhost:8888")
    return text


_OPTIONS = (
    Option("port", "Port to listen on (0: the last one, if it is free).", int, 0, least=0, most=65535, metavar="PORT"),
    Option("host", "Address to listen on. The default serves this machine only.", default="127.0.0.1", metavar="HOST"),
    Option("no_browser", "Print the address without opening a browser.", bool, False),
    Option("remote", "Print how to view the page from another machine (ssh); open nothing.", bool, False),
    Option(
        "prefix",
        "Path or address under which a proxy serves the page, for the printed address: /node/n17/{port}.",
        default="",
        metavar="PATH",
    ),
    Option("allow_host", "Name by which a proxy addresses this server. Can be repeated.", many=",", metavar="NAME"),
    Option(
        "allow_frame",
        "Origin of pages that may show this one in a frame: http://localhost:8888. Can be repeated.",
        many=",",
        parse=origin,
        metavar="ORIGIN",
    ),
    Option("until_eof", "Serve until standard input ends, at an address that ends with it: for programs.", bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line, serve until Ctrl-C. The address is the one line on stdout."""
    reader = reading("view", _DESCRIPTION, _OPTIONS, trace=False)
    reader.add_argument(
        "traces", nargs="*", metavar="TRACE", help="Paths, folders of runs, or last (default), last~1, ..."
    )
    arguments = reader.parse_args(words)
    # Imported here, so that `--help` does not import a web server.
    from strobe.server.http.serve import serve

    def started(address: str, launch: str, port: int) -> None:
        print(address, flush=True)
        if arguments.until_eof:
            threading.Thread(target=_end_with_input, daemon=True).start()
        if arguments.remote:
            talk(f"on your machine: {ssh_line(arguments.host, port)}")
            talk("then open the address above there")
        talk("serving until Ctrl-C")
        if not arguments.no_browser and not arguments.remote and _has_browser():
            import webbrowser

            webbrowser.open(launch)

    try:
        serve(
            sources(arguments.traces or ["last"]),
            host=arguments.host,
            port=arguments.port,
            prefix=arguments.prefix,
            hosts=arguments.allow_host,
            frames=arguments.allow_frame,
            lasting=not arguments.until_eof,
            started=started,
        )
    except OSError as error:
        raise StrobeError(
            f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}",
            do="Choose another port: strobe view --port N",
        ) from error
    return 0


def sources(names: list[str]) -> list[Source]:
    """Return the traces of names, each once; a folder of runs stands for all of them, the newest first.

    Raises StrobeError if there is only one name, and no trace of that name.
    """
    from strobe.api import imports
    from strobe.api.trace import open_trace
    from strobe.server.http.trace_library import Source
    from strobe.trace import archive

    found: dict[Path, Source] = {}
    for name in names:
        try:
            path = archive.find(name)
        except StrobeError:
            if len(names) == 1:
                raise
            path = Path(name)  # the page lists it with its error, beside the others
        runs = [] if not path.is_dir() or archive.is_trace(path) else archive.runs(path)
        # A folder with files of other tools is one run, even if some of them were opened individually before.
        for each in runs if runs and not imports.knows(path) else [path]:
            # No pool of processes: many viewers ask at once, and the server's threads share the CPUs.
            found[each.resolve()] = Source(each, partial(open_trace, each, jobs=1))
    return list(found.values())


def ssh_line(host: str, port: int) -> str:
    """Return the ssh command that forwards a port of this machine, through the login node of a batch job."""
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


def _end_with_input() -> None:
    with contextlib.suppress(OSError, ValueError):  # closed already
        sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)


def _has_browser() -> bool:
    # Without a display, `webbrowser` would start a text browser in this terminal.
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


VERB = Verb("view", "View runs in the browser: overview and timeline", run)
