"""The tree of what makes batches, counted by hand."""

from __future__ import annotations

from strobe.answers import ask
from tests.unit.hand_made import FETCH_ALONE, MS, HandMadeProcess, Span, make_trace, span


def fetch(begin: int, decode: int, crop: int) -> Span:
    """A fetch of two images; what is left of each is the dataset's own."""
    items, at = list[Span](), begin
    for _ in range(2):
        inner = (span("decode", at, at + decode), span("RandomCrop.__call__", at + decode, at + decode + crop))
        items.append(span("Images.__getitem__", at, at + decode + crop + MS, *inner))
        at += decode + crop + MS
    return span("DataLoader.fetch", begin, at + MS, *items, paradigm="torch", role="range")


def test_transforms_are_a_tree_below_the_fetch_of_all_workers() -> None:
    workers = [
        HandMadeProcess({"main": [fetch(0, 4 * MS, 2 * MS), fetch(50 * MS, 4 * MS, 2 * MS)]}, pid=7 + i) for i in (0, 1)
    ]
    trace = make_trace({"main": [span("main", 0, 100 * MS)]}, *workers)
    rows = ask.ask(trace, "data_transforms").to_pylist()
    found = [(row["depth"], row["name"], row["calls"], row["total_ns"] // MS, row["self_ns"] // MS) for row in rows]
    assert found == [
        (0, "DataLoader.fetch", 4, 60, 4),
        (1, "Images.__getitem__", 8, 56, 8),
        (2, "decode", 8, 32, 32),
        (2, "RandomCrop.__call__", 8, 16, 16),
    ]
    assert [row["share"] for row in rows] == [1, 56 / 60, 32 / 60, 16 / 60]
    assert rows[2]["avg_ns"] == 4 * MS


def test_a_dataset_below_a_wait_for_data_is_a_tree_and_another_item_is_not() -> None:
    item = span("Images.__getitem__", 1 * MS, 5 * MS, span("decode", 2 * MS, 4 * MS))
    spans = [
        span(FETCH_ALONE, 0, 6 * MS, item, paradigm="torch", role="range"),
        span("Config.__getitem__", 7 * MS, 9 * MS),
    ]
    rows = ask.ask(make_trace({"main": spans}), "data_transforms").to_pylist()
    assert [(row["depth"], row["name"]) for row in rows] == [(0, "Images.__getitem__"), (1, "decode")]


def test_small_calls_are_left_out_and_a_run_without_a_loader_has_none() -> None:
    trace = make_trace({"main": [fetch(0, 4 * MS, 2 * MS)]})
    assert len(ask.ask(trace, "data_transforms", min_share=0.5)) == 3
    nothing = ask.ask(make_trace({"main": [span("main", 0, MS)]}), "data_transforms")
    assert (len(nothing), nothing.note) == (0, "no data loader was seen at work")
