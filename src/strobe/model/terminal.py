"""Text for people: the one way to a terminal. Names in traces come from anybody, and a terminal obeys what it is sent.

Control characters, marks that reorder text (bidi) and marks without width are shown as escapes (`\\x1b`). Control
sequences of our own, for bold headings and progress, are written here and nowhere else.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # for type checkers; importing `typing` costs more than this file
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

_LAYOUT = "\n\t"
_ONE_LINE = str.maketrans("\t\r\n", "   ")
_PROGRESS_WIDTH = 70


def visible(text: str) -> str:
    """Return a text with everything that cannot be seen as escapes, but for line breaks and tabs, which are layout."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _LAYOUT else repr(each)[1:-1] for each in text)


def visible_line(text: str) -> str:
    """Return a text as a part of one line: tabs and line breaks are spaces, everything else is as in `visible`."""
    return text if text.isprintable() else visible(text.translate(_ONE_LINE))


class VisibleStream:
    """A text stream for people: what is written to it is made visible. All else is that of `stream`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; return the number of its characters."""
        self.stream.write("\n".join(map(visible, text.split("\n"))))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class for_people:  # noqa: N801 - a context, as contextlib's, whose import costs more
    """While it lasts, what this process prints is made visible."""

    def __enter__(self) -> None:
        self._before = sys.stdout, sys.stderr
        # One that was closed before the start (`>&-`) is None.
        sys.stdout, sys.stderr = (each and VisibleStream(each) for each in self._before)

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._before


def as_it_is(stream: TextIO) -> TextIO:
    """Return a stream that changes nothing: for data, which programs read, and for control sequences of our own."""
    return stream.stream if isinstance(stream, VisibleStream) else stream


def talk(message: str) -> None:
    """Print a message to the user on stderr, so that stdout stays data."""
    if sys.stderr is not None:  # print() would turn to stdout
        print(visible(f"strobe: {message}"), file=sys.stderr)


def write_heading(line: str, stream: TextIO) -> None:
    """Write a line in bold; NO_COLOR and TERM=dumb turn that off."""
    if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        as_it_is(stream).write(f"\x1b[1m{visible(line)}\x1b[0m\n")
    else:
        stream.write(visible(line) + "\n")


def show_progress(text: str) -> None:
    """Write a text of less than 70 characters over what the last line of the terminal shows; "" clears that line."""
    stream = as_it_is(sys.stderr)
    stream.write(f"\r{visible_line(text)}" if text else f"\r{' ' * _PROGRESS_WIDTH}\r")
    stream.flush()


def clear_screen(stream: TextIO) -> None:
    """Clear a terminal, and go on at its top left."""
    as_it_is(stream).write("\x1b[H\x1b[J")
