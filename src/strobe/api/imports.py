"""Opening files of other tools: recognised by their content, imported once into a trace folder, opened from there ever
after (docs/decisions/0009-import.md)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strobe.api.exports import formats
from strobe.api.unfinished_imports import remove_abandoned, work_folder
from strobe.errors import FormatError, TraceError, UsageError
from strobe.formats import known_formats
from strobe.formats.reading.inputs import Input, inputs_of
from strobe.formats.reading.progress import Progress
from strobe.model import manifest
from strobe.model.cache_folder import cache_folder
from strobe.model.plugins import Format, Imported
from strobe.model.private_files import folder_mode, opener
from strobe.model.units import format_bytes
from strobe.trace import user_notes
from strobe.trace.archive import FORMAT_VERSION, SUFFIX, require_utf_8
from strobe.trace.clocks.collective_clocks import alignments
from strobe.trace.processes import job_in_blocks
from strobe.trace.trace import Trace

# What an import writes may change: a cache of another version is made anew.
IMPORT_VERSION = 7
_MOST_KEYS = 8  # that are named of JSON which nothing reads
_BUFFER_BYTES = 64 << 20
_PROPERTIES_BYTES = 1 << 20
# Imports in the user's cache are at most so large together, beside those that were used within a day.
CACHE_BYTES = 10 << 30
_DAY_S = 24 * 3600
_FARTHEST_NS = 1 << 62  # as in native/formats/importing/imported_process.h


@dataclass
class Target:
    """The folder that an import fills."""

    folder: Path
    buffer_bytes: int
    last_number: int = 0

    def next_number(self) -> int:
        """Return the number of the next block file."""
        self.last_number += 1
        return self.last_number


@dataclass
class _File:
    """A file that was read: its name, its format, the numbers of its block files, and its rank."""

    name: str
    format: str
    content: Imported
    processes: range
    rank: int | None

    @property
    def base_ns(self) -> int | None:
        """When its clock was zero; None if that is unknown, or too far away to subtract its times from others."""
        base, content = self.content.base_ns, self.content
        moments = () if base is None else (base, base + content.first_ns, base + content.last_ns)
        return base if all(abs(moment) < _FARTHEST_NS for moment in moments) else None

    def entry(self) -> dict[str, object]:
        """Return its entry in the manifest."""
        content = self.content
        size = len(json.dumps(content.properties))
        return {
            "name": self.name,
            "format": self.format,
            "first_ns": content.first_ns,
            "last_ns": content.last_ns,
            "base_ns": content.base_ns,
            "rank": self.rank,
            "ranks": content.ranks,
            "host": content.host,
            "counters": dict(content.counters),
            "properties": content.properties if size < _PROPERTIES_BYTES else {"too_long": size},
        }


def opened(path: Path, *, cache: Path | None = None, talk: bool = True) -> Path:
    """Return the trace folder of a file (or folder of files) of another tool; import it if nobody has so far.

    The folder lies in `cache`, else in the folder that STROBE_CACHE names, else in the user's cache, where imports that
    nobody opened for long make room; or beside the file (`trace.json.gz.strobe`) if `strobe import` made it there.
    Ctrl-C keeps what has been read by then. Raises FormatError where nothing in it is known, TraceError where it cannot
    be read.
    """
    if not path.name:  # "."
        path = Path(os.path.abspath(path))
    beside = path.with_name(path.name + SUFFIX)
    if cache is None and _manifest(beside) is not None and os.access(path.parent, os.W_OK):
        return imported([path], beside, talk=talk)
    folder = imported([path], _cache_folder(path, cache), talk=talk)
    with suppress(OSError):
        os.utime(folder)  # it is used
    _make_room(folder)
    return folder


def knows(path: Path) -> bool:
    """Return whether a file, or one in a folder, is of another tool that strobe can read."""
    try:
        _recognised(list(inputs_of(path)), [path])
    except FormatError:
        return False
    return True


def imported(paths: Sequence[Path], folder: Path, *, ranks: Sequence[int] | None = None, talk: bool = True) -> Path:
    """Import files into one trace folder, unless it is there and no file has changed since.

    `ranks`: one for each recognised file, in order; else they come from the files, from their names, or from their
    order.
    """
    for path in (*paths, folder):
        require_utf_8(path)
    stamp: list[object] = [*map(_stamp, paths), list(ranks or ())]
    known = _manifest(folder)
    if known is not None and known.get("stamp") == stamp and not known.get("stopped") and _unchanged(known):
        return folder
    if known is None and folder.exists():
        raise TraceError(f"'{folder}' exists already, and is not an imported trace", do="Move it away.")
    inputs = [each for path in paths for each in inputs_of(path)]
    chosen, ignored = _recognised(inputs, paths)
    work = work_folder(folder)
    if ranks is not None and len(ranks) != len(chosen):
        raise UsageError(
            f"{len(ranks)} ranks for {len(chosen)} files", do="Give one number for each file: --ranks 0,1,2,3"
        )
    remove_abandoned(folder.parent)
    shutil.rmtree(work, ignore_errors=True)
    try:
        os.makedirs(folder.parent, folder_mode(), exist_ok=True)
        work.mkdir(folder_mode())
        files, stopped = _import(chosen, Target(work, _BUFFER_BYTES), talk)
        _name_ranks(files, ranks)
        beside = [
            [str(each.path.parent / name), *_state(each.path.parent / name)]
            for each, _ in chosen
            if each.name == str(each.path)
            for name in each.asked
        ]
        _write_job(work, paths, files, {"stopped": stopped, "stamp": stamp, "ignored": ignored, "beside": beside})
        if len(chosen) > 1:
            _align(work)
        job_in_blocks.keep(work)
        if known is not None:
            with suppress(FileNotFoundError):
                shutil.copy2(folder / user_notes.FILE, work)  # nobody can write them again
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # somebody else was faster
            work.rename(folder)
        return folder
    except OSError as error:
        raise TraceError(
            f"cannot import '{paths[0]}': {error.strerror or error}", where=str(error.filename or work)
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _import(chosen: Sequence[tuple[Input, Format]], target: Target, talk: bool) -> tuple[list[_File], bool]:
    """Read every file, and return whether Ctrl-C stopped that."""
    files: list[_File] = []
    read_with_others: set[str] = set()  # files that another one looked up beside it are no traces of their own
    progress = Progress(target.folder, lambda: sum(each.total_bytes() for each, _ in chosen), talk)
    with _stoppable() as stop:
        for source, plugin in chosen:
            if stop.is_set() and files:
                break
            if source.name in read_with_others:
                continue
            source.tick = lambda n: progress.add(n) and not stop.is_set()
            first = target.last_number + 1
            # A bare list of events may be anything: an answer that lacks something reports that.
            content = _read(source, plugin, target)
            read_with_others |= {each.name for each in source.asked.values() if each is not None}
            numbers = range(first, first + content.processes)
            files.append(_File(source.name, plugin.name, content, numbers, content.rank))
        stopped = stop.is_set()
    progress.end("stopped: the part read so far is kept" if stopped else "")
    if not any(file.processes for file in files):
        torn = any(file.content.counters.get("truncated") for file in files)
        ends = "; it ends in the middle" if torn else ""
        raise FormatError(f"'{files[0].name}' holds no event that can be read{ends}")
    return files, stopped


def _read(source: Input, plugin: Format, target: Target) -> Imported:
    assert plugin.read is not None
    try:
        return plugin.read(source, target)
    except ValueError as error:
        raise FormatError(
            f"'{source.name}' cannot be read as {plugin.title}: {' '.join(str(error).split())}"
        ) from error
    finally:
        source.close()


def _recognised(inputs: Sequence[Input], paths: Sequence[Path]) -> tuple[list[tuple[Input, Format]], list[str]]:
    """Return the files that a format knows, and the names of all others."""
    readable: list[Format] = []
    others = (plugin for plugin in formats() if plugin.read is not None)  # loaded only where none of those knows a file
    chosen, ignored = [], []
    for each in inputs:
        try:
            head = each.head()
        except OSError as error:
            raise TraceError(f"cannot read '{each.name}': {error.strerror or error}") from error
        plugin = next((plugin for plugin in readable if plugin.sniff(head)), None)
        while plugin is None and (another := next(others, None)) is not None:
            readable.append(another)
            plugin = another if another.sniff(head) else None
        if plugin is None:
            ignored.append(each.name)
        else:
            chosen.append((each, plugin))
    whole = [Path(each.name).parent for each, plugin in chosen if plugin.whole_folder]
    if whole:
        own = [any(Path(each.name).is_relative_to(folder) for folder in whole) for each, _ in chosen]
        chosen = [each for each, inside in zip(chosen, own, strict=True) if each[1].whole_folder or not inside]
        ignored = [each for each in ignored if not any(Path(each).is_relative_to(folder) for folder in whole)]
    if not chosen:
        _refuse_known(inputs)
        readable.extend(others)
        tried = ", ".join(["strobe", *(plugin.name for plugin in readable)])
        if len(inputs) == 1 and inputs[0].path in paths:
            one = inputs[0]
            what = f"'{one.name}' ({format_bytes(one.size_bytes)}) is not in a known format. Tried: {tried}."
            raise FormatError(f"{what} First bytes: {_first_bytes(one)}")
        inside = f"none of its {len(inputs)} files is in a known format" if inputs else "it holds no file"
        raise FormatError(f"'{paths[0]}' is a folder without a trace, and {inside}. Tried: {tried}")
    return chosen, ignored


def _refuse_known(inputs: Sequence[Input]) -> None:
    """Raise FormatError with the way out where the kind of a file is known, though nothing here reads it."""
    for each in inputs:
        known = known_formats.of(each.head())
        if known is not None:
            what = f"'{each.name}' ({format_bytes(each.size_bytes)}) is {known.title}, which strobe does not read."
            raise FormatError(what, do=known.advice(each.name))


def _name_ranks(files: Sequence[_File], asked: Sequence[int] | None) -> None:
    """Give files of one job their ranks if they do not contain them: by the number in their names, else by order.

    Files of one worker are windows of one process: only the first of them is a rank.
    """
    files = [file for file in files if file.processes]  # others were read as parts of their neighbours
    if asked is None:
        workers = [_worker_of(file.name) for file in files]
        later = [worker != "" and worker in workers[:at] for at, worker in enumerate(workers)]
        for file, is_later in zip(files, later, strict=True):
            file.rank = None if is_later else file.rank
        files = [file for file, is_later in zip(files, later, strict=True) if not is_later]
    known = [file.rank for file in files]
    if asked is None and (len(files) < 2 or (None not in known and len(set(known)) == len(known))):
        return
    numbers = [re.findall(r"(?:rank|proc|worker|process)[-_.]?(\d+)", Path(file.name).name) for file in files]
    by_name = [int(each[-1]) for each in numbers if each]
    ranks = asked or (by_name if len(set(by_name)) == len(files) else range(len(files)))
    for file, rank in zip(files, ranks, strict=False):
        file.rank = rank


def _worker_of(name: str) -> str:
    """Return the worker in a name by PyTorch's tensorboard_trace_handler, WORKER.TIME.pt.trace.json; else ""."""
    found = re.fullmatch(r"(.+)\.\d{13,}\.pt\.trace\.json(?:\.gz)?", name)
    return found[1] if found else ""


def _write_job(work: Path, paths: Sequence[Path], files: Sequence[_File], more: Mapping[str, object]) -> None:
    # If every file knows when its clock was zero, these moments put them on one axis.
    bases = [base for file in files if (base := file.base_ns) is not None]
    shared = min(bases) if len(bases) == len(files) else 0
    offsets = [base - shared for base in bases] if len(bases) == len(files) else [0] * len(files)
    zero = min(file.content.first_ns + offset for file, offset in zip(files, offsets, strict=True))
    processes = {
        f"process-{number}": {
            "file": file.name,
            "rank": file.rank,
            "first_ns": file.content.first_ns,
            "clock_offset_ns": offset,
        }
        for file, offset in zip(files, offsets, strict=True)
        for number in file.processes
    }
    entries = [file.entry() for file in files]
    job = {
        "format_version": FORMAT_VERSION,
        "command": [str(path) for path in paths],
        "host": files[0].content.host,
        "zero_ns": zero,
        "started_unix_ns": shared + zero if shared else 0,
        "imported": {"version": IMPORT_VERSION, "files": entries, "processes": processes, **more},
    }
    _write(work / "job.json", job)


def _write(path: Path, job: Mapping[str, object]) -> None:
    with open(path, "w", encoding="utf-8", opener=opener) as file:
        file.write(manifest.sealed(json.dumps(job, indent=1)))


def _align(work: Path) -> None:
    """Move the clocks of ranks to that of the first, by their collectives; write down how exact that is."""
    path = work / "job.json"
    job = json.loads(path.read_text(encoding="utf-8"))
    processes = job["imported"]["processes"]
    found = alignments(Trace.read(work))
    reference = min((each["rank"] for each in processes.values() if each["rank"] is not None), default=None)
    for each in processes.values():
        alignment = found.get(each["rank"])
        if alignment is None:
            each["clock"] = "the others are measured by it" if each["rank"] == reference else "not compared"
            continue
        moved = alignment.ahead_ns if alignment.worth_it else 0
        each["clock_offset_ns"] -= moved
        each["clock_error_ns"] = alignment.error_ns
        each["clock"] = f"moved by {-moved} ns; {alignment.matches} collectives agree within {alignment.error_ns} ns"
    job["zero_ns"] = min(int(each["first_ns"]) + int(each["clock_offset_ns"]) for each in processes.values())
    _write(path, job)


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        found = job.get("imported")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None


def _stamp(path: Path) -> list[object]:
    """What changes when a file, or a file of a folder, does."""
    try:
        if not path.is_dir():
            state = path.stat()
            return [str(path.resolve()), state.st_size, state.st_mtime_ns, IMPORT_VERSION]
        files = (each for each in sorted(path.rglob("*")) if not each.name.endswith(user_notes.BESIDE))
        states = [each.stat() for each in files if each.is_file()]
    except OSError as error:
        raise TraceError(f"cannot read '{path}': {error.strerror}") from error
    newest = max((state.st_mtime_ns for state in states), default=0)
    return [str(path.resolve()), sum(state.st_size for state in states), newest, len(states), IMPORT_VERSION]


def _state(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:
        return -1, 0
    return state.st_size, state.st_mtime_ns


def _unchanged(known: Mapping[str, Any]) -> bool:
    """Return whether the files beside those that were given are still as they were read."""
    return all(_state(Path(path)) == (size, mtime_ns) for path, size, mtime_ns in known.get("beside") or [])


def _cache_folder(path: Path, cache: Path | None) -> Path:
    path = path.resolve()
    distinct = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    return (cache or Path(cache_folder())) / f"{path.name}-{distinct}{SUFFIX}"


def _make_room(used: Path) -> None:
    """Remove the imports beside one that were not opened for the longest time, as long as all are too large together.

    Those of the last day stay: another process may read them.
    """
    found = []
    with suppress(OSError):
        for folder in used.parent.glob(f"*{SUFFIX}"):
            if folder != used and _manifest(folder) is not None:
                size = sum(each.stat().st_size for each in folder.iterdir())
                found.append((folder.stat().st_mtime, size, folder))
        total = sum(each.stat().st_size for each in used.iterdir()) + sum(size for _, size, _ in found)
        for last_used, size, folder in sorted(found):
            if total > CACHE_BYTES and last_used < time.time() - _DAY_S:
                shutil.rmtree(folder, ignore_errors=True)
                total -= size


def _first_bytes(source: Input) -> str:
    first = source.head()[:8]
    if not first:
        return "none (the file is empty)"
    meaning = {b"\x7fELF": "a program", b"{": "JSON?", b"[": "JSON?", b"SQLite": "SQLite"}
    hint = next((f" ({text})" for prefix, text in meaning.items() if first.startswith(prefix)), "")
    keys = ", ".join(_json_keys(source.head()))
    return first.hex(" ") + hint + (f". Keys: {keys}" if keys else "")


def _json_keys(head: bytes) -> list[str]:
    """Return the first keys of the outermost object of JSON, as far as they are in the head of a file."""
    found, depth = list[str](), 0
    for token in re.finditer(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[\]{}]', head if head.startswith(b"{") else b""):
        if token[0] in b"[]{}":
            depth += 1 if token[0] in b"[{" else -1
        elif depth == 1 and token[2]:
            found.append(token[1].decode(errors="replace"))
    return found[:_MOST_KEYS]


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Ctrl-C sets the event instead of raising, the first time."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_interrupt(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
