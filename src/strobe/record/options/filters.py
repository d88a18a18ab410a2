"""Rules by which functions are recorded or not: `--include`, `--exclude`, and filter files in Score-P's syntax.

The core asks them once per function, never per call. Imports nothing that the measured program would not import itself.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Rule = tuple[int, bool, str]

PATH, NAME, FILE, REGION = range(4)  # native/python/calls/filter.h: what a pattern is matched against
_BLOCKS = {"SCOREP_FILE_NAMES": FILE, "SCOREP_REGION_NAMES": REGION}
SEVERAL = ("include", "exclude")  # options that hold several patterns, os.pathsep between them


def is_path(pattern: str) -> bool:
    """Whether a pattern means files and folders. One without a slash is a dotted name: `numpy.linalg`, `*.forward`."""
    return os.sep in pattern or pattern.startswith((".", "~"))


def anchored(pattern: str, folder: str) -> str:
    """Return a pattern that means the same from everywhere: relative paths begin in `folder`."""
    if not is_path(pattern) or pattern.startswith("*"):
        return pattern
    return os.path.normpath(os.path.join(folder, os.path.expanduser(pattern)))


def anchored_options(options: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the options of a recording with the paths of filters made absolute: children may start elsewhere."""
    made = dict(options)
    for name in SEVERAL:
        made[name] = os.pathsep.join(anchored(each, folder) for each in options.get(name, "").split(os.pathsep) if each)
    if options.get("filter"):
        made["filter"] = in_folder(options["filter"], folder)
    return made


def in_folder(path: str, folder: str) -> str:
    """Return the path of a file that was named in `folder`; `~` is the user's home."""
    return os.path.join(folder, os.path.expanduser(path))


def rules_of(options: Mapping[str, str]) -> list[Rule]:
    """Return the rules that options (as `anchored_options` leaves them) stand for; a later one wins.

    Raises ValueError for a filter file that cannot be read.
    """
    rules: list[Rule] = []
    for name in SEVERAL:
        for pattern in filter(None, options.get(name, "").split(os.pathsep)):
            rules.append((PATH if is_path(pattern) else NAME, name == "include", pattern))
    if options.get("filter"):
        rules += read_filter_file(options["filter"])
    return rules


def read_filter_file(path: str) -> list[Rule]:
    """Read a filter file of Score-P: blocks SCOREP_FILE_NAMES_BEGIN ... END and SCOREP_REGION_NAMES_BEGIN ... END with
    INCLUDE and EXCLUDE and wildcard patterns, `#` before comments.

    MANGLED is accepted: Python's names have one form only. Raises ValueError with the file, the line and what is wrong.
    """
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the filter {path}: {getattr(error, 'strerror', None) or error}") from None
    rules: list[Rule] = []
    kind = included = None
    opened = ""
    for number, word in _words(lines):
        where = f"{path}, line {number}"
        if kind is None:
            opened = word.removesuffix("_BEGIN")
            if not word.endswith("_BEGIN") or opened not in _BLOCKS:
                raise ValueError(f"{where}: '{word}' begins no block of a filter; {' or '.join(_BLOCKS)}_BEGIN does")
            kind, included = _BLOCKS[opened], None
        elif word == f"{opened}_END":
            kind = None
        elif word in ("INCLUDE", "EXCLUDE"):
            included = word == "INCLUDE"
        elif included is None:
            raise ValueError(f"{where}: '{word}' stands before any INCLUDE or EXCLUDE")
        elif word != "MANGLED":
            rules.append((kind, included, word))
    if kind is not None:
        raise ValueError(f"{path}: {opened}_BEGIN has no {opened}_END")
    return rules


def _words(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The words of a filter file with their lines. A backslash takes the meaning from a space or a `#` behind it."""
    for number, line in enumerate(lines, 1):
        word, at = "", 0
        while at < len(line):
            character = line[at]
            if character == "\\" and at + 1 < len(line):
                # The pattern's own escapes stay as they are.
                word += line[at + 1] if line[at + 1] in " \t#" else line[at : at + 2]
                at += 2
                continue
            if character == "#":
                break
            if character in " \t":
                if word:
                    yield number, word
                word = ""
            else:
                word += character
            at += 1
        if word:
            yield number, word


def filter_file(text: str) -> str:
    """Read the option `filter`. Raises ValueError for a file that is not a filter."""
    if text:
        read_filter_file(text)
    return text
