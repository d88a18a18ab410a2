"""Damage to files of other tools, done as their format is built: values, types, nesting, records, members, bytes.

`mutate(data, random)` recognises what it is given (JSON, SQLite, an archive, something packed, our own blocks, text;
else bytes that may be protocol buffers or OTF2 records) and changes one to four things of it. The property tests of the
readers use it, and `benchmarks/fuzz.py`.
"""

import copy
import gzip
import io
import json
import pickle
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from strobe import native
from strobe.formats.reading.plain_pickle import plain_values

NUMBERS = (
    *(0, 1, -1, 2, 3, 127, 128, 255, 256, 65535, 65536, 1_000_003),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**40),
    *(-(2**31), -(2**32), -(2**62), -(2**63), -(10**40)),
)
REALS = (0.5, -0.0, 1e300, 1e-300, -1.5, float("inf"), float("-inf"), float("nan"), 1.7e18, 9.3e18)
TEXTS = (
    *(
        "",
        "0",
        "-1",
        "1e999",
        "NaN",
        "null",
        "%s%n",
        "\x00",
        "\n",
        "\r\n",
        "a\x00b",
        "\ufeff",
        "\udc80",
        "é",
        "名",
        "\x1b[31m",
    ),
    *("../../../../etc/passwd", "/etc/hostname", "..", "C:\\x", "file:///etc/hostname", "a;b", "a,b", '"', "'", "<b>"),
    *("18446744073709551616", "0x7fffffff", "1.5", "1,000", "x" * 140_000),
)
_SMALL = 1 << 20  # what is larger is changed as bytes: taking it apart would take too long


def mutate(data: bytes, random: Random) -> bytes:
    """Return the file with one to four changes."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        change = _chosen(data, random)
        try:
            data = change(data, random)
        except Exception:  # damaged already: it cannot be taken apart
            data = of_bytes(data, random)
    return data


def _chosen(data: bytes, random: Random) -> Callable[[bytes, Random], bytes]:
    if random.random() < 0.15 or len(data) > _SMALL:
        return of_bytes
    if data.startswith(b"\x1f\x8b"):
        return of_gzip
    if data.startswith(b"SQLite format 3\0"):
        return of_sqlite
    if data[257:262] == b"ustar":
        return of_tar
    if data.startswith(b"PK\3\4"):
        return of_zip
    if data.startswith(b"SRBK"):
        return of_blocks
    if data[:64].lstrip()[:1] in (b"{", b"["):
        return of_json
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return of_utf_16
    if not data.startswith((b"\3B", b"\3#")) and _is_text(data[:4096]):
        return of_text
    if data.startswith(b"\x80"):
        return random.choice((of_pickle, of_pickle, of_bytes))
    if data.startswith((b"{", b"\xfb")):  # marshal
        return of_bytes
    return random.choice((of_protobuf, of_protobuf, of_protobuf, of_records, of_records, of_bytes))


def _is_text(head: bytes) -> bool:
    return sum(byte < 9 or byte == 127 for byte in head) == 0


def number(random: Random) -> int:
    """A number at which something ends, or near one."""
    return random.choice(NUMBERS) + random.choice((0, 0, 0, 1, -1))


def value(random: Random) -> Any:
    """Anything that JSON and SQLite can hold; nested ones are for JSON."""
    kind = random.randrange(6)
    if kind == 0:
        return random.choice((None, True, False))
    if kind == 1:
        return random.choice(REALS)
    if kind == 2:
        return random.choice(TEXTS)
    if kind == 3:
        nested: Any = random.choice(([], {}, "x"))
        for _ in range(random.choice((1, 3, 100))):
            nested = [nested] if random.random() < 0.5 else {"args": nested}
        return nested
    return number(random)


def of_bytes(data: bytes, random: Random) -> bytes:
    """Bits, bytes, numbers, cuts, repetitions."""
    out = bytearray(data)
    at = random.randrange(len(out) + 1)
    kind = random.randrange(8)
    size = min(len(out) - at, random.choice((1, 2, 4, 8, 16, 64, 1024)))
    if kind == 0 and at < len(out):
        out[at] ^= 1 << random.randrange(8)
    elif kind == 1 and at < len(out):
        out[at] = random.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, random.randrange(256)))
    elif kind == 2:
        width = random.choice((2, 4, 8))
        out[at : at + width] = (number(random) % (1 << 8 * width)).to_bytes(width, random.choice(("little", "big")))
    elif kind == 3:
        del out[at : at + size]
    elif kind == 4:
        out[at:at] = out[at : at + size] * random.choice((1, 2, 50))
    elif kind == 5:
        other = random.randrange(len(out) + 1)
        out[at : at + size] = out[other : other + size]
    elif kind == 6:
        out[at:at] = random.randbytes(size)
    else:
        del out[at:]
    return bytes(out)


def of_gzip(data: bytes, random: Random) -> bytes:
    """What is inside of it."""
    inside = zlib.decompressobj(31).decompress(data, _SMALL)
    return gzip.compress(mutate(inside, random), 1, mtime=0)


def of_json(data: bytes, random: Random) -> bytes:
    """Values, keys, types and nesting; now and then the text itself."""
    if random.random() < 0.15:
        return of_text(data, random)
    whole = _changed(json.loads(data), random)
    return json.dumps(whole, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def of_pickle(data: bytes, random: Random) -> bytes:
    """Values, keys, types and nesting of one that holds plain values; nothing of it is run."""
    return pickle.dumps(_changed(plain_values(data), random), random.choice((2, 4)))


def of_utf_16(data: bytes, random: Random) -> bytes:
    """The text in it; its marks stay."""
    coding = "utf-16-le" if data[0] == 0xFF else "utf-16-be"
    inside = mutate(data[2:].decode(coding, "surrogatepass").encode("utf-8", "surrogatepass"), random)
    return data[:2] + inside.decode("utf-8", "surrogateescape").encode(coding, "surrogatepass")


def _changed(whole: Any, random: Random) -> Any:
    """Change one value, anywhere in lists and objects."""
    parent, key = _place(whole, random)
    if parent is None:
        return value(random)
    kind = random.randrange(8)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        other, other_key = _place(whole, random)
        parent[key] = copy.deepcopy(other[other_key])  # what is shared in a pickle stays shared
    elif kind == 2 and isinstance(parent, dict):
        parent[random.choice((*parent, *TEXTS[:-1]))] = parent.pop(key)
    elif kind == 3 and isinstance(parent, list):
        parent[key:key] = [parent[key]] * random.choice((1, 2, 100))
    elif kind == 4 and isinstance(parent[key], int | float):
        parent[key] = random.choice((str(parent[key]), float(parent[key]), -parent[key], [parent[key]]))
    elif kind == 5 and isinstance(parent[key], str):
        parent[key] = random.choice((parent[key] * 2, parent[key][:1], *TEXTS))
    else:
        parent[key] = value(random)
    return whole


def _place(whole: Any, random: Random) -> tuple[Any, Any]:
    """Return a list or object and a key of it, anywhere."""
    parent, key, here = None, None, whole
    while isinstance(here, dict | list) and here:
        parent = here
        key = random.choice(list(parent)) if isinstance(parent, dict) else random.randrange(len(parent))
        here = parent[key]
        if random.random() < 0.15:
            break
    return parent, key


def of_text(data: bytes, random: Random) -> bytes:
    """Lines and words."""
    lines = data.splitlines(keepends=True) or [b""]
    at = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines[at:at] = [lines[at]] * random.choice((1, 2, 100))
    elif kind == 2:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        words = re.split(rb"([\s,;:\"<>=]+)", lines[at])
        word = random.choice((*TEXTS, str(number(random)), str(random.choice(REALS))))
        words[random.randrange(len(words))] = word.encode("utf-8", "surrogatepass")
        lines[at] = b"".join(words)
    return b"".join(lines)


def of_sqlite(data: bytes, random: Random) -> bytes:
    """Cells, rows, tables, columns, declared types, views in the place of tables."""
    with sqlite3.connect(":memory:") as base:
        base.deserialize(data)
        base.execute("PRAGMA journal_mode=OFF")
        base.execute(f"PRAGMA max_page_count={2 * _SMALL >> 12}")  # long texts in all rows would be larger than memory
        tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = random.choice(tables)
        # Mostly where there is something.
        for _ in range(8):
            if base.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]:
                break
            table = random.choice(tables)
        columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
        column, other = random.choice(columns), random.choice(columns)
        kind = random.randrange(12)
        if kind == 0:
            base.execute(f'DROP TABLE "{table}"')
        elif kind == 1:
            base.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        elif kind == 2:
            base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{random.choice(("x", "start", "end"))}"')
        elif kind == 3:
            base.execute(f'DELETE FROM "{table}" WHERE rowid % ? = 0', (random.choice((1, 2, 3)),))
        elif kind == 4:
            base.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 100')
        elif kind == 5:
            base.execute(f'UPDATE "{table}" SET "{column}" = "{other}"')
        elif kind == 6:
            base.execute(f'ALTER TABLE "{table}" RENAME TO gone')
            base.execute(f'CREATE VIEW "{table}" AS SELECT * FROM gone')
        elif kind == 7:
            base.execute(f'ALTER TABLE "{table}" RENAME TO gone')
            declared = ", ".join(
                f'"{each}" {random.choice(("TEXT", "INTEGER", "REAL", "BLOB", ""))}' for each in columns
            )
            base.execute(f'CREATE TABLE "{table}" ({declared})')
            base.execute(f'INSERT INTO "{table}" SELECT * FROM gone')
        else:
            new = value(random)
            new = json.dumps(new) if isinstance(new, list | dict) else new
            new = new.encode("utf-8", "surrogatepass") if isinstance(new, str) and random.random() < 0.3 else new
            new = new.encode("utf-8", "replace").decode() if isinstance(new, str) else new
            new = float(new) if isinstance(new, int) and not -(2**63) <= new < 2**63 else new
            rows = random.choice(("rowid % 3 = 0", "1", f'rowid = (SELECT max(rowid) FROM "{table}")'))
            base.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE {rows}', (new,))
        base.commit()
        return bytes(base.serialize())


def of_tar(data: bytes, random: Random) -> bytes:
    """One member's bytes, name or kind; a member too many, one too few."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [(each, _content(archive, each)) for each in archive]
    at = random.randrange(len(members))
    info, content = members[at]
    kind = random.randrange(20)
    if kind == 0:
        del members[at]
    elif kind == 1:
        info.name = random.choice(("/etc/hostname", "../out.json", "a/../../b", *(each.name for each, _ in members)))
    elif kind == 2:
        info.type = random.choice(
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
        )
        info.linkname = random.choice(("/etc/hostname", "../../x", members[0][0].name))
    elif kind == 3:
        members.append((info, content))
    else:
        members[at] = (info, mutate(content, random))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for each, bytes_of in members:
            each.size = len(bytes_of) if each.isreg() else 0
            archive.addfile(each, io.BytesIO(bytes_of))
    return out.getvalue()


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if not member.isreg():
        return b""
    stream = archive.extractfile(member)
    assert stream is not None
    return stream.read()


def of_zip(data: bytes, random: Random) -> bytes:
    """One member's bytes or name; a member too many, one too few."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(each.filename, archive.read(each)) for each in archive.infolist() if each.file_size < _SMALL]
    at = random.randrange(len(members))
    kind = random.randrange(8)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at] = (random.choice(("/etc/hostname", "../out.json", "a/../../b", members[0][0])), members[at][1])
    elif kind == 2:
        members.append(members[at])
    else:
        members[at] = (members[at][0], mutate(members[at][1], random))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members:
            with suppress(UserWarning):
                archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


# Protocol buffers: a field is [number, wire type, value], a message a list of fields; bytes that parse as a message are
# one.


def _fields(data: bytes, depth: int = 0) -> list[list[Any]] | None:
    found: list[list[Any]] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        if not 0 < field < 1 << 29 or wire not in (0, 1, 2, 5):
            return None
        if wire == 0:
            whole, at = _varint(data, at)
            found.append([field, wire, whole])
            continue
        size = 8 if wire == 1 else 4
        if wire == 2:
            size, at = _varint(data, at)
        if size > len(data) - at:
            return None
        body = data[at : at + size]
        at += size
        inner = None
        if wire == 2 and body and depth < 8:
            with suppress(ValueError):
                inner = _fields(body, depth + 1)
        found.append([field, wire, body if inner is None else inner])
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    whole = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        whole |= (byte & 0x7F) << shift
        if byte < 0x80:
            return whole, at
        shift += 7
    raise ValueError("cut")


def varint(whole: int) -> bytes:
    """A number as protocol buffers write it."""
    out = bytearray()
    whole %= 1 << 64
    while whole >= 0x80:
        out.append(whole & 0x7F | 0x80)
        whole >>= 7
    out.append(whole)
    return bytes(out)


def _message(fields: list[list[Any]]) -> bytes:
    out = b""
    for field, wire, body in fields:
        out += varint(field << 3 | wire)
        if wire == 0:
            out += varint(body)
            continue
        content = _message(body) if isinstance(body, list) else body
        out += (varint(len(content)) if wire == 2 else b"") + content
    return out


def of_protobuf(data: bytes, random: Random) -> bytes:
    """Numbers, wire types and values of fields, at any depth."""
    whole = _fields(data)
    if not whole:
        raise ValueError("no message")
    at = random.randrange(len(whole))
    message = whole
    while isinstance(message[at][2], list) and message[at][2] and random.random() < 0.8:
        message = message[at][2]
        at = random.randrange(len(message))
    field = message[at]
    kind = random.randrange(9)
    if kind == 0:
        del message[at]
    elif kind == 1:
        message[at:at] = [field] * random.choice((1, 2, 100))
    elif kind == 2:
        field[0] = random.choice((1, 2, 3, 5, 8, 13, 60, random.randrange(1, 200)))
    elif kind == 3:
        other = random.choice(message)
        field[1:] = other[1:]
    elif kind == 4:
        message.insert(at, [random.randrange(1, 120), 0, number(random)])
    elif kind == 5 and field[1] == 2:
        inner = [field]
        for _ in range(random.choice((1, 3, 200))):
            inner = [[field[0], 2, inner]]
        message[at] = inner[0]
    elif field[1] == 0:
        field[2] = number(random)
    elif field[1] == 2 and not isinstance(field[2], list):
        body = random.choice((*TEXTS, None, None)) if random.random() < 0.5 else None
        field[2] = of_bytes(field[2], random) if body is None else body.encode("utf-8", "surrogatepass")
    elif field[1] != 2:
        size = 8 if field[1] == 1 else 4
        field[2] = (number(random) % (1 << 8 * size)).to_bytes(size, "little")
    else:
        message[at] = [field[0], 0, number(random)]
    return _message(whole)


def of_records(data: bytes, random: Random) -> bytes:
    """OTF2: a chunk's head, then records of a type, a length, and numbers that say how many bytes they take."""
    begin = 18 if data[:1] == b"\3" else 0
    at, records = begin, []
    while at < len(data) and data[at] >= 4:
        if data[at] == 5:  # a time stamp has no length
            records.append((at, at + 9))
            at += 9
            continue
        if at + 2 > len(data) or data[at + 1] == 0xFF:
            break
        records.append((at, at + 2 + data[at + 1]))
        at += 2 + data[at + 1]
    if not records:
        raise ValueError("no record")
    out = [bytearray(data[a:b]) for a, b in records]
    tail = data[records[-1][1] :]
    at = random.randrange(len(out))
    record = out[at]
    kind = random.randrange(8)
    if kind == 0:
        del out[at]
    elif kind == 1:
        out[at:at] = [record] * random.choice((1, 2, 100))
    elif kind == 2:
        other = random.randrange(len(out))
        out[at], out[other] = out[other], out[at]
    elif kind == 3:
        record[0] = random.choice((5, 10, 11, 12, 13, random.randrange(4, 120)))
    elif len(record) > 2:
        place = random.randrange(2, len(record))
        if kind == 4:
            record[place] = random.choice((0, 1, 2, 4, 8, 0xFF, random.randrange(256)))
        elif kind == 5:
            size = random.choice((1, 2, 4, 8))
            record[place : place + 1] = bytes([size]) + (number(random) % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == 6:
            record[place:place] = b"\xff" * random.choice((1, 2, 8))
        else:
            record[place : place + 1] = random.choice(TEXTS[:-1]).encode("utf-8", "surrogatepass")[:60] + b"\0"
        if record[0] != 5:
            record[1] = min(len(record) - 2, 0xFE)
    return bytes(data[:begin]) + b"".join(out) + tail


def of_blocks(data: bytes, random: Random) -> bytes:
    """Our own block file: a chunk's kind, numbers and payload, with sums that are right again."""
    chunks: list[list[Any]] = []
    at = 0
    while at + 32 <= len(data) and data[at : at + 4] == b"SRBK":
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        chunks.append([bytearray(data[at : at + 32]), data[at + 32 : at + 32 + size]])
        at += 32 + size
    at = random.randrange(len(chunks))
    head, payload = chunks[at]
    kind = random.randrange(8)
    if kind == 0:
        del chunks[at]
    elif kind == 1:
        chunks.insert(random.randrange(len(chunks)), [bytearray(head), payload])
    elif kind == 2:
        head[4] = random.randrange(1, 22)
    elif kind == 3:
        place = random.choice((12, 16))
        head[place : place + 4] = (number(random) % (1 << 32)).to_bytes(4, "little")
    elif kind == 4 and payload[:1] in (b"{", b"["):
        chunks[at][1] = of_json(payload, random)
    else:
        chunks[at][1] = _column(payload, random)
    out = b""
    for head, payload in chunks:
        head[8:12] = len(payload).to_bytes(4, "little")
        head[20:24] = native.core.crc32c(bytes(payload)).to_bytes(4, "little")
        head[28:32] = native.core.crc32c(bytes(head[:28])).to_bytes(4, "little")
        out += bytes(head) + payload
    return out


def _column(payload: bytes, random: Random) -> bytes:
    """Change the inside of one of the zstd frames of a payload (packed anew as stored bytes), or any bytes."""
    marks = [each.start() for each in re.finditer(b"\x28\xb5\x2f\xfd", payload)]
    if not marks or random.random() < 0.3:
        return of_bytes(payload, random)
    at = random.choice(marks)
    inside, left = native.core.ZstdStream().decompress(payload[at:], _SMALL)
    end = len(payload) - len(left)
    frame = stored_frame(of_bytes(inside, random))
    if at >= 4 and int.from_bytes(payload[at - 4 : at], "little") == end - at:
        return payload[: at - 4] + len(frame).to_bytes(4, "little") + frame + payload[end:]
    return payload[:at] + frame + payload[end:]


def stored_frame(data: bytes) -> bytes:
    """A zstd frame that holds the bytes as they are: RFC 8878, 3.1.1."""
    out = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")  # one segment, its size in four bytes
    pieces = [data[i : i + 100_000] for i in range(0, len(data), 100_000)] or [b""]
    for piece in pieces:
        out += (len(piece) << 3 | (piece is pieces[-1])).to_bytes(3, "little") + piece
    return out
