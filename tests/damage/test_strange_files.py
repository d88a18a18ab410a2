"""What is not a file, or never ends, in a trace folder: one sentence at once."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import strobe
from strobe.errors import TraceError
from strobe.trace.quality import counters

Copied = Callable[[str], Path]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            made.bind(path.name)
        finally:
            os.chdir(before)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [_pipe, _socket, _endless, _circle, _folder])
@pytest.mark.parametrize("name", ["process-1.blocks", "job.json", "notes.txt", "process-2.tiles"])
def test_what_is_not_a_file_is_named_at_once(copied: Copied, make: Callable[[Path], None], name: str) -> None:
    folder, begun = copied("strange"), time.monotonic()
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    if make is _folder and name in ("notes.txt", "process-2.tiles"):
        with strobe.open(folder) as trace:
            assert len(trace.ask("steps")) > 0  # without it
    elif make is _folder and name != "job.json":
        with strobe.open(folder) as trace:
            assert any(name in str(row) for row in trace.quality.rows())
    else:
        with pytest.raises(TraceError, match=name):
            strobe.open(folder)
    assert time.monotonic() - begun < 30


def test_a_sparse_block_file_of_32_gb_opens_at_once(copied: Copied) -> None:
    folder = copied("sparse")
    path = max(folder.glob("*.blocks"), key=lambda each: each.stat().st_size)
    with strobe.open(folder) as trace:
        spans = trace.span_count
    size = path.stat().st_size
    os.truncate(path, 32 << 30)
    begun = time.process_time()
    with strobe.open(folder) as trace:
        assert trace.span_count == spans
        assert counters(trace)["bytes_lost"] == (32 << 30) - size
    assert time.process_time() - begun < 10


def test_a_manifest_of_32_gb_is_refused_at_once(copied: Copied) -> None:
    folder = copied("sparse")
    os.truncate(folder / "job.json", 32 << 30)
    with pytest.raises(TraceError, match=r"'job.json' has 34\.4 GB, more than strobe writes"):
        strobe.open(folder)
