"""The index beside a block file: with it a trace is what it is without it, whatever happened to either file since."""

import json
import os
import random
from pathlib import Path

import pytest

import strobe
from strobe import native
from strobe.api.trace import Trace

pytestmark = pytest.mark.every_python

SPANS = 9000  # three blocks; the outermost spans are open where blocks begin and end
HEADER, INDEX_HEADER, INDEXED_BLOCK = 32, 64, 40


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of one process with nested spans over several blocks, attributes, and a metric."""
    folder = tmp_path_factory.mktemp("index")
    events: list[dict[str, object]] = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"around{depth}",
            "pid": 1,
            "tid": 1,
            "ts": depth,
            "dur": SPANS * 3 - depth,
        }
        for depth in range(5)
    ]
    draw = random.Random(3)
    for number in range(SPANS):
        call = {"ph": "X", "cat": "cuda_runtime", "name": f"call{number % 3}", "pid": 1, "tid": 1}
        events.append({**call, "ts": 10 + number * 20, "dur": draw.randrange(20), "args": {"correlation": number}})
    events += [{"ph": "C", "name": "memory", "pid": 1, "ts": at, "args": {"bytes": at * 2}} for at in range(50)]
    path = folder / "made.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return strobe.open(path).path


@pytest.fixture
def copied(source: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The block file of a trace of one's own, without an index; and where that will be."""
    folder = tmp_path / "trace.strobe"
    folder.mkdir()
    for path in source.iterdir():
        if path.suffix != ".index":
            (folder / path.name).write_bytes(path.read_bytes())
    (blocks,) = folder.glob("*.blocks")
    return blocks, blocks.with_suffix(".index")


def index(blocks: Path) -> bool:
    return native.ProcessReader(str(blocks)).write_index()


def everything(trace: Trace) -> list[object]:
    tables = (trace.spans(), trace.metrics(), trace.locations, trace.regions, trace.side_table("call_spans"))
    found = [table.rows() for table in tables]
    return [*found, [row for row in trace.quality.rows() if row[2] != "size_bytes"]]


def opened(blocks: Path) -> list[object]:
    return everything(strobe.open(blocks.parent))


def test_a_trace_that_is_opened_by_its_index_is_the_same(copied: tuple[Path, Path]) -> None:
    blocks, beside = copied
    before = opened(blocks)
    assert not beside.exists()  # too small to be worth one
    assert index(blocks)
    assert len(before[0]) == SPANS + 5  # type: ignore[arg-type]
    # That it was used shows where the file is damaged in a way that only reading all of it finds: see below.
    assert opened(blocks) == before
    assert not index(blocks)  # there is one already


@pytest.mark.parametrize("at", [0, 9, 17, 40, 63, 64, 100, -1])
def test_a_damaged_index_changes_nothing(copied: tuple[Path, Path], at: int) -> None:
    blocks, beside = copied
    before = opened(blocks)
    index(blocks)
    bytes_ = bytearray(beside.read_bytes())
    bytes_[at] ^= 0x41
    beside.write_bytes(bytes_)
    assert opened(blocks) == before
    beside.write_bytes(bytes_[: len(bytes_) // 2])
    assert opened(blocks) == before


def test_an_index_of_what_the_file_was_is_not_used(copied: tuple[Path, Path], tmp_path: Path) -> None:
    blocks, beside = copied
    index(blocks)
    stale = beside.read_bytes()
    # Torn: the last block and what follows are gone. The same bytes without any index say what is to be read.
    blocks.write_bytes(blocks.read_bytes()[:-3000])
    beside.unlink()
    without = opened(blocks)
    assert any(row[2] == "bytes_lost" and row[3] for row in without[-1])  # type: ignore[attr-defined]
    beside.write_bytes(stale)
    assert opened(blocks) == without
    assert not index(blocks)  # what is damaged is read to be counted, each time


def test_a_block_that_is_damaged_later_is_left_out_and_counted(copied: tuple[Path, Path]) -> None:
    blocks, beside = copied
    index(blocks)
    first_block = int.from_bytes(beside.read_bytes()[INDEX_HEADER : INDEX_HEADER + 8], "little")
    length = int.from_bytes(blocks.read_bytes()[first_block + 8 : first_block + 12], "little")
    state = blocks.stat()
    bytes_ = bytearray(blocks.read_bytes())
    bytes_[first_block + HEADER + length - 1] ^= 1
    blocks.write_bytes(bytes_)
    os.utime(blocks, ns=(state.st_atime_ns, state.st_mtime_ns))  # as a disk would do it

    def damaged(trace: Trace) -> list[object]:
        return [row["value"] for row in trace.quality.to_pylist() if row["what"] == "chunks_damaged"]

    assert damaged(strobe.open(blocks.parent)) == [1]  # whoever asks for losses has all blocks compared
    by_index = strobe.open(blocks.parent)
    assert len(by_index.spans()) == SPANS + 5 - 4096
    assert damaged(by_index) == [1]

    beside.unlink()
    assert strobe.open(blocks.parent).spans().rows() == by_index.spans().rows()


def test_a_large_file_gets_its_index_when_it_is_opened(
    copied: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from strobe.trace.processes import process_reader

    blocks, beside = copied
    monkeypatch.setattr(process_reader, "_WORTH_AN_INDEX", 1000)
    before = opened(blocks)
    assert beside.stat().st_size > 3 * INDEXED_BLOCK
    assert opened(blocks) == before
