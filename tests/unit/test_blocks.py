"""The block format: the native reader and its twin agree, on real files, on any file, on damaged ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strobe
from strobe.errors import TraceError
from strobe.native import ProcessReader
from strobe.present.summary import summarise
from strobe.trace.archive import process_files
from tests.unit import blocks_twin as twin

pytestmark = pytest.mark.every_python

FOREVER = (0, 2**62)
PROGRAM = """
import threading
def leaf(n):
    return n
def work():
    for n in range(3000):
        leaf(n)
threads = [threading.Thread(target=work, name=f"helper {i}") for i in range(2)]
[t.start() for t in threads]
work()
[t.join() for t in threads]
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The block file of a real recording: three threads, several blocks each."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "strobe", "run", "-q", "-o", "out", "program.py"]
    subprocess.run(command, cwd=folder, check=True)
    (files,) = process_files(folder / "out.strobe")
    return files.blocks


def native_spans(reader, number):
    """Return (row, start, end or None, path) of every span, as the twin does."""
    spans = {name: values.tolist() for name, values in reader.spans(number, *FOREVER).items()}
    rows = zip(*(spans[name] for name in ("row", "start_ns", "duration_ns", "call_path", "complete")), strict=True)
    return [(row, start, start + duration if complete else None, path) for row, start, duration, path, complete in rows]


def test_both_read_the_same_from_a_real_recording(recorded):
    reader, known = ProcessReader(str(recorded), None), twin.read(recorded.read_bytes())
    assert known.bytes_lost == 0
    assert len(known.locations) == 3
    assert sum(map(len, known.spans.values())) > 9000
    for number, (thread_id, name) in known.locations.items():
        described = next(each for each in reader.locations() if each["id"] == number)
        assert (described["thread_id"], described["name"]) == (thread_id, name)
        assert native_spans(reader, number) == known.spans[number]
    shown = [
        (i, paradigm, role, line, name, file, module)
        for i, name, paradigm, role, file, line, module in reader.regions()
    ]
    assert shown == known.regions
    paths = reader.call_paths()
    assert list(zip(paths["parent"].tolist(), paths["region"].tolist(), strict=True)) == list(known.paths.values())
    # Several threads have a metric of one name each: in which order is up to the reader.
    read = [
        (each["name"], list(zip(each["time_ns"].tolist(), each["value"].tolist(), strict=True)))
        for each in reader.metrics()
    ]
    assert sorted(read) == sorted((known.metrics[each][0], known.samples.get(each, [])) for each in known.metrics)


@st.composite
def programs(draw):
    """What one thread does: (time, whether it enters a span or leaves the innermost one), in order of time."""
    events, depth, now = [], 0, draw(st.integers(0, 10**15))
    for _ in range(draw(st.integers(0, 60))):
        now += draw(st.one_of(st.integers(0, 3), st.integers(0, 10**10)))
        enters = depth == 0 or draw(st.booleans())
        depth += 1 if enters else -1
        events.append((now, enters))
    return events


def spans_of(events):
    """Return (start, end or None, depth) of every span, in order of start."""
    spans, stack = [], []
    for now, enters in events:
        if enters:
            stack.append(len(spans))
            spans.append((now, None, len(stack) - 1))
        else:
            row = stack.pop()
            spans[row] = (spans[row][0], now, spans[row][2])
    return spans


def encode(events, block_rows):
    """Write a program as the recorder does: a block when `block_rows` spans began, ends of older spans beside it."""
    deepest = max((depth for _, _, depth in spans_of(events)), default=0)
    out = [
        twin.process(),
        twin.regions([(i + 1, 1, 1, 0, f"f{i}", "", "") for i in range(deepest + 1)]),
        twin.location(0, 7, "main"),
        twin.paths(0, [(i - 1 if i else twin.NO_PATH, i + 1) for i in range(deepest + 1)]),
    ]
    base, rows, stack, carry, closes = 0, [], [], [], []
    for at, (now, enters) in enumerate(events):
        if enters:
            stack.append((base + len(rows), now, len(stack), len(stack) + 1))
            rows.append((now, None, len(stack) - 1))
        else:
            row, start, path, _ = stack.pop()
            if row < base:
                closes.append((row, now))
            else:
                rows[row - base] = (start, now - start, path)
        if len(rows) == block_rows or at == len(events) - 1:
            out.append(twin.block(0, base, rows, last_ns=now, carry=carry, closes=closes))
            base, rows, carry, closes = base + len(rows), [], list(stack), []
    return b"".join(out)


def sums_are_those_of_the_spans(reader):
    """Sums by call path, which need not know what is inside of what, beside sums over spans, which tell it."""
    spans, found = reader.spans(0, *FOREVER), reader.path_sums([0])
    for path in range(len(found["calls"])):
        here = spans["call_path"] == path
        lasting = spans["duration_ns"][here]
        assert found["calls"][path] == here.sum()
        assert found["total_ns"][path] == lasting.sum()
        assert found["own_ns"][path] == spans["self_ns"][here].sum()
        if here.any():
            assert (found["min_ns"][path], found["max_ns"][path]) == (lasting.min(), lasting.max())


@given(programs(), st.integers(1, 20))
@settings(max_examples=150, deadline=None)
def test_any_nest_of_spans_comes_back_from_any_cut_into_blocks(tmp_path_factory, events, block_rows):
    spans, last_ns = spans_of(events), events[-1][0] if events else 0
    path = tmp_path_factory.getbasetemp() / "any.blocks"
    path.write_bytes(encode(events, block_rows))
    reader, known = ProcessReader(str(path), None), twin.read(path.read_bytes())
    expected = [(row, start, end, depth) for row, (start, end, depth) in enumerate(spans)]
    assert known.spans.get(0, []) == expected
    assert native_spans(reader, 0) == expected
    arrays = reader.spans(0, *FOREVER)
    for row, (start, end, depth) in enumerate(spans):
        above = [r for r in range(row) if spans[r][2] == depth - 1]
        assert arrays["parent"][row] == (above[-1] if depth else -1)
        inside = [spans[r] for r in range(len(spans)) if spans[r][2] == depth + 1 and arrays["parent"][r] == row]
        stop = last_ns if end is None else end
        assert arrays["self_ns"][row] == stop - start - sum((last_ns if e is None else e) - s for s, e, _ in inside)
    sums_are_those_of_the_spans(reader)


@given(programs(), st.integers(1, 20), st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_a_window_holds_exactly_the_spans_that_overlap_it(tmp_path_factory, events, block_rows, from_ppm, to_ppm):
    spans, last_ns = spans_of(events), events[-1][0] if events else 0
    path = tmp_path_factory.getbasetemp() / "window.blocks"
    path.write_bytes(encode(events, block_rows))
    first = spans[0][0] if spans else 0
    low, high = sorted(first + (last_ns - first) * ppm // 10**6 for ppm in (from_ppm, to_ppm))
    high += 1
    found = ProcessReader(str(path), None).spans(0, low, high)["row"].tolist()
    expected = []
    for row, (start, end, _) in enumerate(spans):
        stop = max(last_ns, start) if end is None else end
        if start < high and (stop > low or start == stop >= low):
            expected.append(row)
    assert found == expected


@given(st.integers(0, 10**6), st.integers(1, 200), st.binary(min_size=1, max_size=64))
@settings(max_examples=60, deadline=None)
def test_damage_costs_only_what_it_hits(tmp_path_factory, where_ppm, length, noise):
    sound = encode([(i * 5, i % 2 == 0) for i in range(400)], 10)
    at = len(sound) * where_ppm // 10**6
    hit = (noise * length)[:length]
    damaged = sound[:at] + hit[: len(sound) - at] + sound[at + length :]
    path = tmp_path_factory.getbasetemp() / "damaged.blocks"
    path.write_bytes(damaged)
    try:
        reader = ProcessReader(str(path), None)
    except ValueError:
        assert at < 8, "only a damaged beginning makes it no block file"
        return
    known = twin.read(damaged)
    assert reader.quality()["bytes_lost"] == known.bytes_lost
    # Paths that the damage took are shown by the native reader only where a later chunk tells how many there were.
    if known.paths:
        assert native_spans(reader, 0) == known.spans.get(0, [])
        sums_are_those_of_the_spans(reader)


@pytest.mark.parametrize("lost", [0, 1, 5, 10])
def test_sums_are_those_of_what_is_left_when_a_block_is_damaged(tmp_path, lost):
    events = [(0, True), (3, True), *((10 + i * 5, i % 6 < 3) for i in range(60)), (400, False), (450, False)]
    file = bytearray(encode(events, 3))
    at = -1
    for _ in range(lost + 1):
        at = file.find(bytes([*twin.MAGIC, twin.SPANS]), at + 1)
    assert at > 0, "as many blocks as are lost in turn"
    file[at + 40] ^= 0xFF
    (tmp_path / "one.blocks").write_bytes(file)
    reader = ProcessReader(str(tmp_path / "one.blocks"), None)
    assert reader.quality()["bytes_lost"] > 0
    sums_are_those_of_the_spans(reader)


def test_paths_behind_a_damaged_chunk_keep_their_names(tmp_path):
    parts = [
        twin.process(),
        twin.regions([(1, 1, 1, 0, "first", "", ""), (2, 1, 1, 0, "second", "", "")]),
        twin.location(0, 7, "main"),
        twin.paths(0, [(twin.NO_PATH, 1)])[:-1] + b"\xff",
        twin.paths(1, [(twin.NO_PATH, 2)]),
        twin.block(0, 0, [(0, 5, 0), (10, 5, 1)], last_ns=15),
        twin.end(ended_ns=20),
    ]
    (tmp_path / "process-1.blocks").write_bytes(b"".join(parts))
    (tmp_path / "job.json").write_text("{}")
    trace = strobe.open(tmp_path)
    assert trace.sql("select name from spans order by start_ns").rows() == [("<lost region>",), ("second",)]


@pytest.mark.parametrize("content", [b"", b"SRBK", b"\x89PNG\r\n\x1a\n" * 10, twin.chunk(99, b"later version")])
def test_a_file_that_holds_no_process_is_one_sentence(tmp_path, content):
    (tmp_path / "process-1.blocks").write_bytes(content)
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(TraceError, match=r"process-1\.blocks"):
        strobe.open(tmp_path)


def test_a_process_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    sound = [
        twin.process(pid=1),
        twin.regions([(1, 1, 1, 0, "work", "", "")]),
        twin.location(0, 7, "main"),
        twin.paths(0, [(twin.NO_PATH, 1)]),
        twin.block(0, 0, [(0, 5, 0)], last_ns=5),
        twin.end(ended_ns=20),
    ]
    (tmp_path / "process-1.blocks").write_bytes(b"".join(sound))
    (tmp_path / "process-2.blocks").write_bytes(b"")
    (tmp_path / "job.json").write_text("{}")
    trace = strobe.open(tmp_path)
    assert trace.spans().column("duration_ns") == [5]
    (said,) = [row for row in trace.quality.to_pylist() if row["what"] == "unreadable"]
    assert said["pid"] == 2
    assert "process-2.blocks" in said["text"]
    assert any("process-2.blocks" in loss for loss in summarise(trace).quality.losses)


@pytest.mark.parametrize("validation", [(), (30,)], ids=["of older versions", "with validations"])
def test_what_was_folded_reads_back(tmp_path: Path, validation: tuple[int, ...]) -> None:
    """Loops, classes, records and statistics as the twin writes them, with what a recovery writes again skipped."""
    rows = [
        (0, 1_000, 500, 12, 2**63 + 5, 0, 0, 1_000, 100, 50, 200, 100),
        (0, 1_500, 700, 12, 7, 1, 2, 1_500, 0, 50, 200, 100),
        (0, 2_200, 400, 15, 2**63 + 5, 0, 1, 2_450, 1, 2, 3, 4),
    ]
    rows = [(*row, *validation) for row in rows]
    folded = [
        (0, 0, 2**32 - 1, 0, 0, -500, 0, 0, 0.0, {}),
        (0, 1, 0, 3, 600, 450, 100, 300, 140_000.0, {13: 1, 15: 1, 16: 1}),
    ]
    path = tmp_path / "process-1.blocks"
    path.write_bytes(
        twin.process()
        + twin.regions([(1, 1, 1, 0, "outer", "", ""), (2, 1, 1, 0, "inner", "", "")])
        + twin.location(0, 1, "main thread")
        + twin.paths(0, [(twin.NO_PATH, 1), (0, 2)])
        + twin.iterations(0, rows[:2])
        + twin.loops([(0, 2, "Optimizer.step#SGD.step", 900, 7, -1, "because", "high")])
        + twin.classes([[], [2, 0]])
        + twin.iterations(1, rows[1:])
        + twin.statistics(folded)
        + twin.statistics(folded[1:])
        + twin.end()
    )
    reader = ProcessReader(str(path), None)
    names = ("loop", "start_ns", "duration_ns", "events", "path_hash", "class_id", "detail", "detail_ns")
    parts = ("data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "validation_ns")[: 4 + len(validation)]
    found = reader.iterations()
    assert list(zip(*(found[name].tolist() for name in names + parts), strict=True)) == rows
    assert found["rest_ns"].tolist() == [each - sum(validation) for each in (50, 350, 390)]
    assert found["validation_ns"].tolist() == [sum(validation)] * 3
    assert reader.classes() == [[], [2, 0]]
    (loop,) = reader.loops()
    assert (loop["kind"], loop["name"], loop["ended_ns"]) == ("optimizer", "Optimizer.step#SGD.step", -1)
    sums = reader.statistics()
    assert sums["class_id"].tolist() == [2**32 - 1, 0]
    assert sums["count"].tolist() == [0, 6]
    assert sums["own_ns"].tolist() == [-500, 900]
    assert (sums["min_ns"][1], sums["max_ns"][1], sums["sum_squares"][1]) == (100, 300, 280_000.0)
    assert {at: n for at, n in enumerate(sums["histogram"][1].tolist()) if n} == {13: 2, 15: 2, 16: 2}
    assert reader.quality()["chunks_damaged"] == 0
