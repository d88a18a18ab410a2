"""Files of other tools as streams of bytes: unpacked, bounded, one or many (folders, archives)."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import posixpath
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, cast

from strobe import native
from strobe.errors import FormatError, TraceError
from strobe.formats.reading.ascend_folders import repeated
from strobe.formats.reading.cube_tar import is_cube
from strobe.model.units import format_bytes
from strobe.trace.user_notes import BESIDE

HEAD_BYTES = 1 << 16
SQLITE_MAGIC = b"SQLite format 3\0"
_PIECE = 1 << 18
# JSON packs 1:17 to 1:30 in real traces. A file that unpacks to more than this, and by more than this factor, is not a
# trace.
_ALWAYS_BYTES = 1 << 30
_MOST_TIMES = 300
_MOST_MEMBERS = 1 << 17  # of an archive; an OTF2 archive has two for each thread
# The byte order mark and a letter: other files may begin with the mark alone.
_UTF_16 = re.compile(rb"\xff\xfe[^\0]\0|\xfe\xff\0[^\0]", re.DOTALL)
# What has no end, or none that is known: reading would wait, or fill the memory.
_ENDLESS = (
    *((stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device")),
    *((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket")),
)
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError)

Tick = Callable[[int], bool]  # takes the number of (packed) bytes read; returns whether to continue


@dataclass
class Bound:
    """The number of bytes that a file on disk may unpack to: all members of an archive together."""

    name: str
    size_bytes: int
    unpacked: int = 0

    def add(self, n: int) -> None:
        """Count unpacked bytes. Raises FormatError if they are more than any trace has."""
        self.unpacked += n
        if self.unpacked > _ALWAYS_BYTES and self.unpacked > _MOST_TIMES * self.size_bytes:
            raise FormatError(
                f"'{self.name}' ({format_bytes(self.size_bytes)}) unpacks to more than {format_bytes(_ALWAYS_BYTES)}",
                do="No trace packs that well: this looks like a file made to fill memory.",
            )


@dataclass
class Input:
    """One file, or one member of an archive. `name` is for messages, `size_bytes` as it lies on disk.

    `neighbour` finds another file of its folder, or of the archive; `asked` are the files looked up so far, by name.
    `around` returns the names of files that match a pattern, seen from its folder: `*.csv`, `../info_*.json`.
    """

    name: str
    path: Path
    size_bytes: int
    opened: Callable[[], IO[bytes]]
    neighbour: Callable[[str], Input | None] = field(default=lambda _: None)
    around: Callable[[str], list[str]] = field(default=lambda _: [])
    tick: Tick = field(default=lambda _: True)
    stopped: bool = False
    asked: dict[str, Input | None] = field(default_factory=dict)
    bound: Bound | None = None  # that of the archive that it is a member of
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Return the unpacked bytes in pieces; ends early when the import is stopped.

        Raises FormatError if a file unpacks to an absurd size; a damaged packed file ends at the damage.
        """
        bound = self.bound or Bound(self.name, self.size_bytes)
        with self._open() as stream:
            for piece in self._unpacked(self._packed(stream)):
                bound.add(len(piece))
                yield piece

    def head(self) -> bytes:
        """Return the first bytes, unpacked."""
        found = b""
        with self._open() as stream:
            for piece in self._unpacked(_pieces(stream, HEAD_BYTES)):
                found += piece
                if len(found) >= HEAD_BYTES:
                    break
        return found[:HEAD_BYTES]

    def local_path(self) -> Path:
        """Return a file with the unpacked bytes: itself if it is plain, else a copy, removed after the import."""
        with self._open() as stream:
            first = next(_pieces(stream, 6), b"")
        plain = _packing(first) is None and _UTF_16.match(first) is None
        if plain and self.name == str(self.path):
            return self.path
        self._temporary = tempfile.TemporaryDirectory(prefix="strobe-")
        copy = Path(self._temporary.name) / "unpacked"
        with copy.open("wb") as out:
            for chunk in self.chunks():
                out.write(chunk)
        return copy

    def beside(self, name: str) -> Input | None:
        """Return the file of this name in the same folder, or below it; None if there is none.

        Raises ValueError if the name leads out of the folder, by itself or by a link.
        """
        if name not in self.asked:
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts:
                raise ValueError(f"'{name}' is not below the folder of the file")
            found = self.neighbour(str(parts))
            if found is not None:
                found.tick = lambda n: self.tick(n)
            self.asked[name] = found
        return self.asked[name]

    def total_bytes(self) -> int:
        """Return its size, and that of the files beside it that were looked up."""
        return self.size_bytes + sum(each.size_bytes for each in self.asked.values() if each is not None)

    def close(self) -> None:
        """Remove the copies that `local_path` made of it, and of the files beside it that were looked up."""
        for each in (self, *self.asked.values()):
            if each is not None and each._temporary is not None:
                each._temporary.cleanup()
                each._temporary = None

    def _open(self) -> IO[bytes]:
        try:
            return self.opened()
        # RuntimeError: encrypted; NotImplementedError: packed in an unknown way.
        except (*_DAMAGED, RuntimeError, NotImplementedError) as error:
            raise TraceError(f"cannot read '{self.name}': {_reason(error)}") from error

    def _packed(self, stream: IO[bytes]) -> Iterator[bytes]:
        for piece in _pieces(stream, _PIECE):
            if not self.tick(len(piece)):
                self.stopped = True
                return
            yield piece

    def _unpacked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Return unpacked bytes; a text in UTF-16, as PowerShell's `>` writes it, is returned in UTF-8."""
        unpacked = self._decompressed(pieces)
        first = next(unpacked, b"")
        while 0 < len(first) < 4 and (more := next(unpacked, b"")):
            first += more
        if _UTF_16.match(first):
            yield from _in_utf_8(chain((first,), unpacked))
        else:
            yield first
            yield from unpacked

    def _decompressed(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        pieces = iter(pieces)
        first = next(pieces, b"")
        packing = _packing(first)
        if packing is None:
            yield first
            yield from pieces
        elif packing == "gzip":
            yield from _gunzip(first, pieces)
        elif packing == "zstd":
            yield from _unzstd(first, pieces)
        else:
            raise FormatError(f"'{self.name}' is packed with {packing}, which is not read", do="Unpack it first.")


def inputs_of(path: Path) -> list[Input]:
    """Return the files of a path: itself, the members of a tar or zip archive, the files of a folder.

    In order of name. Names inside of archives are used in messages only: nothing is written by them.
    """
    kind = path.stat().st_mode
    if what := next((name for is_it, name in _ENDLESS if is_it(kind)), ""):
        raise TraceError(f"'{path}' is {what}: only files and folders can be read", do="Save its content as a file.")
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file() and not _is_ours(each, path))
        twice = repeated(files)
        return [one_file(each) for each in files if each not in twice]
    try:
        if zipfile.is_zipfile(path):
            return _of_zip(path)
        if _is_tar(path):
            return _of_tar(path)
        return [one_file(path)]
    except (OSError, RuntimeError, NotImplementedError, ValueError, OverflowError, *_DAMAGED) as error:
        raise TraceError(f"cannot read '{path}': {_reason(error)}") from error


def _reason(error: Exception) -> str:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return " ".join(reason.split())[:300] or "it is damaged"


def _pieces(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Return the readable part of a stream: a damaged one ends at the damage."""
    try:
        while piece := stream.read(size):
            yield piece
    except _DAMAGED:
        return


def one_file(path: Path) -> Input:
    """Return a file as it is, though it may be an archive."""

    def around(pattern: str) -> list[str]:
        return sorted(os.path.relpath(each, path.parent) for each in path.parent.glob(pattern))

    size, beside = path.stat().st_size, partial(_below, path.parent)
    return Input(str(path), path, size, lambda: path.open("rb"), beside, around)


def _below(folder: Path, name: str) -> Input | None:
    path = folder / name
    if not path.is_file():
        return None
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"'{path}' is a link that leads out of its folder")
    return one_file(path)


def _is_ours(path: Path, root: Path) -> bool:
    ours = any(part.endswith(".strobe") or part.startswith(".") for part in path.relative_to(root).parts)
    return ours or path.name.endswith(BESIDE)


def _packing(head: bytes) -> str | None:
    for mark, name in ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz")):
        if head.startswith(mark):
            return name
    return None


def _in_utf_8(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Return a text in UTF-16 in UTF-8, without its byte order mark."""
    decode = codecs.getincrementaldecoder("utf-16")("replace").decode
    for piece in pieces:
        yield decode(piece).encode("utf-8", "replace")
    yield decode(b"", True).encode("utf-8", "replace")


def _gunzip(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    unpack = zlib.decompressobj(31)
    left = first
    while True:
        try:
            piece = unpack.decompress(left, _PIECE * 4)
        except zlib.error:
            return  # damaged: the reader reports that the text ends early
        if piece:
            yield piece
        left = unpack.unconsumed_tail
        if unpack.eof:  # several members may follow each other
            left = unpack.unused_data.lstrip(b"\0") or next(pieces, b"")
            if not left.startswith(b"\x1f"):
                return
            unpack = zlib.decompressobj(31)
        elif not left:
            left = next(pieces, b"")
            if not left:
                return


def _unzstd(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    unpack, most = native.core.ZstdStream(), _PIECE * 4
    left: bytes | None = first
    while left is not None:
        try:
            produced, left = unpack.decompress(left, most)
        except ValueError:
            return  # damaged: the reader reports that the text ends early
        if produced:
            yield produced
        if not left and len(produced) < most:  # else more output is waiting
            left = next(pieces, None)


def _is_tar(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(512)
    packing = _packing(head)
    if packing in _OPENED:
        try:
            with _OPENED[packing](path) as unpacked:
                head = unpacked.read(512)
        except (OSError, *_DAMAGED):
            return False
    return head[257:262] == b"ustar"


_OPENED: dict[str | None, Callable[[Path], IO[bytes]]] = {
    "gzip": lambda path: cast("IO[bytes]", gzip.GzipFile(path)),
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}


def _of_tar(path: Path) -> list[Input]:
    members: dict[str, Input] = {}
    bound = Bound(str(path), path.stat().st_size)
    plain = _plain_tar(path, bound)
    if is_cube(plain.read(HEAD_BYTES)):  # its members make sense only together
        return [one_file(path)]
    plain.seek(0)
    archive = tarfile.open(fileobj=plain, mode="r:")  # noqa: SIM115 - the members read from it
    try:
        for number, member in enumerate(archive):
            if member.name == "anchor.xml":  # of Cube, too, behind other members
                return [one_file(path)]
            if number >= _MOST_MEMBERS:
                raise FormatError(f"'{path}' holds more than {_MOST_MEMBERS} files", do="Unpack those that you mean.")
            if member.isfile():
                opened = _tar_member(archive, member)
                members[member.name] = Input(f"{path}:{member.name}", path, member.size, opened, bound=bound)
    except tarfile.TarError:
        if not members:
            raise
    return _neighbours(members)


def _plain_tar(path: Path, bound: Bound) -> IO[bytes]:
    """Return the tar itself. One that is packed is unpacked once, to disk: going through it for each member takes as
    many times as long as it has members."""
    with path.open("rb") as stream:
        packing = _packing(stream.read(6))
    if packing not in _OPENED:
        return path.open("rb")
    plain = cast("IO[bytes]", tempfile.TemporaryFile(prefix="strobe-"))  # noqa: SIM115 - goes with its last reader
    with _OPENED[packing](path) as stream:
        for piece in _pieces(stream, _PIECE):
            bound.add(len(piece))
            plain.write(piece)
    bound.unpacked = 0  # the members count anew
    plain.seek(0)
    return plain


def _neighbours(members: dict[str, Input]) -> list[Input]:
    """Let the members of an archive find each other; return them in order of name."""

    def finder(member: str) -> Callable[[str], Input | None]:
        return lambda name: members.get(str(PurePosixPath(member).parent / name))

    def names_around(member: str) -> Callable[[str], list[str]]:
        folder = posixpath.dirname(member)

        def around(pattern: str) -> list[str]:
            whole = posixpath.normpath(posixpath.join(folder, pattern))
            return [
                posixpath.relpath(each, folder or ".") for each in sorted(members) if PurePosixPath(each).match(whole)
            ]

        return around

    for member, each in members.items():
        each.neighbour, each.around = finder(member), names_around(member)
    twice = {str(each) for each in repeated(map(PurePosixPath, members))}
    return [members[member] for member in sorted(members) if str(PurePosixPath(member)) not in twice]


def _tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        stream = archive.extractfile(member)
        assert stream is not None
        return stream

    return opened


def _of_zip(path: Path) -> list[Input]:
    archive = zipfile.ZipFile(path)
    members = [member for member in archive.infolist() if member.filename and not member.is_dir()]
    if len(members) > _MOST_MEMBERS:
        raise FormatError(f"'{path}' holds more than {_MOST_MEMBERS} files", do="Unpack those that you mean.")
    bound = Bound(str(path), path.stat().st_size)  # members may share their bytes
    return _neighbours(
        {
            member.filename: Input(
                f"{path}:{member.filename}", path, member.compress_size, _zip_member(archive, member), bound=bound
            )
            for member in members
        }
    )


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(member)
