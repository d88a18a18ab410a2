"""The steps of all ranks as one small picture of HTML: a row per rank, a column per step, the darker the longer."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from strobe.model.units import format_ns
from strobe.present.html_parts import escape
from strobe.present.summary import Ranks
from strobe.present.text_page import sentence
from strobe.ranks.step_grid import step_grid, step_values
from strobe.tables.column_arrays import Floats
from strobe.trace.trace import Trace

_MOST_ROWS, _MOST_COLUMNS = 256, 1024
_COLOUR = (217, 101, 47)  # on light and on dark ground
_FAINTEST = 20  # of 255: that a rank has the step at all
_WORDS = {"duration": "length of the step", "wait": "wait for other ranks", "lateness": "lateness at collectives"}


def rank_picture(trace: Trace, ranks: Ranks | None) -> str:
    """Return a section with what the Overview has of the ranks, "" where a run has no steps of several ranks."""
    if ranks is None:
        return ""
    grid = step_grid(trace)
    values = step_values(trace, ranks.value)
    if len(values) < 2 or not np.isfinite(values).any():
        return ""
    most = float(np.nanmax(values))
    worst_row, worst = (int(each) for each in np.unravel_index(np.nanargmax(values), values.shape))
    rank = grid.rank[worst_row]
    who = f"process {int(grid.process[worst_row])}" if rank is None else f"rank {rank}"
    shown = f"ranks from top to bottom, steps {grid.step[0]} to {grid.step[-1]} from left to right"
    about = f"{_WORDS[ranks.value]}, {shown}; most: {format_ns(round(most))}, {who} in step {grid.step[worst]}"
    source = base64.b64encode(_png(_cells(values) / max(most, 1.0))).decode("ascii")
    text = f"<p>{escape(sentence(ranks.text))}</p>" if ranks.text else ""
    return (
        f'<section id="ranks"><h2>Ranks</h2>{text}<img alt="{escape(about)}" src="data:image/png;base64,{source}" '
        f'style="width:100%;height:{min(320, max(48, 12 * len(values)))}px;image-rendering:pixelated">'
        f"<p>{escape(sentence(about))}</p></section>\n"
    )


def _cells(values: Floats) -> Floats:
    """Return the values with the most of what shares a row or column; below 0 (earlier than others) is 0."""
    for axis, most in ((0, _MOST_ROWS), (1, _MOST_COLUMNS)):
        edges = np.unique(np.linspace(0, values.shape[axis], min(most, values.shape[axis]) + 1).astype(np.int64))[:-1]
        values = np.fmax.reduceat(values, edges, axis=axis)
    return np.where(values < 0, 0.0, values)


def _png(share: Floats) -> bytes:
    """Return shares from 0 to 1 as a picture of one colour, more or less transparent; NaN is not drawn (RFC 2083)."""
    pixels = np.zeros((*share.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _COLOUR
    known = np.isfinite(share)
    pixels[known, 3] = np.round(_FAINTEST + share[known] * (255 - _FAINTEST))
    height, width = share.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, 4 * width)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
