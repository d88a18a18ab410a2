"""A sound copy of a damaged trace: what `strobe repair` writes."""

from __future__ import annotations

import json
import mmap
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from strobe import native
from strobe.errors import TraceError
from strobe.model.block_parts import PART, copy_joined, whole_paths
from strobe.model.losses import loss_sentences
from strobe.trace import archive
from strobe.trace.derived.new_folder import new_folder, write_job
from strobe.trace.processes import job_in_blocks, process_reader
from strobe.trace.quality import counters
from strobe.trace.trace import Trace

_MAGIC, _PROCESS, _NOTE = b"SRBK", 1, 20
_HEADER = struct.Struct("<4sBBHIIIIII")  # docs/format/blocks.md
# What is made from the other files.
_MADE = ("*.index", "*.tiles", "summary.json", "*.next")
_PART_NOTE = b'{"part"'  # the definitions so far are repeated behind it


@dataclass(frozen=True)
class _Damage:
    """What is wrong with a block file: bytes in no sound chunk, and whether the process chunk is there."""

    files: archive.ProcessFiles
    damaged_bytes: int
    described: bool

    @property
    def is_any(self) -> bool:
        return self.damaged_bytes > 0 or not self.described or self.files.rings is not None


def repair(folder: Path, to: Path) -> list[str]:
    """Write a sound copy of a trace; return what was wrong, a sentence each. Of a sound trace none, and no copy.

    Chunks that are damaged or there twice are left out, records in the rings of killed processes are recovered, and
    job.json and the tiles are made anew. The copy has the losses of the trace in its quality table.
    Raises TraceError if a process still runs or nothing can be read, StrobeError if a file cannot be written.
    """
    processes = archive.process_files(folder)
    if running := [files.pid for files in processes if files.rings is not None and process_reader.is_alive(files)]:
        raise TraceError(f"process {running[0]} still runs", do="Wait for its end, or stop it.")
    trace = Trace.read(folder)
    unreadable = dict(trace.unreadable)
    damages = [_damage(files) for files in processes if files.pid not in unreadable]
    manifest_is_sound = _has_sound_manifest(folder)
    if not unreadable and manifest_is_sound and not any(each.is_any for each in damages):
        return []
    found = [f"process {pid} is left out: {why}" for pid, why in unreadable.items()]
    with new_folder(to) as work:
        for path in sorted(folder.iterdir()):
            if not path.is_file() or PART.fullmatch(path.name) or any(path.match(each) for each in _MADE):
                continue
            (copy_joined if path.suffix == ".blocks" else shutil.copyfile)(path, work / path.name)
        for files in archive.process_files(work):
            if files.pid in unreadable:
                files.blocks.unlink()
        for each in damages:
            if each.is_any:
                found += _mended(replace(each, files=_moved(each.files, work)))
        if not manifest_is_sound:
            found.append(_write_manifest(work))
        Trace.read(work).pyramid.build()
    return found + [f"lost: {each}" for each in loss_sentences(counters(trace))]


def _damage(files: archive.ProcessFiles) -> _Damage:
    damaged, described = 0, False
    for path in map(Path, whole_paths(files.blocks)):
        damaged += path.stat().st_size
        for chunk in _sound_chunks(path):
            damaged -= len(chunk)
            described |= chunk[4] == _PROCESS
    return _Damage(files, damaged, described)


def _moved(files: archive.ProcessFiles, folder: Path) -> archive.ProcessFiles:
    rings = files.rings and folder / files.rings.name
    return archive.ProcessFiles(files.pid, folder / files.blocks.name, rings)


def _mended(damage: _Damage) -> list[str]:
    """Mend the files of a process in place; return sentences about what was wrong."""
    files, name, wrong = damage.files, damage.files.blocks.name, []
    if files.rings is not None:
        wrong.append(f"{name}: {process_reader.recover(files)} records of a killed process recovered from its rings")
        damage = _damage(archive.ProcessFiles(files.pid, files.blocks, None))
    if not damage.damaged_bytes and damage.described:
        return wrong
    reader = process_reader.RecordedProcess(damage.files)
    work = files.blocks.with_suffix(".mended")
    with work.open("wb") as out:
        if not damage.described:
            out.write(_chunk(_PROCESS, reader.description))
        out.writelines(_sound_chunks(files.blocks))
        for location, spans in reader.spans_written().items():
            out.write(_chunk(_NOTE, {"spans_of": [location, spans]}))
        out.write(_chunk(_NOTE, {"bytes_lost": reader.quality()["bytes_lost"]}))
    work.replace(files.blocks)
    return [*wrong, f"{name}: {damage.damaged_bytes} damaged bytes left out"]


def _sound_chunks(path: Path) -> Iterator[bytes]:
    """Yield every sound chunk of a block file, each once; notes may be repeated, and definitions in another part."""
    if not path.stat().st_size:
        return
    known = set[bytes]()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_MAGIC)
        while 0 <= at <= len(data) - _HEADER.size:
            head = data[at : at + _HEADER.size]
            _, kind, _, _, size, _, _, crc_payload, _, crc_head = _HEADER.unpack(head)
            end = at + _HEADER.size + size
            if native.core.crc32c(head[:28]) != crc_head or end > len(data):
                at = data.find(_MAGIC, at + 1)
                continue
            payload = data[at + _HEADER.size : end]
            if native.core.crc32c(payload) == crc_payload and (kind == _NOTE or head not in known):
                if kind == _NOTE and payload.startswith(_PART_NOTE):
                    known.clear()
                known.add(head)
                yield head + payload
            at = data.find(_MAGIC, end)


def _chunk(kind: int, facts: Mapping[str, object]) -> bytes:
    payload = json.dumps(facts).encode()
    head = _HEADER.pack(_MAGIC, kind, 1, 0, len(payload), 0, 1, native.core.crc32c(payload), 0, 0)[:28]
    return head + struct.pack("<I", native.core.crc32c(head)) + payload


def _has_sound_manifest(folder: Path) -> bool:
    try:
        return archive.sound_job((folder / "job.json").read_bytes(), folder) is not None
    except OSError:
        return False


def _write_manifest(folder: Path) -> str:
    kept, lost = job_in_blocks.find(folder), archive.read_job(folder).lost
    write_job(folder, kept or {"lost": lost or "job.json is missing: times count from the start of the first process"})
    return "job.json: made anew from the block files" if kept else "job.json: damaged or missing, its facts are lost"
