"""Sums by call path straight from the blocks are those of the spans one by one, of everything and of stretches."""

import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strobe
from strobe.api.trace import Trace

CALLS, UNIT = 3000, 1000  # of each thread: several blocks; events are in us


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Two threads: calls in calls, the same function inside of itself, equal times, and one span around everything."""
    random = np.random.default_rng(4)
    events = []
    for thread in (1, 2):
        common = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": thread}
        events.append({**common, "name": "main", "ts": 0, "dur": CALLS * 10})
        for at in range(0, CALLS * 10, 10):
            length = int(random.integers(1, 11))
            events.append({**common, "name": f"f{random.integers(3)}", "ts": at, "dur": length})
            inner = int(random.integers(length + 1))
            events.append({**common, "name": f"f{random.integers(3)}", "ts": at + length - inner, "dur": inner})
    path = tmp_path_factory.mktemp("sums") / "made.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return strobe.open(path)


def one_by_one(trace: Trace, location: int, chosen: list[tuple[int, int]] | None) -> dict[str, npt.NDArray[np.int64]]:
    """The definition: a loop over the rows of the table."""
    names = ("calls", "total_ns", "own_ns", "min_ns", "max_ns")
    sums = {name: np.zeros(len(trace.call_paths), dtype=np.int64) for name in names}
    rows = trace.spans(location).to_pylist()
    for row in rows:
        start, lasting, path = (int(str(row[name])) for name in ("start_ns", "duration_ns", "call_path"))
        if chosen is not None and not any(begin <= start < end for begin, end in chosen):
            continue
        children = [int(str(each["duration_ns"])) for each in rows if each["parent"] == row["row"]]
        sums["min_ns"][path] = min(lasting, sums["min_ns"][path]) if sums["calls"][path] else lasting
        sums["max_ns"][path] = max(lasting, sums["max_ns"][path])
        sums["calls"][path] += 1
        sums["total_ns"][path] += lasting
        sums["own_ns"][path] += lasting - sum(children)
    return sums


def same(found: object, wanted: dict[str, npt.NDArray[np.int64]]) -> bool:
    assert isinstance(found, dict)
    return found.keys() == wanted.keys() and all(np.array_equal(found[name], wanted[name]) for name in wanted)


@pytest.fixture(scope="module")
def small(trace: Trace) -> Trace:
    """The begin of the same, which is small enough for a loop in a loop; it is cut, and so is read another way."""
    return trace.part(time_ns=(0, 400 * UNIT))


def test_all_spans_of_several_blocks(trace: Trace) -> None:
    for location in range(2):
        spans = trace.span_arrays(location)
        sums = trace.path_sums(location)
        paths = len(trace.call_paths)
        assert len(spans["row"]) == 2 * CALLS + 1
        assert np.array_equal(sums["calls"], np.bincount(spans["call_path"], minlength=paths))
        for name, values in (("total_ns", "duration_ns"), ("own_ns", "self_ns")):
            wanted = np.zeros(paths, dtype=np.int64)
            np.add.at(wanted, spans["call_path"], spans[values])  # type: ignore[literal-required]
            assert np.array_equal(sums[name], wanted)  # type: ignore[literal-required]
        assert sums["own_ns"].sum() == CALLS * 10 * UNIT  # what encloses everything lasts as long as all of it


def test_a_part_is_summed_like_a_loop_over_its_rows(small: Trace) -> None:
    assert same(small.path_sums(0), one_by_one(small, 0, None))
    chosen = [(20 * UNIT, 25 * UNIT), (100 * UNIT, 333 * UNIT)]
    begin, end = np.array(chosen).T
    assert same(small.path_sums(0, (begin, end)), one_by_one(small, 0, chosen))


@pytest.mark.parametrize("stretches", [None, [(100 * UNIT, 333 * UNIT)]])
@pytest.mark.parametrize("which", ["trace", "small"])
def test_locations_that_are_read_together_have_the_sum_of_their_sums(
    request: pytest.FixtureRequest, which: str, stretches: list[tuple[int, int]] | None
) -> None:
    trace = request.getfixturevalue(which)
    chosen = None if stretches is None else tuple(np.array(stretches).T)
    first, second = (trace.path_sums(location, chosen) for location in range(2))
    both = trace.path_sums([0, 1], chosen)
    assert sum(first["calls"])
    assert sum(second["calls"])
    for name in ("calls", "total_ns", "own_ns"):
        assert np.array_equal(both[name], first[name] + second[name])
    assert np.array_equal(both["max_ns"], np.maximum(first["max_ns"], second["max_ns"]))
    for path in np.flatnonzero(both["calls"]):
        lasting = [each["min_ns"][path] for each in (first, second) if each["calls"][path]]
        assert both["min_ns"][path] == min(lasting)


@pytest.fixture(scope="module")
def many_threads(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A process with 500 threads that made three calls each, of 2 us, one after the other."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "short", "pid": 1, "tid": 1 + thread, "ts": 10 * thread + 3 * n, "dur": 2}
        for thread in range(500)
        for n in range(3)
    ]
    path = tmp_path_factory.mktemp("threads") / "many.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return strobe.open(path)


def test_threads_that_did_little_are_summed_in_one_call(many_threads: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[object]()
    path_sums = Trace.path_sums
    monkeypatch.setattr(Trace, "path_sums", lambda *asked: read.append(asked[1]) or path_sums(*asked))
    (row,) = many_threads.profile(step="all").to_pylist()
    assert (row["name"], row["calls"], row["total_ns"]) == ("short", 1500, 1500 * 2 * UNIT)
    assert len(read) == 1


def test_steps_are_found_without_reading_threads_that_hold_none(
    many_threads: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[int]()
    span_arrays = Trace.span_arrays
    monkeypatch.setattr(Trace, "span_arrays", lambda *asked: read.append(asked[1]) or span_arrays(*asked))
    trace = many_threads.without_results()
    assert len(trace.steps()) == 0
    assert set(read) == {0}, "of the main thread alone"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, CALLS * 10 + 5), min_size=2, max_size=8, unique=True))
def test_stretches_of_a_file_are_summed_as_those_of_its_spans(trace: Trace, edges: list[int]) -> None:
    at = np.sort(np.array(edges[: len(edges) // 2 * 2])) * UNIT
    begin, end = at[::2].copy(), at[1::2].copy()
    spans = trace.span_arrays(1)
    inside = ((spans["start_ns"][:, None] >= begin) & (spans["start_ns"][:, None] < end)).any(axis=1)
    sums = trace.path_sums(1, (begin, end))
    for name, values in (("calls", None), ("total_ns", "duration_ns"), ("own_ns", "self_ns")):
        wanted = np.zeros(len(trace.call_paths), dtype=np.int64)
        np.add.at(wanted, spans["call_path"][inside], 1 if values is None else spans[values][inside])  # type: ignore[literal-required]
        assert np.array_equal(sums[name], wanted)  # type: ignore[literal-required]
    lasting = spans["duration_ns"][inside]
    assert sums["max_ns"].max() == lasting.max(initial=0)
    assert sums["min_ns"][sums["calls"] > 0].min(initial=2**62) == lasting.min(initial=2**62)
