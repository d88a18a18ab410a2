"""The trace folder `NAME.strobe/`: its files, its manifest job.json, and the names by which people call runs."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.errors import TraceError, UsageError
from strobe.model import manifest
from strobe.model.units import format_bytes

SUFFIX = ".strobe"
FileState = tuple[str, int, int]  # name, bytes, time of the last change (ns)
FORMAT_VERSION = 1
_TEXTS = ("job.json", "notes.txt", "symbols.json", "summary.json", "notes.json", "clocks.json")
_MOST_TEXT = 256 << 20  # bytes of one of them


@dataclass(frozen=True)
class ProcessFiles:
    """Files of one process. `rings` exists while it runs, and after a kill until it is recovered."""

    pid: int
    blocks: Path
    rings: Path | None

    @property
    def tiles(self) -> Path:
        """Where its tiles are, once a picture was drawn."""
        return self.blocks.with_suffix(".tiles")


@dataclass(frozen=True)
class Job:
    """The contents of job.json: how the run was started, and how it ended.

    `zero_ns` is CLOCK_MONOTONIC at the start: the zero of every time in the trace. `ended` holds `exit_code` or
    `signal`, and `ended_ns`, once the run is over. `imported` describes the files that a trace was imported from, and
    `processes` has notes by name of the block file: `rank`, `clock_offset_ns`. `node` is the node of the trace's clock,
    `wall` a reading of the time of day (trace/clocks/node_clocks.py). `machine` has the model
    of its `cpu` and the version of NVIDIA's `driver`. `flight` is of a trace of a flight recorder: `reason` and `event`
    for which it was written, and `left_out_ns` of the run before its zero.
    """

    command: tuple[str, ...] = ()
    working_directory: str = ""
    host: str = ""
    zero_ns: int | None = None
    started_unix_ns: int = 0
    format_version: int = FORMAT_VERSION
    ended: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    processes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    imported: Mapping[str, Any] = field(default_factory=dict)
    node: str = ""
    wall: tuple[int, int, int] | None = None
    machine: Mapping[str, str] = field(default_factory=dict)
    flight: Mapping[str, object] = field(default_factory=dict)
    lost: str = ""  # what is unknown of the run, because the manifest is damaged; a sentence


def read_job(folder: Path) -> Job:
    """Read job.json; where it is missing or damaged, what the block files hold of it.

    A folder without either still opens: its zero is then the start of its first process. Raises TraceError if the file
    may not be read, or if the trace has a later version.
    """
    path = folder / "job.json"
    require_files(folder)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = None
    except OSError as error:
        raise TraceError(f"cannot read '{path}': {error.strerror or error}") from error
    if data is not None and (job := sound_job(data, folder)) is not None:
        return job
    from strobe.trace.processes import job_in_blocks  # which reads them by means of this module

    try:
        if kept := job_in_blocks.find(folder):
            return _job(kept, folder)
    except _NOT_A_JOB:
        pass
    return Job(lost="" if data is None else "job.json is damaged: times count from the start of the first process")


def require_files(folder: Path) -> None:
    """Raise TraceError for what cannot be read to its end in a trace folder: a pipe, a device, a text without one."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            is_text = entry.name in _TEXTS
            if not (entry.is_file(follow_symlinks=False) and not is_text) and (why := _why_unreadable(entry, is_text)):
                raise TraceError(f"'{entry.name}' {why}", where=str(folder), do="Move it away; the rest may be sound.")


def _why_unreadable(entry: os.DirEntry[str], is_text: bool) -> str:
    try:
        state = entry.stat()
    except FileNotFoundError:
        return ""  # a link to nothing, or a file that its writer has renamed
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
        return "is a pipe, a socket or a device, not a file"
    if is_text and state.st_size > _MOST_TEXT:
        return f"has {format_bytes(state.st_size)}, more than strobe writes"
    return ""


_NOT_A_JOB = (TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError)


def sound_job(data: bytes, folder: Path) -> Job | None:
    """Return what the bytes of job.json hold; None if they are damaged."""
    try:
        text = data.decode()
        return _job(json.loads(text), folder) if manifest.is_sound(text) else None
    except _NOT_A_JOB:
        return None


def _job(raw: Mapping[str, Any], folder: Path) -> Job:
    version = int(raw.get("format_version", FORMAT_VERSION))
    if version > FORMAT_VERSION:
        raise TraceError(
            f"'{folder}' has trace format {version}; this strobe reads up to {FORMAT_VERSION}", do="Update strobe."
        )
    zero = raw.get("zero_ns")
    wall: Sequence[Any] = raw.get("wall") or ()
    imported = dict(raw.get("imported") or {})
    if not all(
        isinstance(file["name"], str) and isinstance(file["format"], str) for file in imported.get("files") or []
    ):
        raise ValueError("a file has no name")
    return Job(
        command=tuple(sound_text(word) for word in raw.get("command", ())),
        working_directory=sound_text(raw.get("working_directory", "")),
        host=sound_text(raw.get("host", "")),
        zero_ns=_fitting(zero) if zero is not None else None,
        started_unix_ns=_fitting(raw.get("started_unix_ns", 0)),
        format_version=version,
        ended=dict(raw.get("ended") or {}),
        settings=dict(raw.get("settings") or {}),
        processes={name: dict(note) for name, note in (imported.get("processes") or {}).items()},
        imported=imported,
        node=sound_text(raw.get("node", "")),
        wall=(_fitting(wall[0]), _fitting(wall[1]), _fitting(wall[2])) if len(wall) == 3 else None,
        machine={sound_text(name): sound_text(value) for name, value in (raw.get("machine") or {}).items()},
        flight=dict(raw.get("flight") or {}),
        lost=sound_text(raw.get("lost", "")),
    )


def sound_text(value: object) -> str:
    """Return a text that UTF-8 can hold: JSON can have halves of characters, which tables and terminals refuse."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _fitting(value: Any) -> int:
    number = int(value)
    if abs(number) >= 1 << 62:
        raise ValueError("a time that no clock shows")
    return number


def process_files(folder: Path) -> list[ProcessFiles]:
    """Find the files of every process in a trace folder, by pid."""
    # One look at the folder: a job has 10 000 processes.
    names, found = {*os.listdir(folder)} if folder.is_dir() else set[str](), []
    for name in sorted(fnmatch.filter(names, "process-*.blocks")):
        stem = name.removesuffix(".blocks")
        digits = re.search(r"\d+", stem)
        pid = int(digits[0]) if digits else 0
        rings = folder / f"{stem}.rings" if f"{stem}.rings" in names else None
        found.append(ProcessFiles(pid, folder / name, rings))
    return found


def sizes(files: Sequence[ProcessFiles], known: Sequence[FileState] = ()) -> list[int]:
    """Return the bytes on disk of each process of a folder: its blocks, their index and tiles.

    Rings are memory that happens to have a name. `known`: the states of the files, where they were asked for already.
    """
    found = {name: size for name, size, _ in known or states(files[0].blocks.parent)} if files else {}
    in_parts: dict[str, int] = {}  # of a flight recorder: process-N.blocks.000007
    for name, size in found.items():
        if ".blocks." in name:
            stem = name[: name.index("blocks.")]
            in_parts[stem] = in_parts.get(stem, 0) + size
    stems = (each.blocks.name.removesuffix("blocks") for each in files)
    return [
        in_parts.get(stem, 0) + sum(found.get(stem + kind, 0) for kind in ("blocks", "index", "tiles"))
        for stem in stems
    ]


def states(folder: Path) -> list[FileState]:
    """Return name, bytes, and time of the last change (ns) of each file of a folder, by name."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # of another process that builds tiles
                state = entry.stat()
                found.append((entry.name, state.st_size, state.st_mtime_ns))
    return sorted(found)


def notes(folder: Path) -> list[str]:
    """Return the notes of Pythons that could not record themselves, a sentence each, each sentence once."""
    try:
        lines = (folder / "notes.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        return list(dict.fromkeys(lines))
    except OSError:
        return []


def runs(folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Return the traces in a folder, newest first."""
    found = [path for path in Path(folder).glob(f"*{SUFFIX}") if path.is_dir()]
    return sorted(found, key=_started, reverse=True)


def require_utf_8(path: str | os.PathLike[str]) -> None:
    """Raise TraceError for a path that is not in UTF-8: the core, which opens files, takes no other."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise TraceError(f"the path '{path}' is not in UTF-8", do="Give it another name, or a relative path.") from None


def find(name: str | os.PathLike[str], folder: str | os.PathLike[str] = ".") -> Path:
    """Return the path of a name: a path, `last` (newest run in `folder`), or `last~2` (third newest).

    A file in a trace folder stands for the folder; any other file is returned as it is: see `is_trace`.
    """
    require_utf_8(name)
    try:
        return _find(os.fspath(name), folder)
    except OSError as error:
        raise TraceError(f"cannot look at '{name}': {error.strerror or error}") from error


def _find(name: str, folder: str | os.PathLike[str]) -> Path:
    match = re.fullmatch(r"last(?:~(\d+))?", name)
    path = Path(name)
    if match and not _exists(path):
        found, back = runs(folder), int(match[1] or 0)
        if back >= len(found):
            have = f"there are {len(found)} runs" if found else f"this folder has no run (*{SUFFIX})"
            raise UsageError(f"no run '{name}': {have}", do="Record one: strobe run SCRIPT")
        return found[back]
    if not _exists(path):
        with_suffix = path.with_name(path.name + SUFFIX)
        if path.name and with_suffix.is_dir():
            return with_suffix
        known = ", ".join(run.name for run in runs(folder)[:5])
        raise TraceError(f"no such trace: '{path}'", do=f"Runs in this folder: {known}" if known else "")
    if path.is_file() and (path.parent.name.endswith(SUFFIX) or (path.parent / "job.json").exists()):
        return path.parent
    return path


def _exists(path: Path) -> bool:
    """Whether something is there. Raises OSError where nobody may look; Path.exists() does not, from 3.14 on."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def source_of(job: Job) -> str:
    """Return in words which files of another tool a trace was imported from, "" if strobe recorded it."""
    files = job.imported.get("files") or []
    if not files:
        return ""
    names = [Path(file["name"]).name for file in files]
    shown = names[0] if len(names) == 1 else f"{len(names)} files, {names[0]} to {names[-1]}"
    return f"imported from {shown} ({files[0]['format']})"


def is_trace(path: Path) -> bool:
    """Whether this is a trace folder of ours, rather than something to import."""
    return path.is_dir() and (path.name.endswith(SUFFIX) or (path / "job.json").exists() or bool(process_files(path)))


def _started(folder: Path) -> int:
    try:
        started = read_job(folder).started_unix_ns
    except TraceError:
        started = 0
    return started or folder.stat().st_mtime_ns


def whole_number(value: object, least: int = 1 - (1 << 62)) -> int | None:
    """Return a whole number from `least` on that is small enough for sums; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 62 else None
