"""Answers as bytes: tables as Arrow IPC streams, everything else as JSON."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Value = TypeVar("Value")

JSON_TYPE = "application/json"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
CELLS_TYPE = "application/octet-stream"


@dataclass(frozen=True)
class Body:
    """An answer: its bytes and their media type."""

    data: bytes
    media_type: str


def arrow_body(table: pa.Table) -> Body:
    """Write a table as an Arrow IPC stream, uncompressed: the browser's reader has no codec, HTTP may compress."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return Body(sink.getvalue().to_pybytes(), ARROW_TYPE)


def picture_body(magic: bytes, header: Mapping[str, object], *parts: npt.NDArray[np.uint8]) -> Body:
    """Return a picture: magic, length of the header as u32, header as JSON padded with spaces to 8 bytes, pixels."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    pixels = (part.tobytes() for part in parts)
    return Body(b"".join((magic, struct.pack("<I", len(text)), text, *pixels)), CELLS_TYPE)


@dataclass(frozen=True)
class JsonText(Generic[Value]):
    """A value that is JSON text already."""

    text: str


def body_of(answer: object) -> Body:
    """Return an answer as it is sent: a Body as it is, a table as Arrow, everything else as JSON."""
    if isinstance(answer, Body):
        return answer
    if isinstance(answer, JsonText):
        return Body(answer.text.encode(), JSON_TYPE)
    if isinstance(answer, pa.Table):
        return arrow_body(answer)
    return Body(json.dumps(answer, allow_nan=False, default=asdict).encode(), JSON_TYPE)
