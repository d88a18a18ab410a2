"""The trace folder `NAME.strobe/`: its files, its manifest job.json, and the names by which people call runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from strobe.errors import TraceError, UsageError

SUFFIX = ".strobe"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ProcessFiles:
    """Files of one process. `rings` is there while it runs, or after it was killed and nobody recovered it yet."""

    pid: int
    blocks: Path
    rings: Path | None
    tiles: Path

    @property
    def size_bytes(self) -> int:
        """Bytes on disk: blocks, their index and tiles (rings are memory that happens to have a name)."""
        index = self.blocks.with_suffix(".index")
        return sum(path.stat().st_size for path in (self.blocks, index, self.tiles) if path.exists())


@dataclass(frozen=True)
class Job:
    """What job.json says: how the run was started, and how it ended.

    `zero_ns` is CLOCK_MONOTONIC at the start: the zero of every time in the trace. `ended` holds `exit_code` or
    `signal`, and `ended_ns`, once the run is over. Of a trace that was imported, `imported` says from what, and
    `processes`, by name of the block file, what is known beside it: `rank`, `clock_offset_ns`. `node` and `wall`: whose
    clock is the trace's, and what the time of day was then (trace/clocks/node_clocks.py).
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
    imported: Mapping[str, object] = field(default_factory=dict)
    node: str = ""
    wall: tuple[int, int, int] | None = None


def read_job(folder: Path) -> Job:
    """Read job.json. A folder without one still opens: then its zero is the start of its first process."""
    path = folder / "job.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Job()
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot read '{path}': {error}") from error
    except RecursionError as error:
        raise TraceError(f"cannot read '{path}': it is nested too deeply") from error
    try:
        return _job(raw, folder)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as error:
        raise TraceError(f"'{path}' holds no job description") from error


def _job(raw: Mapping[str, Any], folder: Path) -> Job:
    version = int(raw.get("format_version", FORMAT_VERSION))
    if version > FORMAT_VERSION:
        raise TraceError(
            f"'{folder}' has trace format {version}; this strobe reads up to {FORMAT_VERSION}", do="Update strobe."
        )
    zero = raw.get("zero_ns")
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
        processes={name: dict(told) for name, told in (imported.get("processes") or {}).items()},
        imported=imported,
        node=sound_text(raw.get("node", "")),
        wall=cast("tuple[int, int, int]", tuple(map(_fitting, raw["wall"][:3])))
        if len(raw.get("wall") or ()) == 3
        else None,
    )


def sound_text(value: object) -> str:
    """Return a text that UTF-8 can hold: JSON can name halves of characters, which no table and no terminal takes."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _fitting(value: Any) -> int:
    number = int(value)
    if abs(number) >= 1 << 62:
        raise ValueError("a time that no clock shows")
    return number


def process_files(folder: Path) -> list[ProcessFiles]:
    """Find the files of every process in a trace folder, by pid."""
    found = []
    for blocks in sorted(folder.glob("process-*.blocks")):
        stem = blocks.name.removesuffix(".blocks")
        rings = folder / f"{stem}.rings"
        digits = re.search(r"\d+", stem)
        found.append(
            ProcessFiles(
                pid=int(digits[0]) if digits else 0,
                blocks=blocks,
                rings=rings if rings.exists() else None,
                tiles=folder / f"{stem}.tiles",
            )
        )
    return found


def notes(folder: Path) -> list[str]:
    """Return what Pythons wrote down that could not record themselves, a sentence each, each sentence once."""
    try:
        lines = (folder / "notes.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        return list(dict.fromkeys(lines))
    except OSError:
        return []


def runs(folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Return the traces in a folder, newest first."""
    found = [path for path in Path(folder).glob(f"*{SUFFIX}") if path.is_dir()]
    return sorted(found, key=_started, reverse=True)


def find(name: str | os.PathLike[str], folder: str | os.PathLike[str] = ".") -> Path:
    """Return what a name means: a path, `last` (newest run in `folder`), `last~2` (third newest).

    A file inside of a trace folder means the folder; any other file is returned as it is: see `is_trace`.
    """
    try:
        return _find(os.fspath(name), folder)
    except OSError as error:
        raise TraceError(f"cannot look at '{name}': {error.strerror or error}") from error


def _find(name: str, folder: str | os.PathLike[str]) -> Path:
    match = re.fullmatch(r"last(?:~(\d+))?", name)
    path = Path(name)
    if match and not path.exists():
        found, back = runs(folder), int(match[1] or 0)
        if back >= len(found):
            have = f"there are {len(found)} runs" if found else f"there is no run (*{SUFFIX}) in this folder"
            raise UsageError(f"no run '{name}': {have}", do="Record one: strobe run SCRIPT")
        return found[back]
    if not path.exists():
        with_suffix = path.with_name(path.name + SUFFIX)
        if path.name and with_suffix.is_dir():
            return with_suffix
        known = ", ".join(run.name for run in runs(folder)[:5])
        raise TraceError(f"no such trace: '{path}'", do=f"Runs in this folder: {known}" if known else "")
    if path.is_file() and (path.parent.name.endswith(SUFFIX) or (path.parent / "job.json").exists()):
        return path.parent
    return path


def source_of(job: Job) -> str:
    """Say in words which files of another tool a trace was imported from, "" where we recorded it."""
    files = cast("list[dict[str, object]]", job.imported.get("files") or [])
    if not files:
        return ""
    names = [Path(str(file["name"])).name for file in files]
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


def whole_number(value: object) -> int | None:
    """Return a whole number that sums may be made of; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None
