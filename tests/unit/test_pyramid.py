"""The pyramid against a brute-force computation from the spans: every pixel, at every level, in whatever nesting.

Tolerances, in 255ths of a pixel. A picture whose pixels are bins of the pyramid has what the tiles have: an exact share
that is rounded once (1/2), twice where a pixel is longer than the process lived (1). A row of many locations is the
mean of what was rounded for each (1/2), is rounded itself (1/2), and may come from tiles of rows, which are so (1/2).

In any other window, a pixel of P ns is a sum of bins of b <= P / 4 ns, of which the two at its edges are cut. Of a bin
that is filled by s and covered by f, f * s is taken; the truth lies between max(0, s - (1 - f)) and min(s, f), at most
f (1 - f) <= 1/4 of a bin away: for both edges b / 2P of the pixel, and 1/2 for the bins and 1/2 for the sum.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe import native
from strobe.api.trace import Trace
from strobe.trace.processes.process_reader import GAP, NO_REGION
from tests.unit.slow_pictures import SlowLocation

pytestmark = pytest.mark.every_python

ZERO_NS = 123_456_789_012
Spans = list[tuple[int, int, int]]  # start, duration, region
AROUND = ((0, 1), (1, 2), (-1, 0), (0.25, 0.5), (-2, 5), (3.5, 3.75))  # of a window: begin and end of others


def nest(rng: random.Random, start: int, end: int, depth: int, out: Spans) -> None:
    """Calls in [start, end), of very different lengths, some without any; the regions of a depth are its own."""
    at = start
    while at < end:
        at += int(rng.lognormvariate(4, 1.5)) if rng.random() < 0.7 else 0
        length = 0 if rng.random() < 0.02 else int(rng.lognormvariate(5 + 2 * (4 - depth), 1.5)) + 1
        if at + length > end:
            return
        out.append((at, length, 1 + 3 * depth + int(rng.random() * 3)))
        if depth < 3 and length > 50:
            nest(rng, at, at + length, depth + 1, out)
        at += length


def random_thread(seed: int, at_least: int) -> Spans:
    """Bursts and pauses: some tiles exist, and others do not."""
    rng, spans, at = random.Random(seed), Spans(), 5_000 * seed
    while len(spans) < at_least:
        burst = int(rng.lognormvariate(15, 1.5))
        nest(rng, at, at + burst, 0, spans)
        at += burst + int(rng.lognormvariate(13, 3))
    return spans


def write_trace(folder: Path, processes: Sequence[Sequence[Spans]], regions: int = 12) -> Path:
    """A trace of processes, each with threads; process i is rank i, and its clock is i * 977 ns ahead."""
    folder.mkdir()
    beside = {}
    for number, threads in enumerate(processes):
        out = native.ImportedProcess(str(folder / f"process-{number + 1}.blocks"), 64 << 20)
        # Numbers of regions differ from process to process, as in real life.
        kinds = [(1, 1), (2, 2), (7, 9), (7, 10), (2, 11), (6, 8), (2, 7)]
        order = [(each + number) % regions for each in range(regions)]
        known = {each: out.region(f"r{each}", *kinds[each % len(kinds)], "", 0, "") for each in order}
        for thread, spans in enumerate(threads):
            location = out.location("main thread" if thread == 0 else f"worker-{thread}", 100 + thread, 0, -1)
            start = np.array([each[0] for each in spans], dtype=np.int64) + ZERO_NS + 977 * number
            duration = np.array([each[1] for each in spans], dtype=np.int64)
            region = np.array([known[each[2] - 1] for each in spans], dtype=np.uint32)
            where, cut_off = np.full(len(spans), location, dtype=np.uint32), np.zeros(len(spans), dtype=np.uint8)
            out.spans(where, start, duration, region, [], cut_off)
        out.finish(number + 1, 0, "{}", "", "closed")
        beside[f"process-{number + 1}"] = {"rank": number, "clock_offset_ns": -977 * number}
    job = {"format_version": 1, "zero_ns": ZERO_NS, "imported": {"files": [], "processes": beside}}
    (folder / "job.json").write_text(json.dumps(job))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes: three threads with some ten thousand spans each, one with a few."""
    threads = [random_thread(seed, count) for seed, count in enumerate((30_000, 12_000, 9_000, 40), start=1)]
    return write_trace(tmp_path_factory.mktemp("pyramid") / "random.strobe", [threads[:2], threads[2:]])


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    made = strobe.open(folder)
    made.pyramid.build()
    return made


@pytest.fixture(scope="module")
def slow(trace: Trace) -> list[SlowLocation]:
    return [SlowLocation(trace, location) for location in range(4)]


def check_pixels(trace: Trace, slow: SlowLocation, location: int, start: int, level: int, width: int) -> None:
    """Everything that is told of pixels that are bins of the pyramid."""
    edges = start + (np.arange(width + 1) << level)
    regions, shares, marks = (each[0] for each in trace.pyramid.cells([location], start, int(edges[-1]), width))
    own = slow.own_ns(edges)
    most, pixel_ns = own.max(axis=0), 1 << level
    there = most > 0
    assert ((regions == NO_REGION) == ~there).all()
    # Where two regions are equally long, either is right.
    assert (own[regions[there], np.flatnonzero(there)] == most[there]).all()
    bound = 0.5 if pixel_ns <= slow.process_ended_ns else 1
    assert np.abs(shares - 255 * most / pixel_ns).max() <= bound
    groups = trace.pyramid.group_shares([location], start, int(edges[-1]), width)[0]
    assert np.abs(groups - slow.shares(edges)).max() <= bound
    assert (marks == slow.marks(edges)[0]).all()


def test_every_pixel_of_every_level_is_what_the_spans_say(trace: Trace, slow: list[SlowLocation], folder: Path):
    assert list(folder.glob("*.tiles")), "nothing would be tested without tiles"
    rng, pixels, marked, width = random.Random(5), 0, 0, 64
    end = trace.info.duration_ns
    for turn in range(352):
        location, level = turn % 4, turn % 44
        last = max(0, (end >> level) - width)
        start = rng.randint(-3, last + 3) << level
        check_pixels(trace, slow[location], location, start, level, width)
        marked += int((slow[location].marks(start + (np.arange(width + 1) << level))[0] != NO_REGION).sum())
        pixels += width
    assert pixels > 20_000
    assert marked > 50, "there was something to mark"


def test_spans_that_overlap_have_lanes_and_each_lane_its_pixels(tmp_path: Path):
    rng = random.Random(12)
    spans = [(i * 900 + rng.randint(0, 800), 1 + int(rng.lognormvariate(7, 1)), 1 + i % 12) for i in range(12_000)]
    trace = strobe.open(write_trace(tmp_path / "lanes.strobe", [[spans]]))
    assert len(trace.locations) > 3
    for location in range(len(trace.locations)):
        slow = SlowLocation(trace, location)
        for level in range(2, 24, 3):
            start = rng.randint(0, max(0, (trace.info.duration_ns >> level) - 64)) << level
            check_pixels(trace, slow, location, start, level, 64)


def test_pixels_that_are_no_bins_are_right_to_a_fraction_of_their_edges(trace: Trace, slow: list[SlowLocation]):
    rng, end = random.Random(6), trace.info.duration_ns
    for turn in range(120):
        location, width = turn % 4, rng.randint(1, 200)
        length = max(width, int(end * 2.0 ** -rng.uniform(-1, 20)))
        length -= length % width  # edges that are whole nanoseconds: those of others cannot be compared
        start = rng.randint(-end // 4, end)
        edges = start + np.arange(width + 1) * (length // width)
        pixel_ns = length / width
        bin_ns = 2.0 ** (int(pixel_ns).bit_length() - 3)
        bound = 255 * bin_ns / pixel_ns / 2 + 1
        groups = trace.pyramid.group_shares([location], start, start + length, width)[0]
        assert np.abs(groups - slow[location].shares(edges)).max() <= bound
        regions, shares, marks = (each[0] for each in trace.pyramid.cells([location], start, start + length, width))
        own, shown = 255 * slow[location].own_ns(edges) / pixel_ns, regions != NO_REGION
        # What a region fills of the bins that are its own is no more than what it fills.
        assert (shares[shown] <= own[regions[shown], np.flatnonzero(shown)] + bound).all()
        # A mark may be a pixel too wide at either side, and it may be that of a longer stretch beside.
        found, ns = slow[location].marks(edges)
        assert (marks[found != NO_REGION] != NO_REGION).all()
        around = np.maximum(ns, np.maximum(np.append(ns[1:], 1), np.insert(ns[:-1], 0, 1)))
        assert (around[marks != NO_REGION] > 0).all()


def test_the_profile_of_any_window_is_exact(trace: Trace, slow: list[SlowLocation]):
    rng, end = random.Random(7), trace.info.duration_ns
    for turn in range(60):
        start = rng.randint(-end // 8, end)
        stop = start + max(1, int(end * 2.0 ** -rng.uniform(0, 30)))
        locations = [turn % 4, (turn + 1) % 4]
        count, own_ns = trace.pyramid.profile(locations, start, stop)
        for line, location in enumerate(locations):
            expected = slow[location].profile(start, stop)
            assert (count[line] == expected[0]).all()
            assert (own_ns[line] == expected[1]).all()


def test_sums_of_fewer_spans_than_a_tile_has_build_none(tmp_path: Path):
    few, many = (random_thread(count, count)[:count] for count in (2047, 2048))
    folder = write_trace(tmp_path / "sums.strobe", [[few], [many]])
    made = strobe.open(folder)
    end = made.info.duration_ns
    assert not made.pyramid.has_sums()
    assert strobe.open(write_trace(tmp_path / "few.strobe", [[few]])).pyramid.has_sums()
    for location, builds in enumerate((False, True)):
        count, own_ns = made.pyramid.profile([location], end // 3, end)
        expected = SlowLocation(made, location).profile(end // 3, end)
        assert (count[0] == expected[0]).all()
        assert (own_ns[0] == expected[1]).all()
        assert made.files[location].tiles.exists() == builds
    assert made.pyramid.has_sums()


def test_what_was_drawn_before_changes_no_pixel(folder: Path, trace: Trace):
    """Stretches of blocks are kept from one picture to the next: another trace, asked once, knows of none."""
    rng, end = random.Random(11), trace.info.duration_ns
    locations = range(len(trace.locations))
    used = strobe.open(folder)
    for _ in range(4):
        # From a few blocks to a few spans; then the pictures beside it, within it and around it, in any order.
        length = int(end / rng.uniform(20, 4000))
        start = rng.randrange(end - length)
        windows = [(start + int(length * by), start + int(length * to)) for by, to in AROUND]
        rng.shuffle(windows)
        for window in windows:
            fresh = strobe.open(folder)
            for kind in ("cells", "group_shares"):
                found = getattr(used.pyramid, kind)(locations, *window, 64)
                expected = getattr(fresh.pyramid, kind)(locations, *window, 64)
                for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
                    np.testing.assert_array_equal(one, other)


def test_without_tiles_pictures_are_the_same(folder: Path, trace: Trace, tmp_path: Path):
    bare = tmp_path / "bare.strobe"
    bare.mkdir()
    for file in folder.iterdir():
        if file.suffix != ".tiles":
            os.link(file, bare / file.name)
    for file in folder.glob("*.tiles"):  # in the way, so that none can be built
        (bare / file.name).mkdir()
    other = strobe.open(bare)
    for level in range(0, 36, 3):
        start, end = 1 << level, (1 << level) * 129
        with_tiles, without = (
            trace.pyramid.cells(range(4), start, end, 128),
            other.pyramid.cells(range(4), start, end, 128),
        )
        assert (with_tiles[1] == without[1]).all()
        assert (with_tiles[2] == without[2]).all()
        assert (
            trace.pyramid.group_shares(range(4), start, end, 128)
            == other.pyramid.group_shares(range(4), start, end, 128)
        ).all()
    assert all(
        (a == b).all()
        for a, b in zip(
            trace.pyramid.profile(range(4), 0, 1 << 40), other.pyramid.profile(range(4), 0, 1 << 40), strict=True
        )
    )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Seventeen ranks, each a little later than the one before, with a second thread in one of them."""
    spans = random_thread(9, 5_000)
    late = [[(start + 12_345 * rank, duration, region) for start, duration, region in spans] for rank in range(17)]
    threads = [[each] if rank != 5 else [each, spans[:3000]] for rank, each in enumerate(late)]
    made = strobe.open(write_trace(tmp_path_factory.mktemp("ranks") / "ranks.strobe", threads))
    made.pyramid.build()
    return made


def check_rows(trace: Trace, slow: Sequence[SlowLocation], row_level: int, edges: np.ndarray) -> int:
    """Rows of the main threads; returns how many marks there were."""
    members, size, width = trace.rows[0].locations, 8**row_level, len(edges) - 1
    rows = -(-len(members) // size)
    shares, marks = trace.pyramid.row_cells(0, row_level, 0, rows + 1, int(edges[0]), int(edges[-1]), width)
    assert not shares[rows].any(), "behind the last row is nothing"
    assert (marks[rows] == NO_REGION).all()
    for row in range(rows):
        inside = [slow[location] for location in members[row * size : (row + 1) * size]]
        exact = np.mean([each.shares(edges) for each in inside], axis=0)
        bound = 0.5 if row_level == 0 else 1.5
        assert np.abs(shares[row] - exact).max() <= bound
        found = [each.marks(edges) for each in inside]
        longest = np.max([ns for _, ns in found], axis=0)
        assert ((marks[row] != NO_REGION) == (longest > 0)).all()
        # Of marks that are equally long, any is right.
        right = np.any([(region == marks[row]) & (ns == longest) for region, ns in found], axis=0)
        assert right[longest > 0].all()
    return int((marks != NO_REGION).sum())


def test_every_pixel_of_rows_of_many_locations_is_what_their_spans_say(ranks: Trace):
    assert [len(place.locations) for place in ranks.rows] == [17, 1]
    slow, rng, marked = [SlowLocation(ranks, location) for location in range(18)], random.Random(8), 0
    header = (Path(ranks.path) / "overview.tiles").read_bytes()[:16]
    assert int.from_bytes(header[8:16], "little") > 20, "there are tiles of rows"
    end = min(row["last_ns"] for row in ranks.locations.to_pylist())
    for level in range(4, end.bit_length()):
        for row_level in range(3):
            start = rng.randint(0, max(0, (end >> level) - 100)) << level
            marked += check_rows(ranks, slow, row_level, start + (np.arange(101) << level))
    assert marked > 50


def test_rows_are_the_same_without_an_overview(ranks: Trace, tmp_path: Path):
    bare = tmp_path / "bare.strobe"
    bare.mkdir()
    for file in Path(ranks.path).iterdir():
        if file.name != "overview.tiles":
            os.link(file, bare / file.name)
    (bare / "overview.tiles").mkdir()  # in the way, so that none can be built
    other, end = strobe.open(bare), ranks.info.duration_ns
    for row_level in range(3):
        for start, stop, width in ((0, 1 << end.bit_length(), 512), (end // 3, end // 2, 300)):
            with_tiles = ranks.pyramid.row_cells(0, row_level, 0, 17, start, stop, width)
            without = other.pyramid.row_cells(0, row_level, 0, 17, start, stop, width)
            assert np.abs(with_tiles[0].astype(int) - without[0]).max() <= 1
            assert (with_tiles[1] == without[1]).all()
    # One that was made from other tiles is made anew.
    (bare / "overview.tiles").rmdir()
    (bare / "overview.tiles").write_bytes(b"STIL of something else" * 100)
    third = strobe.open(bare)
    third.pyramid.build()
    assert (bare / "overview.tiles").read_bytes() == (Path(ranks.path) / "overview.tiles").read_bytes()


def thread_of_steps(stall_at: int | None, wait_ns: int, steps: int = 72_000, step_ns: int = 50_000_000) -> Spans:
    """An hour of steps of 50 ms, each with a short wait; a single one may take longer."""
    spans = Spans()
    for step in range(steps):
        at = step * step_ns
        wait = 20_000_000 if step == stall_at else wait_ns
        spans += [(at, step_ns - 100, 1), (at + 1000, wait, 2)]
        spans += [(at + 25_000_000 + 1000 * i, 700 + (step * 31 + i * 17) % 200, 3 + i % 3) for i in range(3)]
    return spans


def test_a_single_stall_in_an_hour_is_marked_at_every_zoom_and_a_wait_that_is_always_long_is_not(tmp_path: Path):
    stall = 41_234
    folder = write_trace(
        tmp_path / "hour.strobe", [[thread_of_steps(stall, 100_000)], [thread_of_steps(None, 20_000_000)]]
    )
    trace = strobe.open(folder)
    waiting = {row["name"]: row["region"] for row in trace.regions.to_pylist()}["r1"]
    begin = stall * 50_000_000 + 1000
    assert trace.info.duration_ns > 3_590 * 10**9
    for level in range(16, 42):
        start = (begin >> level) - 300 << level
        marks = trace.pyramid.cells([0, 1], start, start + (1024 << level), 1024)[2]
        first, last = (begin >> level) - (start >> level), (begin + 20_000_000 - 1 >> level) - (start >> level)
        expected = np.full(1024, NO_REGION)
        expected[first : last + 1] = waiting
        assert (marks[0] == expected).all(), f"pixels of 2^{level} ns"
        assert (marks[1] == NO_REGION).all()


def test_gaps_are_marked_where_they_are_rare(tmp_path: Path):
    spans = [(i * 1000 + (5_000_000 if i >= 700 else 0), 900, 1 + i % 2) for i in range(1000)]
    trace = strobe.open(write_trace(tmp_path / "gap.strobe", [[spans]]))
    marks = trace.pyramid.cells([0], 0, 1 << 23, 64)[2][0]
    first, last = (699_900) >> 17, (5_700_000 - 1) >> 17
    assert np.flatnonzero(marks == GAP).tolist() == list(range(first, last + 1))


def test_nesting_of_very_many_spans_is_that_in_the_middle_of_each_pixel(tmp_path: Path):
    """60 000 steps in 10 pixels: calls of r1 in them but for the middle of pixel 3, which is full of r2."""
    middle = range(20_400, 22_600)
    calls = [(1000 * i + 100, 600, 3 if i in middle else 2) for i in range(60_000)]
    spans = sorted([(1000 * i, 900, 1) for i in range(60_000)] + calls)
    trace = strobe.open(write_trace(tmp_path / "deep.strobe", [[spans]]))
    names = {row["name"]: row["region"] for row in trace.regions.to_pylist()}
    regions, filled = trace.pyramid.stack_cells(0, 0, 60_000_000, 10, 64)
    assert regions[0].tolist() == [names["r0"]] * 10
    assert regions[1].tolist() == [names["r1"]] * 3 + [names["r2"]] + [names["r1"]] * 6
    # A block holds 2048 steps, of which the first or the last may be cut.
    assert np.abs(filled.astype(int) - np.array([[0.9 * 255], [0.6 * 255]])).max() <= 1.5
    # As many pixels as there are blocks: everything is read, and the middle is as little as it is.
    regions, filled = trace.pyramid.stack_cells(0, 0, 60_000_000, 30, 64)
    assert np.flatnonzero(regions[1] == names["r2"]).tolist() == [10]
    assert np.abs(filled.astype(int) - np.array([[0.9 * 255], [0.6 * 255]])).max() <= 2.5


# Files that are not what they should be


def copy_of(folder: Path, to: Path) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def picture(folder: Path) -> list[np.ndarray]:
    trace = strobe.open(folder)
    cells = trace.pyramid.cells(range(4), 0, 1 << 34, 512)
    return [
        *cells,
        trace.pyramid.group_shares(range(4), 0, 1 << 34, 512),
        *trace.pyramid.profile(range(4), 12345, 1 << 33),
    ]


def test_tiles_that_are_torn_foreign_or_old_are_built_anew(folder: Path, trace: Trace, tmp_path: Path):
    expected = picture(folder)
    place = copy_of(folder, tmp_path / "copy.strobe")
    tiles = [place / f"process-{number}.tiles" for number in (1, 2)]
    whole = [file.read_bytes() for file in tiles]
    for damaged in (
        b"",
        b"STIL",
        whole[0][:-1],
        whole[1],
        whole[0][:300] + b"x" + whole[0][300:],
        b"no tiles at all" * 99,
    ):
        tiles[0].write_bytes(damaged)
        assert all((a == b).all() for a, b in zip(picture(place), expected, strict=True))
        assert tiles[0].read_bytes() == whole[0]
    # Another zero of the trace means other bins.
    job = json.loads((place / "job.json").read_text())
    (place / "job.json").write_text(json.dumps({**job, "zero_ns": ZERO_NS - 1000}))
    shifted = strobe.open(place).pyramid.group_shares(range(4), 1000, 1000 + (1 << 34), 512)
    assert np.abs(shifted.astype(int) - expected[3]).max() <= 255 / 8 + 1
    assert tiles[0].read_bytes() != whole[0]


def older(tiles: bytes) -> bytes:
    """The same tiles, as a version of before says that they are its own."""
    head = bytearray(tiles[:72])
    head[4:8] = (int.from_bytes(head[4:8], "little") - 1).to_bytes(4, "little")
    head[68:72] = native.core.crc32c(bytes(head[:68])).to_bytes(4, "little")
    return bytes(head) + tiles[72:]


def test_it_is_known_beforehand_whether_a_picture_has_tiles_to_build(ranks: Trace, tmp_path: Path):
    place = copy_of(Path(ranks.path), tmp_path / "copy.strobe")
    opened = strobe.open(place)
    for name, flat in (("process-7.tiles", False), ("overview.tiles", True)):
        assert (opened.pyramid.has_tiles(), opened.pyramid.has_tiles(of_rows=True)) == (True, True)
        whole = (place / name).read_bytes()
        for damaged in (older(whole), whole[:50], b""):
            (place / name).write_bytes(damaged)
            assert (opened.pyramid.has_tiles(), opened.pyramid.has_tiles(of_rows=True)) == (flat, False)
        (place / name).unlink()
        assert (opened.pyramid.has_tiles(), opened.pyramid.has_tiles(of_rows=True)) == (flat, False)
        (place / name).write_bytes(older(whole))
        strobe.open(place).pyramid.build()
        assert (place / name).read_bytes() == whole, "it was built anew"


def test_a_tile_that_is_damaged_is_read_from_the_blocks(folder: Path, trace: Trace, tmp_path: Path):
    expected, place = picture(folder), copy_of(folder, tmp_path / "copy.strobe")
    tiles, rng = place / "process-1.tiles", random.Random(3)
    whole = tiles.read_bytes()
    directory = int.from_bytes(whole[16:24], "little")
    for _ in range(30):
        damaged = bytearray(whole)
        for _ in range(40):
            damaged[rng.randrange(72, directory)] ^= 1 << rng.randrange(8)
        tiles.write_bytes(damaged)
        assert all((a == b).all() for a, b in zip(picture(place), expected, strict=True))
        assert tiles.read_bytes() == damaged, "a sound directory is not looked behind"


def test_a_folder_that_cannot_be_written_has_pictures_all_the_same(folder: Path, trace: Trace, tmp_path: Path):
    expected, place = picture(folder), copy_of(folder, tmp_path / "copy.strobe")
    for number in (1, 2):
        (place / f"process-{number}.tiles").unlink()
        (place / f"process-{number}.tiles").mkdir()  # even root cannot replace this by a file
    assert all((a == b).all() for a, b in zip(picture(place), expected, strict=True))
    assert not [file for file in place.iterdir() if f".{os.getpid()}" in file.name], "nothing is left behind"
