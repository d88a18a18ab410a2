"""What a GPU is used for in each cell, against a brute force over every nanosecond; what rows are what."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from strobe.model.kinds import GROUPS
from strobe.server.pictures.cell_tiles import TILE_CELLS
from strobe.server.pictures.gpu_rows import gpu_shares, row_order
from strobe.server.trace_context import TraceContext
from tests.unit.hand_made import Span, make_trace, span

KERNELS = {"gemm": "compute", "ncclKernel_AllReduce": "communication", "copy": "copy"}


def stream(chance: random.Random, end: int) -> list[Span]:
    spans, at = list[Span](), 0
    while (begin := at + chance.randrange(30)) < end:
        at = begin + 1 + chance.randrange(40)
        name = chance.choice(list(KERNELS))
        spans.append(span(name, begin, at, paradigm="cuda", role="copy" if name == "copy" else "kernel"))
    return spans


@pytest.mark.parametrize("level", [0, 3])
def test_each_moment_of_a_gpu_counts_once(level: int) -> None:
    chance = random.Random(3)
    cell, end = 1 << level, TILE_CELLS << level
    streams = {f"stream {number}": stream(chance, end + 50) for number in (7, 8)}
    context = TraceContext(make_trace({"main": [span("main", 0, end)], **streams}), Path())
    runs = {group: np.zeros(end, dtype=bool) for group in KERNELS.values()}
    for spans in streams.values():
        for one in spans:
            runs[KERNELS[one.name]][one.start_ns : min(end, one.end_ns)] = True
    alone = {
        "compute": runs["compute"],
        "communication": runs["communication"] & ~runs["compute"],
        "copy": runs["copy"] & ~runs["communication"] & ~runs["compute"],
    }
    body = gpu_shares(context, (1, 2), level, 0).data
    (size,) = struct.unpack_from("<I", body, 4)
    assert json.loads(body[8 : 8 + size])["planes"] == len(GROUPS)
    planes = np.frombuffer(body, np.uint8, offset=8 + size).reshape(len(GROUPS), TILE_CELLS)
    for group, busy in alone.items():
        wanted = 255 * busy.reshape(TILE_CELLS, cell).mean(axis=1)
        assert np.abs(planes[GROUPS.index(group)] - wanted).max() <= 0.5, group


def test_rows_of_main_threads_and_backward_passes_are_known() -> None:
    node = "autograd::engine::evaluate_function: MulBackward0"
    threads = {"helper": [span("work", 0, 50)], "engine": [span(node, 10, 20)], "main": [span("main", 0, 100)] * 1}
    order = row_order(TraceContext(make_trace(threads), Path()))
    assert order["backward"] == [1]
    assert len(order["main"]) == 1
    assert order["main"] != order["backward"]
    assert order["system"] == []
