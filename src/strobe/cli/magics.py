"""Magics of Jupyter and IPython (`%load_ext strobe`): `%%strobe` records a cell, `%strobe_view` embeds the page."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shlex
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from IPython.core.error import UsageError as MagicError
from IPython.core.inputtransformer2 import cell_magic as as_cell_magic
from IPython.core.interactiveshell import InteractiveShell

import strobe
from strobe.api.trace import open_trace
from strobe.cli.options import Parser, add_options, verbatim
from strobe.cli.verbs.run import add_recording_options, given, with_joined_trace
from strobe.errors import StrobeError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.present.notebook import framed_card, trace_card
from strobe.present.summary_text import text_of
from strobe.record.options.all_options import OPTIONS
from strobe.trace.trace import Trace

_RECORD = """\
Record the rest of this cell, and show where its time went. The cell itself runs as it does without: its output, result
and errors are the same. By default every step is kept (--keep all); the other options are those of strobe run.
"""
_VIEW = """\
Embed the page of a trace in the notebook. TRACE is a variable, a path, or last (default: what %%strobe recorded last).
"""
_NAME = Option("name", "Variable that becomes the trace.", default="", also=("-n",), metavar="NAME")
_HEIGHT = Option("height", "Height of the page in pixels.", int, 600, least=200, most=4000, metavar="PIXELS")
# Each is a process of about 100 MB: the page that was embedded before all others stops.
_MOST_PAGES = 4


@dataclass(frozen=True)
class Place:
    """Where the browser finds a server of this machine. `path`: of a proxy on the notebook's own origin, or empty."""

    path: str
    options: tuple[str, ...]


class StrobeMagics:
    """The magics, the recording of the current cell, and the servers of embedded pages."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self._recording: strobe.record | None = None
        self._name = ""
        self._last: str | Path = "last"
        self._pages: dict[Path, tuple[subprocess.Popen[str], str]] = {}

    def record_rest(self, line: str) -> None:
        """Record the rest of this cell, and show where its time went; `%strobe --help` lists the options."""
        parser = _parser("strobe", _RECORD)
        add_options(parser, [_NAME])
        add_recording_options(parser)
        arguments = _read(parser, with_joined_trace(_words(line)))
        if arguments is None:
            return
        if self._recording is not None:
            raise MagicError("this cell is being recorded already: remove one of the two %%strobe")
        if arguments.name and not arguments.name.isidentifier():
            raise MagicError(f"'{arguments.name}' cannot be the name of a variable")
        options = {OPTIONS[name].keyword: text for name, text in given(arguments).items()}
        try:
            recording = strobe.record(**options)
            recording.__enter__()
        except (ValueError, StrobeError) as error:
            raise MagicError(str(error)) from None
        self._name, self._recording = arguments.name, recording
        self.shell.events.register("post_run_cell", self._ended)

    def record_cell(self, line: str, cell: str) -> None:
        """Record this cell, and show where its time went; `%strobe --help` lists the options."""
        self.record_rest(line)
        self.shell.run_cell(cell)

    def _ended(self, _: object = None) -> None:
        """The cell has ended, whether with a result, an error or an interrupt: show the card below its output."""
        recording, self._recording = self._recording, None
        self.shell.events.unregister("post_run_cell", self._ended)
        if recording is None:
            return
        recording.__exit__(None, None, None)
        if recording.path is None:
            talk("nothing was recorded: STROBE_DISABLE is set")
        elif strobe.current() is not None:
            talk("this cell is a part of what `strobe run` records; that trace is complete when the kernel ends")
        else:
            self._show(recording.path)

    def _show(self, path: str) -> None:
        try:
            trace = open_trace(path)
            self._display(trace, trace_card(trace, [f"%strobe_view shows its timeline; saved in {path}"]))
        except StrobeError as error:
            talk(str(error))
            return
        self._last = trace.path
        if self._name:
            self.shell.push({self._name: trace})

    def _display(self, trace: Trace, card: str) -> None:
        self.shell.display_pub.publish({"text/html": card, "text/plain": text_of(trace)})

    def embed(self, line: str) -> None:
        """Embed the page of a trace: `%strobe_view [TRACE] [--height PIXELS]`."""
        parser = _parser("strobe_view", _VIEW)
        parser.add_argument("trace", nargs="?", metavar="TRACE")
        add_options(parser, [_HEIGHT])
        arguments = _read(parser, _words(line))
        if arguments is None:
            return
        if strobe.current() is not None:
            raise MagicError("the page cannot be embedded while this kernel is recorded: use another cell")
        try:
            named = self.shell.user_ns.get(arguments.trace)
            trace = named if isinstance(named, Trace) else open_trace(arguments.trace or self._last)
            in_terminal = not hasattr(self.shell, "kernel")
            place = Place("", ()) if in_terminal else _place(self.shell.user_ns)
            address = "" if place is None else self._address(trace.path, place)
            if in_terminal:
                print(address)
                return
            shown = framed_card(trace, address, arguments.height, proxied=bool(place and place.path))
            self._display(trace, shown)
        except StrobeError as error:
            raise MagicError(str(error)) from None

    def _address(self, path: Path, place: Place) -> str:
        """Return the address of the page of a trace; a server is started where there is none."""
        if path in self._pages and self._pages[path][0].poll() is None:
            return self._pages[path][1]
        while len(self._pages) >= _MOST_PAGES:
            self._pages.pop(next(iter(self._pages)))[0].terminate()
        # A process of its own: the page answers while a cell computes. In a session of its own: an interrupt of the
        # kernel is not meant for it. It ends when this process, which holds the other end of the pipe, does.
        command = [sys.executable, "-m", "strobe", "view", str(path), "--no-browser", "--until-eof", *place.options]
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=none, text=True, start_new_session=True)
        assert server.stdout is not None
        address: str = server.stdout.readline().strip()
        if not address:
            raise StrobeError("the server of the page did not start", do=f"Its reason: strobe view {path}")
        address = (urlsplit(address).path if place.path else address) + "#page=timeline"
        self._pages[path] = server, address
        return address


def _parser(magic: str, description: str) -> Parser:
    parser = verbatim(magic, description)
    parser.prog = f"%{magic}"
    return parser


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise MagicError(f"the options cannot be read: {error}") from None


def _read(parser: Parser, words: list[str]) -> argparse.Namespace | None:
    """Return the options of a magic; None where help was asked for, and printed."""
    try:
        return parser.parse_args(words)
    except SystemExit:
        return None
    except StrobeError as error:
        raise MagicError(str(error)) from None


def _place(variables: dict[str, Any]) -> Place | None:
    """Return where the notebook's browser finds a server of this machine; None where that is not known.

    A Jupyter server on this machine has written a file about itself, and has jupyter-server-proxy if that path is
    something: whoever has not logged in is then refused in another way than by 404 (with a slash at its end, any path
    is). VS Code shows outputs in pages of its own, on the user's machine, and forwards ports of a remote one.
    """
    from jupyter_core.paths import jupyter_runtime_dir

    process = os.environ.get("JPY_PARENT_PID") or os.getppid()
    try:
        jupyter = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{process}.json").read_text(encoding="utf-8"))
        url, base = urlsplit(jupyter["url"]), str(jupyter["base_url"])
    except (OSError, ValueError, KeyError):
        if "__vsc_ipynb_file__" in variables:
            return Place("", ("--allow-frame", "vscode-webview:", "--allow-frame", "vscode-file:"))
        return None
    if _is_there(url.scheme, url.netloc, f"{base}proxy/9"):
        path = f"{base}proxy/{{port}}"
        return Place(path, ("--prefix", path, "--allow-host", "*"))  # the names of a hub are not known here
    origins = {f"{url.scheme}://{name}:{url.port}" for name in (url.hostname, "localhost", "127.0.0.1")}
    return Place("", tuple(word for origin in sorted(origins) for word in ("--allow-frame", origin)))


def _is_there(scheme: str, host: str, path: str) -> bool:
    # Nothing is sent that others may not read, so the certificate, which is often self-made, does not matter.
    connection = (
        http.client.HTTPSConnection(host, timeout=5, context=ssl._create_unverified_context())
        if scheme == "https"
        else http.client.HTTPConnection(host, timeout=5)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status != 404
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _record_rest_of_cell(lines: list[str]) -> list[str]:
    """Replace `%%strobe OPTIONS` by `%strobe OPTIONS`, so that the cell runs as a cell does: line numbers, `await`, its
    result and its errors are the same. What follows may be a cell magic, too. An empty cell is left to IPython, which
    refuses it.
    """
    words = lines[0].split(maxsplit=1) if len(lines) > 1 else []
    if not words or words[0] != "%%strobe" or not "".join(lines[1:]).strip():
        return lines
    options = words[1].strip() if len(words) > 1 else ""
    return [f"get_ipython().run_line_magic('strobe', {options!r})\n", *as_cell_magic(_record_rest_of_cell(lines[1:]))]


def register(shell: InteractiveShell) -> None:
    """Register the magics in a shell, and what lets `%%strobe` leave the cell as it is."""
    magics = StrobeMagics(shell)
    shell.register_magic_function(magics.record_rest, "line", "strobe")
    shell.register_magic_function(magics.record_cell, "cell", "strobe")
    shell.register_magic_function(magics.embed, "line", "strobe_view")
    if _record_rest_of_cell not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(_record_rest_of_cell)
