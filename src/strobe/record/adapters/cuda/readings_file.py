"""The file `gpus-<node>.metrics` as it is written (docs/format/gpus.md): one writer a node, and what is kept."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import threading
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from strobe.model.private_files import opener

ABOUT, COLUMN, READINGS, NOTE = 1, 2, 3, 4
_HEADER = struct.Struct("<4sHHIII")  # magic, kind, version, bytes of the payload, its CRC-32, CRC-32 of the 16 before
_NS = struct.Struct("<q")  # readings begin with the time of the first
_MAGIC, _VERSION = b"SGPU", 1
_LOCK_S = 0.2  # how soon another `strobe run` of the node goes on where the one that wrote has ended
_PARTS = 8  # a flight recorder's time and bytes are divided into: native/core/session/file_parts.cpp


@dataclass(frozen=True)
class Limit:
    """What a flight recorder keeps: the readings of the last `ns`, and no more than `size_bytes`."""

    ns: int
    size_bytes: int


class ReadingsFile:
    """Appends chunks to the file of this node while it holds the file's lock. `limit`: of what is kept, if any."""

    def __init__(self, path: str, limit: Limit | None) -> None:
        self._path, self._limit = path, limit
        self._file = -1
        self._closed = False
        self._writing = threading.Lock()
        self._ended: dict[int, int] = {}
        self._begun_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._bytes = 0  # since something was removed

    def lock(self, stopping: threading.Event) -> bool:
        """Wait until we are who writes on this node; False if `stopping` was set before."""
        while not stopping.is_set():
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                file, ours = opener(self._path, flags | os.O_EXCL), True
            except FileExistsError:
                file, ours = opener(self._path, flags), False
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                ours = _is_at(file, self._path)  # not one that its writer has replaced
            except BlockingIOError:
                ours = False
            except OSError:  # a file system without locks: who made the file writes
                if not ours:
                    os.close(file)
                    return False
            if ours:
                self._file = file
                return True
            os.close(file)
            stopping.wait(_LOCK_S)
        return False

    def ends(self, column: int, ns: int) -> None:
        """Note that a column has no readings after this moment."""
        self._ended[column] = ns

    def write(self, kind: int, payload: bytes) -> None:
        """Append a chunk, with one write(): who is killed in the middle leaves what was there before."""
        with self._writing:
            if self._closed or not payload or self._file < 0:
                return
            try:
                os.write(self._file, _chunk(kind, payload))
            except OSError:  # a full disk: what was written counts
                self._closed = True
                return
            self._bytes += _HEADER.size + len(payload)
            if self._limit and kind == READINGS:
                self._remove_old(self._limit)

    def close(self) -> None:
        """Nothing is written after this returns."""
        with self._writing:
            self._closed = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _remove_old(self, limit: Limit) -> None:
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if now - self._begun_ns < limit.ns // _PARTS and self._bytes < limit.size_bytes // _PARTS:
            return
        self._begun_ns, self._bytes = now, 0
        fresh = f"{self._path}.next"
        with suppress(OSError):  # a full disk: all of it stays
            file = opener(fresh, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
            try:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with open(self._path, "rb") as old, mmap.mmap(old.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    definitions, begin = _kept(data, now - limit.ns, limit.size_bytes, self._ended)
                    with os.fdopen(os.dup(file), "wb") as out:
                        out.write(definitions)
                        out.write(memoryview(data)[begin:])
                os.replace(fresh, self._path)
            except OSError:
                os.close(file)
                os.unlink(fresh)
                raise
            os.close(self._file)
            self._file = file
            self._ended = {column: ns for column, ns in self._ended.items() if ns >= now - limit.ns}


def _kept(data: mmap.mmap, since_ns: int, most_bytes: int, ended: Mapping[int, int]) -> tuple[bytes, int]:
    """Return the definitions that the readings since a moment need, and where these begin."""
    notes, columns, at = list[bytes](), list[bytes](), 0
    while at + _HEADER.size <= len(data):
        magic, kind, _, size, _, crc = _HEADER.unpack_from(data, at)
        end = at + _HEADER.size + size
        if magic != _MAGIC or zlib.crc32(data[at : at + _HEADER.size - 4]) != crc or end > len(data):
            following = data.find(_MAGIC, at + 1)  # torn by a kill
            at = following if following >= 0 else len(data)
            continue
        if kind == READINGS:
            (ns,) = _NS.unpack_from(data, at + _HEADER.size)
            if ns >= since_ns and len(data) - at <= most_bytes:
                break
        elif kind == ABOUT:  # of another writer are the columns before it, too
            columns = [data[at:end]]
        elif kind == NOTE:
            notes.append(data[at:end])
        elif ended.get(json.loads(data[at + _HEADER.size : end])["column"], since_ns) >= since_ns:
            columns.append(data[at:end])
        at = end
    return b"".join(columns + notes), min(at, len(data))


def _chunk(kind: int, payload: bytes) -> bytes:
    head = _HEADER.pack(_MAGIC, kind, _VERSION, len(payload), zlib.crc32(payload), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
