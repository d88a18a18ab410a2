"""Files of other tools as streams of bytes: unpacked, bounded, one or many (folders, archives)."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from strobe.errors import FormatError, TraceError
from strobe.model.units import format_bytes

HEAD_BYTES = 1 << 16
_PIECE = 1 << 18
# JSON packs 1:17 to 1:30 in real traces. What unpacks to more than this, and by more than this factor, is no trace.
_ALWAYS_BYTES = 1 << 30
_MOST_TIMES = 300

Tick = Callable[[int], bool]  # is told how many (packed) bytes were read; says whether to go on


@dataclass
class Input:
    """One file, or one member of an archive. `name` is for messages, `size_bytes` as it lies on disk.

    `neighbour` finds another file of its folder, or of the archive; `asked` are those that were asked for, by name.
    """

    name: str
    path: Path
    size_bytes: int
    opened: Callable[[], IO[bytes]]
    neighbour: Callable[[str], Input | None] = field(default=lambda _: None)
    tick: Tick = field(default=lambda _: True)
    stopped: bool = False
    asked: dict[str, Input | None] = field(default_factory=dict)
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Return the unpacked bytes in pieces; ends early when the import is stopped.

        Raises FormatError where a file unpacks to something absurd; a packed file that is damaged ends where it is.
        """
        with self.opened() as stream:
            yield from self._bounded(self._unpacked(self._packed(stream)))

    def head(self) -> bytes:
        """Return the first bytes, unpacked."""
        found = b""
        with self.opened() as stream:
            for piece in self._unpacked(iter(lambda: stream.read(HEAD_BYTES), b"")):
                found += piece
                if len(found) >= HEAD_BYTES:
                    break
        return found[:HEAD_BYTES]

    def local_path(self) -> Path:
        """Return a file with the unpacked bytes: itself where it is plain, else a copy that goes with the import."""
        with self.opened() as stream:
            plain = _packing(stream.read(6)) is None
        if plain and self.name == str(self.path):
            return self.path
        self._temporary = tempfile.TemporaryDirectory(prefix="strobe-")
        copy = Path(self._temporary.name) / "unpacked"
        with copy.open("wb") as out:
            for chunk in self.chunks():
                out.write(chunk)
        return copy

    def beside(self, name: str) -> Input | None:
        """Return the file of this name in the same folder, or below it; None where there is none.

        Raises ValueError where the name leads out of the folder, by itself or by a link.
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
        """Return its size, and that of the files beside it that were asked for."""
        return self.size_bytes + sum(each.size_bytes for each in self.asked.values() if each is not None)

    def close(self) -> None:
        """Remove what `local_path` made."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _packed(self, stream: IO[bytes]) -> Iterator[bytes]:
        while piece := stream.read(_PIECE):
            if not self.tick(len(piece)):
                self.stopped = True
                return
            yield piece

    def _unpacked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
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

    def _bounded(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            if total > _ALWAYS_BYTES and total > _MOST_TIMES * self.size_bytes:
                raise FormatError(
                    f"'{self.name}' ({format_bytes(self.size_bytes)}) unpacks to more than {format_bytes(total)}",
                    do="No trace packs that well: this looks like a file made to fill memory.",
                )
            yield piece


def inputs_of(path: Path) -> list[Input]:
    """Return the files that a path means: itself, the members of a tar or zip archive, the files of a folder.

    In order of name. Names inside of archives are used in messages only: nothing is written by them.
    """
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file() and not _is_ours(each, path))
        return [_file(each) for each in files]
    try:
        if zipfile.is_zipfile(path):
            return _of_zip(path)
        if _is_tar(path):
            return _of_tar(path)
        return [_file(path)]
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"cannot read '{path}': {reason}") from error


def _file(path: Path) -> Input:
    return Input(str(path), path, path.stat().st_size, lambda: path.open("rb"), lambda name: _below(path.parent, name))


def _below(folder: Path, name: str) -> Input | None:
    path = folder / name
    if not path.is_file():
        return None
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"'{path}' is a link that leads out of its folder")
    return _file(path)


def _is_ours(path: Path, root: Path) -> bool:
    return any(part.endswith(".strobe") or part.startswith(".") for part in path.relative_to(root).parts)


def _packing(head: bytes) -> str | None:
    for mark, name in ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz")):
        if head.startswith(mark):
            return name
    return None


def _gunzip(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    unpack = zlib.decompressobj(31)
    left = first
    while True:
        try:
            piece = unpack.decompress(left, _PIECE * 4)
        except zlib.error:
            return  # damaged: the reader says that the text ends early
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
    from strobe import native

    unpack, most = native.core.ZstdStream(), _PIECE * 4
    left: bytes | None = first
    while left is not None:
        try:
            produced, left = unpack.decompress(left, most)
        except ValueError:
            return  # damaged: the reader says that the text ends early
        if produced:
            yield produced
        if not left and len(produced) < most:  # else there is more where this came from
            left = next(pieces, None)


def _is_tar(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(512)
    if _packing(head) in ("gzip", "bzip2", "xz"):
        try:
            with tarfile.open(path, "r:*"):
                return True
        except (tarfile.TarError, OSError, EOFError, zlib.error):
            return False
    return head[257:262] == b"ustar"


def _of_tar(path: Path) -> list[Input]:
    members: dict[str, Input] = {}
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.name == "anchor.xml":  # a Cube profile: its members make sense only together
                return [_file(path)]
            if member.isfile():
                members[member.name] = Input(f"{path}:{member.name}", path, member.size, _tar_member(path, member.name))
    return _neighbours(members)


def _neighbours(members: dict[str, Input]) -> list[Input]:
    """Let the members of an archive find each other; return them in order of name."""

    def finder(member: str) -> Callable[[str], Input | None]:
        return lambda name: members.get(str(PurePosixPath(member).parent / name))

    for member, each in members.items():
        each.neighbour = finder(member)
    return [members[member] for member in sorted(members)]


def _tar_member(path: Path, name: str) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        stream = tarfile.open(path, "r:*").extractfile(name)  # noqa: SIM115 - closed with the member
        assert stream is not None
        return stream

    return opened


def _of_zip(path: Path) -> list[Input]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    return _neighbours(
        {
            member.filename: Input(
                f"{path}:{member.filename}",
                path,
                member.compress_size,
                lambda name=member.filename: zipfile.ZipFile(path).open(name),  # type: ignore[misc]
            )
            for member in members
        }
    )
