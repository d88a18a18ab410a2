"""What people note about a run: notes on its timeline, and its labels. One small JSON file beside the trace.

Several viewers, also of several servers, may change it at once: a change is made to what is in the file by then, and
replaces the file as a whole. Of two changes of one note the later one stays.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strobe.errors import TraceError, UsageError
from strobe.model.cache_folder import cache_folder
from strobe.trace import archive

FILE = "notes.json"
BESIDE = f".{FILE}"  # behind the name of another tool's file
_FORMAT_VERSION = 1
# What bounds the file, which every viewer reads as a whole; in characters where it is text.
MOST_NOTES, MOST_TEXT = 1000, 2000
MOST_LABELS, MOST_LABEL = 20, 60
_MOST_NAME = 200
_KEY = re.compile(r"[0-9a-f]{12}")
# They order what stands beside them, so that a text looks like another one (Unicode TR36).
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Note:
    """A note on a moment (start and end are equal), a range, or a span, in ns since the start of the trace.

    key: names the note in its file. location: the row that it belongs to, None for all. depth: of the span that it is
    on, whose name is `span`; None where it is not on a span. changed_unix_ns: when it was written.
    """

    key: str
    start_ns: int
    end_ns: int
    text: str
    location: int | None
    depth: int | None
    span: str
    changed_unix_ns: int


@dataclass(frozen=True)
class UserNotes:
    """The notes of a run in order of time, and its labels."""

    notes: tuple[Note, ...] = ()
    labels: tuple[str, ...] = ()


def notes_file(path: Path) -> Path:
    """Return where the notes of a run are: in its folder; of another tool's file, beside it (`FILE.notes.json`).

    `path`: a trace folder, or what strobe imports when it is opened. The user's cache does not keep notes: those of
    an import in it are beside the file that it was made from, as long as that exists.
    """
    if not archive.is_trace(path):
        beside = path.with_name(path.name + archive.SUFFIX)
        return beside / FILE if archive.is_trace(beside) else path.with_name(path.name + BESIDE)
    if path.resolve().parent == Path(cache_folder()).resolve():
        stamp = archive.read_job(path).imported.get("stamp") or []
        sources = [Path(each[0]) for each in stamp if isinstance(each, list) and each and isinstance(each[0], str)]
        if len(sources) == 1 and sources[0].exists():
            return sources[0].with_name(sources[0].name + BESIDE)
    return path / FILE


def read_notes(file: Path) -> UserNotes:
    """Read what is noted; nothing where there is no file. Raises TraceError with one sentence where it is damaged."""
    try:
        text = file.read_text(encoding="utf-8")
        return _notes_of(json.loads(text)) if text else UserNotes()  # empty: somebody is writing the first note
    except FileNotFoundError:
        return UserNotes()
    except OSError as error:
        raise TraceError(f"the notes in '{file}' cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        do = "Move the file away to begin anew; the trace itself is intact."
        raise TraceError(f"the notes in '{file}' cannot be read: the file is damaged", do=do) from error


def change_notes(file: Path, change: Callable[[UserNotes], UserNotes]) -> UserNotes:
    """Change what is noted, and return it; the file is replaced at once, and removed where nothing is left.

    Raises UsageError where the file cannot be written, TraceError where it is damaged, and what `change` raises.
    """
    try:
        with _locked(file):
            before = read_notes(file)
            after = change(before)
            if after == UserNotes():
                file.unlink()
            elif after != before:
                _write(file, after)
            return after
    except OSError as error:
        why = error.strerror or str(error)
        do = "Copy the trace to a folder where you may write."
        raise UsageError(f"the note cannot be kept in '{file}': {why}", do=do) from error


def with_note(raw: Mapping[str, object]) -> Callable[[UserNotes], UserNotes]:
    """Return the change that adds a note, or replaces the one with the same key; `raw`: its fields as JSON has them.

    Raises UsageError for a field that is not as it must be.
    """
    try:
        note = _note(raw, str(raw.get("key") or secrets.token_hex(6)), time.time_ns())
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"this is not a note: {error}") from error

    def change(known: UserNotes) -> UserNotes:
        others = [each for each in known.notes if each.key != note.key]
        if len(others) >= MOST_NOTES:
            raise UsageError(f"a run has at most {MOST_NOTES} notes", do="Delete some first.")
        return replace(known, notes=_in_order([*others, note]))

    return change


def without_note(key: str) -> Callable[[UserNotes], UserNotes]:
    """Return the change that deletes a note; nothing happens where another viewer deleted it."""
    return lambda known: replace(known, notes=tuple(each for each in known.notes if each.key != key))


def with_labels(labels: Sequence[object]) -> Callable[[UserNotes], UserNotes]:
    """Return the change that gives a run these labels instead of those it has. Raises UsageError for bad ones."""
    texts = tuple(dict.fromkeys(filter(None, (plain_text(str(each)) for each in labels))))
    if len(texts) > MOST_LABELS or any(len(each) > MOST_LABEL for each in texts):
        raise UsageError(f"a run has at most {MOST_LABELS} labels of at most {MOST_LABEL} characters")
    return lambda known: replace(known, labels=texts)


def plain_text(text: str) -> str:
    """Return a text as one paragraph without control characters, halves of characters and changes of direction."""
    kept = (
        " " if each.isspace() else each
        for each in text
        if each.isspace() or (unicodedata.category(each) not in ("Cc", "Cs") and each not in _DIRECTIONS)
    )
    return " ".join("".join(kept).split())


def _notes_of(raw: Any) -> UserNotes:
    version = int(raw["format_version"])
    if version > _FORMAT_VERSION:
        raise TraceError(f"the notes have format {version}; this strobe reads up to {_FORMAT_VERSION}", do="Update it.")
    notes = [_note(each, each["key"], int(each["changed_unix_ns"])) for each in raw["notes"]]
    labels = tuple(plain_text(str(each)) for each in raw["labels"])
    return UserNotes(_in_order(notes), labels)


def _in_order(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(sorted(notes, key=lambda note: (note.start_ns, note.end_ns, note.key)))


def _note(raw: Mapping[str, object], key: str, changed_unix_ns: int) -> Note:
    if not _KEY.fullmatch(key):
        raise ValueError("its key is not 12 hexadecimal digits")
    start_ns, end_ns = (archive.whole_number(raw[name], 0) for name in ("start_ns", "end_ns"))
    if start_ns is None or end_ns is None or end_ns < start_ns:
        raise ValueError("it has no time: start_ns and end_ns are whole numbers from 0 on, in this order")
    text = plain_text(str(raw["text"]))
    if not text or len(text) > MOST_TEXT:
        raise ValueError(f"its text has {len(text)} characters, not 1 to {MOST_TEXT}")
    location, depth = (_number_or_none(raw, name) for name in ("location", "depth"))
    if depth is not None and location is None:
        raise ValueError("it is on a span, but on no row")
    span = "" if depth is None else plain_text(str(raw.get("span", "")))[:_MOST_NAME]
    return Note(key, start_ns, end_ns, text, location, depth, span, changed_unix_ns)


def _number_or_none(raw: Mapping[str, object], name: str) -> int | None:
    if raw.get(name) is None:
        return None
    number = archive.whole_number(raw[name], 0)
    if number is None:
        raise ValueError(f"{name} is not a whole number from 0 on")
    return number


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Let nobody else change the notes meanwhile.

    The lock is on the file itself, which every change replaces: whoever waited for an earlier one tries again.
    """
    while True:
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            if _is_still(file, opened):
                yield
                return
        finally:
            os.close(opened)


def _is_still(file: Path, opened: int) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), file.stat())
    except FileNotFoundError:
        return False


def _write(file: Path, noted: UserNotes) -> None:
    work = file.with_name(f".{file.name}.writing-{os.getpid()}")
    body = {"format_version": _FORMAT_VERSION, "labels": noted.labels, "notes": [asdict(note) for note in noted.notes]}
    try:
        work.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        work.replace(file)
    finally:
        work.unlink(missing_ok=True)
