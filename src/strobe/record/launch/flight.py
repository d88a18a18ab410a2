"""The flight recorder: the last minutes of a run in a bounded folder, and whole traces of them when something happens.

Processes write their block files in parts (native/core/session/file_parts.h). A thread of `strobe run` removes the
oldest ones, takes requests of processes (record/program/flight_triggers.py), and writes a trace for each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from strobe.errors import StrobeError
from strobe.model import manifest
from strobe.model.block_parts import PART, copy_joined, part_paths
from strobe.model.private_files import opener
from strobe.model.terminal import talk
from strobe.record import flight_requests as flight
from strobe.record.launch.clock_server import start_thread

_LOOK_S = 0.1
_FULL = 0.75  # of the size: a process writes on while the folder is looked at
# Traces of a run, and how many of them may be for slow steps: they are the most frequent, and not the worst.
MOST_WRITTEN, _MOST_SLOW = 10, 7
_COPIED = re.compile(r"(started-.*\.jsonl|notes\.txt|clocks\.json|.*\.metrics)")
_HEADER = struct.Struct("<4sBBHIIIIII")  # of a chunk: docs/format/blocks.md
_PROCESS, _NOTE = 1, 20


@dataclass(frozen=True)
class Kept:
    """What the first chunks of a process's file show: since when it is kept (ns on its clock), and its node."""

    since_ns: int
    node: str
    left_out: bool


class FlightRecorder:
    """The thread beside a run. `keep_ns`, `keep_bytes`: what the folder holds; `complete` recovers a written trace."""

    def __init__(self, folder: str, keep_ns: int, keep_bytes: int, complete: Callable[[str], None]) -> None:
        self.folder, self.keep_ns, self.keep_bytes, self._complete = folder, keep_ns, keep_bytes, complete
        self.written: list[str] = []
        self._quit = threading.Event()
        self._rested_until: dict[str, float] = {}  # by reason
        self._slow = 0
        self._told: set[str] = set()
        self._thread: threading.Thread | None = None

    def started(self) -> None:
        """The program has started."""
        self._thread = start_thread(self._run, "strobe flight")

    def stop(self) -> None:
        """The program has ended: its folder is the trace of its last minutes."""
        self._quit.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(OSError):  # a folder that is gone is missed by whoever finishes the trace
            self._trim()
        for name in flight.requests(self.folder):
            with suppress(OSError):
                os.unlink(os.path.join(self.folder, name))

    def _run(self) -> None:
        while not self._quit.wait(_LOOK_S):
            try:
                self._trim()
                self._answer()
            except OSError as error:
                self._fails(error.strerror or str(error))
            except (ValueError, StrobeError) as error:
                self._fails(str(error))

    def _fails(self, why: str) -> None:
        """Tell each reason once: the disk stays full, and we look ten times a second."""
        if why not in self._told and os.path.isdir(self.folder):
            self._told.add(why)
            talk(f"the flight recorder could not write a trace: {why}")

    def _trim(self) -> None:
        """Remove what is older than the time, and the oldest parts while the folder is too large.

        Time counts back from the newest block, not from now: who trims may be late, and the program over for long.
        """
        from strobe.native import core

        total, parts, newest = 0, [], []
        with os.scandir(self.folder) as entries:
            found = list(entries)
        for entry in found:
            with suppress(FileNotFoundError):
                facts = entry.stat()
                total += facts.st_blocks * 512
                known = (facts.st_mtime, facts.st_blocks * 512, entry.path)
                if PART.fullmatch(entry.name):
                    parts.append(known)
                elif entry.name.endswith(".blocks"):
                    newest.append(known)
        oldest = max((changed for changed, _, _ in newest), default=0.0) - self.keep_ns / 1e9
        ended = [path for changed, _, path in newest if changed < oldest and not core.is_held(path)]
        limit = _FULL * self.keep_bytes
        for changed, size, path in sorted(parts):
            if changed >= oldest and total <= limit:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
        for path in ended:  # processes of which nothing else is left
            for kind in ("blocks", "rings", "gpu", "index", "tiles"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{path.removesuffix('blocks')}{kind}")

    def _answer(self) -> None:
        for name in flight.requests(self.folder):
            path = os.path.join(self.folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    asked = json.load(file)
            except ValueError:
                continue  # it is being written
            reason, event = str(asked["reason"]), str(asked["event"])
            now = time.monotonic()
            slow = reason == "slow-step"
            left = len(self.written) < MOST_WRITTEN and not (slow and self._slow == _MOST_SLOW)
            try:
                if left and now >= self._rested_until.get(reason, 0.0):
                    if reason in flight.AUTOMATIC:
                        self._rested_until[reason] = now + flight.rest_s(self.keep_ns)
                    self._slow += slow
                    self.written.append(self._write(reason, event))
            finally:  # also where it could not be written: it is not tried again and again
                os.unlink(path)

    def _write(self, reason: str, event: str) -> str:
        """Write what is kept now as a trace beside the folder; return its path."""
        stem = f"{self.folder.removesuffix('.strobe')}-{reason}"
        work = os.path.join(os.path.dirname(stem), f".{os.path.basename(stem)}.unfinished-{os.getpid()}")
        os.mkdir(work, os.stat(self.folder).st_mode & 0o777)
        try:
            kept = []
            for name in sorted(os.listdir(self.folder)):
                source = os.path.join(self.folder, name)
                with suppress(FileNotFoundError):  # a process that has just ended or was trimmed
                    if name.endswith(".blocks"):
                        kept.append(self._copy_process(source, os.path.join(work, name)))
                    elif _COPIED.fullmatch(name):
                        shutil.copyfile(source, os.path.join(work, name))
            _write_job(self.folder, work, [each for each in kept if each], reason, event)
            self._complete(work)
            path, number = f"{stem}.strobe", 1
            while os.path.exists(path):
                number += 1
                path = f"{stem}-{number}.strobe"
            os.rename(work, path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return path

    def _copy_process(self, source: str, target: str) -> Kept | None:
        # The rings first: what is overwritten in them meanwhile is in the blocks that are copied after them.
        with suppress(FileNotFoundError):
            rings = source.removesuffix("blocks") + "rings"
            shutil.copyfile(rings, target.removesuffix("blocks") + "rings")
        copy_joined(source, target)
        return first_facts(target)


def first_facts(path: str) -> Kept | None:
    """Read since when a block file goes: its first chunks hold that. None where they are not sound."""
    part: list[int] = []
    with open(path, "rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            magic, kind, _, _, size, *_ = _HEADER.unpack(header)
            if magic != b"SRBK" or kind not in (_PROCESS, _NOTE):
                return None
            facts = json.loads(file.read(size))
            if kind == _PROCESS:
                since = max([facts["started_ns"], *part[1:]])
                return Kept(since, str(facts.get("node", "")), bool(part))
            part = facts.get("part", part)
    return None


def _write_job(folder: str, work: str, kept: list[Kept], reason: str, event: str) -> None:
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
        job: dict[str, Any] = json.loads(stream.read())
    job.pop("checksum", None)
    _note_beginning(job, kept)
    job["flight"] |= {"reason": reason, "event": event, "written_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC)}
    write_manifest(work, job)


def _note_beginning(job: dict[str, Any], kept: list[Kept]) -> None:
    """The zero of the trace becomes the begin of what is kept, if something was left out."""
    zero = job["zero_ns"]
    here = [each for each in kept if each.node == job.get("node")]
    job["flight"] = {"left_out_ns": 0, "complete_from_ns": 0}
    if any(each.left_out for each in here):
        begin = max(zero, min(each.since_ns for each in here))
        complete = max(each.since_ns for each in here if each.left_out)
        job["flight"] = {"left_out_ns": begin - zero, "complete_from_ns": max(0, complete - begin)}
        job["zero_ns"] = begin
        job["started_unix_ns"] += begin - zero


def write_manifest(folder: str, job: Mapping[str, Any]) -> None:
    """Write job.json anew. Raises OSError."""
    path = os.path.join(folder, "job.json")
    with open(path + ".tmp", "w", encoding="utf-8", opener=opener) as stream:
        stream.write(manifest.sealed(json.dumps(job)) + "\n")
    os.replace(path + ".tmp", path)


def join(folder: str) -> None:
    """Make one block file of the parts of each process, where the program is over, with room for one part more.

    The trace's zero becomes the begin of what is kept. A part that cannot be read or written stays as it is.
    """
    kept = []
    for name in sorted(os.listdir(folder)):
        blocks = os.path.join(folder, name)
        if name.endswith(".next"):
            os.unlink(blocks)
        if not name.endswith(".blocks"):
            continue
        for path in part_paths(blocks):
            if os.path.samefile(path, blocks):  # killed while a part began: its second name
                os.unlink(path)
        if parts := part_paths(blocks):
            with open(parts[0], "ab") as out:
                for path in [*parts[1:], blocks]:
                    with open(path, "rb") as part:
                        shutil.copyfileobj(part, out, 1 << 20)
                    out.flush()
                    if path != blocks:
                        os.unlink(path)
            os.rename(parts[0], blocks)
        kept.append(first_facts(blocks))
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
        job = json.loads(stream.read())
    job.pop("checksum", None)
    _note_beginning(job, [each for each in kept if each])
    job["flight"] |= {"reason": "end", "event": "the end of the program"}
    write_manifest(folder, job)
