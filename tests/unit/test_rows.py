"""Pictures of many rows: shares, heat, marks and what rows are sorted by, against sums made span by span."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from strobe.model.kinds import GROUPS
from strobe.server.rows import MAGIC
from strobe.server.tiles import NOTHING, TILE_CELLS
from strobe.store.raw import GAP
from strobe.store.trace import Trace
from tests.unit.hand_made import MS, HandMadeProcess, Span, span, train_steps
from tests.unit.test_server import Page, page_of

RANKS = 10
LEVEL = 6
CELL_NS = 2**LEVEL
TILE = 1
ORIGIN_NS = TILE * TILE_CELLS * CELL_NS
ROLES = {"aten::mm": "", "load": "data", "idle": ""}
PLANES = {"aten::mm": GROUPS.index("compute"), "load": GROUPS.index("data"), "idle": GROUPS.index("host")}


def _spans(rank: int) -> list[Span]:
    """Spans without nesting at random places, some longer than a cell, some shorter, the last in tile 2."""
    random = np.random.default_rng(rank)
    spans, at = list[Span](), 0
    for _ in range(700):
        at += int(random.integers(0, 150))
        name = str(random.choice(list(ROLES)))
        end = at + int(random.integers(1, 400))
        spans.append(span(name, at, end, role=ROLES[name]))
        at = end
    return spans


SPANS = [_spans(rank) for rank in range(RANKS)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Ranks with one thread each, location r being that of rank r; the first three were measured."""
    processes = [
        HandMadeProcess({"main thread": spans}, pid=100 + rank, main=rank == 0, metrics=_metrics(rank))
        for rank, spans in enumerate(SPANS)
    ]
    return page_of(*processes, folder=tmp_path_factory.mktemp("rows"))


def _metrics(rank: int) -> list[dict[str, object]]:
    if rank >= 3:
        return []
    times = ORIGIN_NS + CELL_NS * np.array([-1, 0, 0.5, 4, 900])
    return [
        {
            "name": "power",
            "unit": "W",
            "location": -1,
            "time_ns": times,
            "value": np.array([9, 1, 3, 8, 4]) * (rank + 1),
        }
    ]


def _raster(page: Page, question: str) -> tuple[dict[str, object], npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]:
    """Header, values (rows, planes, cells) and marks (rows, cells) of a body, decoded as the browser does."""
    answer = page.get(question)
    assert answer.status_code == 200, answer.text
    body = answer.content
    assert body[:4] == MAGIC
    (size,) = struct.unpack_from("<I", body, 4)
    header = json.loads(body[8 : 8 + size])
    shape = header["rows"], header["planes"], TILE_CELLS
    values = np.frombuffer(body, np.uint8, int(np.prod(shape)), 8 + size).reshape(shape)
    rest = np.frombuffer(body, np.uint8, -1, 8 + size + values.size)
    assert rest.size == (header["rows"] * TILE_CELLS if header["marks"] else 0)
    return header, values, rest.reshape(-1, TILE_CELLS) if header["marks"] else None


def _filled_ns(spans: Sequence[Span], name: str) -> npt.NDArray[np.float64]:
    """How much of each cell of the tile the spans of a name fill, ns; cell by cell."""
    filled = np.zeros(TILE_CELLS)
    for one in spans:
        first, last = (one.start_ns - ORIGIN_NS) // CELL_NS, (one.end_ns - 1 - ORIGIN_NS) // CELL_NS
        for cell in range(max(0, first), min(TILE_CELLS - 1, last) + 1):
            begin = ORIGIN_NS + cell * CELL_NS
            filled[cell] += (one.name == name) * (min(one.end_ns, begin + CELL_NS) - max(one.start_ns, begin))
    return filled


def test_heat_of_a_group_is_the_share_of_each_cell(page: Page) -> None:
    header, values, marks = _raster(page, f"rows/heat?locations=2,5&of=group.data&level={LEVEL}&tile={TILE}")
    assert (header["rows"], header["planes"], marks) == (2, 1, None)
    for row, rank in enumerate((2, 5)):
        np.testing.assert_allclose(values[row, 0], 255 * _filled_ns(SPANS[rank], "load") / CELL_NS, atol=1)


def test_heat_of_a_region_is_its_share_where_it_runs_most(page: Page) -> None:
    _, values, _ = _raster(page, f"rows/heat?locations=3&of=region.load&level={LEVEL}&tile={TILE}")
    filled = {name: _filled_ns(SPANS[3], name) for name in ROLES}
    others = np.maximum(filled["aten::mm"], filled["idle"])
    wins = filled["load"] > others
    assert wins.sum() > 100
    np.testing.assert_allclose(values[0, 0][wins], 255 * filled["load"][wins] / CELL_NS, atol=1)
    assert not values[0, 0][filled["load"] < others].any()


def test_heat_of_a_metric_is_the_mean_of_its_readings_and_the_next_one_where_there_are_none(page: Page) -> None:
    header, values, _ = _raster(page, f"rows/heat?locations=0,2,7&of=metric.power&level={LEVEL}&tile={TILE}")
    assert (header["low"], header["high"], header["unit"]) == (0, 27, "W")
    watts = np.where(values[:, 0] == 0, np.nan, (values[:, 0].astype(float) - 1) / 254 * 27)
    for row, rank in ((0, 0), (1, 2)):
        # Cell 0 holds two readings; cells 1 to 4 have that of cell 4, those up to cell 900 have that; then nothing.
        expected = np.full(TILE_CELLS, np.nan)
        expected[0], expected[1:5], expected[5:901] = 2 * (rank + 1), 8 * (rank + 1), 4 * (rank + 1)
        np.testing.assert_allclose(watts[row], expected, atol=27 / 254)
    assert np.isnan(watts[2]).all(), "rank 7 was not measured"


def test_mean_shares_are_those_of_the_locations(page: Page) -> None:
    wanted = [1, 4, 9]
    header, values, _ = _raster(page, f"rows/shares?locations=1,4,9&level={LEVEL}&tile={TILE}")
    assert (header["rows"], header["planes"]) == (1, len(GROUPS))
    for name in ROLES:
        mean = np.mean([_filled_ns(SPANS[rank], name) for rank in wanted], axis=0) / CELL_NS
        np.testing.assert_allclose(values[0, PLANES[name]], 255 * mean, atol=1.5)


def test_rows_of_many_ranks_are_the_means_of_eight_each(page: Page) -> None:
    (place,) = page.json("rows/places")  # type: ignore[misc]
    assert place["title"] == "main thread"
    assert place["locations"] == list(range(RANKS))
    question = f"rows/cells?place=0&row_level=1&first=0&count=2&level={LEVEL}&tile={TILE}"
    _, values, _ = _raster(page, question)
    for row, members in enumerate((range(8), range(8, RANKS))):
        mean = np.mean([_filled_ns(SPANS[rank], "aten::mm") for rank in members], axis=0) / CELL_NS
        np.testing.assert_allclose(values[row, PLANES["aten::mm"]], 255 * mean, atol=1.5)


def test_rows_are_sorted_by_exclusive_time_or_a_mean(page: Page) -> None:
    start_ns, end_ns = ORIGIN_NS + 333, ORIGIN_NS + 55_555
    found = page.table(f"rows/values?of=region.load&start_ns={start_ns}&end_ns={end_ns}")
    assert found["location"].to_pylist() == list(range(RANKS))
    expected = [
        sum(max(0, min(one.end_ns, end_ns) - max(one.start_ns, start_ns)) for one in spans if one.name == "load")
        for spans in SPANS
    ]
    assert found["value"].to_pylist() == expected
    metric = page.table(f"rows/values?of=metric.power&start_ns={ORIGIN_NS}&end_ns={ORIGIN_NS + CELL_NS}")
    np.testing.assert_allclose(metric["value"].to_numpy()[:4], [2, 4, 6, np.nan])


@pytest.mark.parametrize("of", ["group.colour", "load", "", "metric"])
def test_what_cannot_be_measured_is_refused(page: Page, of: str) -> None:
    for question in (f"rows/heat?locations=0&level=1&tile=0&of={of}", f"rows/values?start_ns=0&end_ns=9&of={of}"):
        answer = page.get(question)
        assert answer.status_code == 400
        assert "is not group.NAME" in answer.json()["error"]


def test_marks_come_as_regions_of_the_palette(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of({"main": [span("short", 0, 6400), span("rare", 9000, 9001)]}, folder=tmp_path)
    regions, shares = np.zeros((1, TILE_CELLS), np.uint32), np.full((1, TILE_CELLS), 255, np.uint8)
    marks = np.full((1, TILE_CELLS), NOTHING, np.uint32)
    marks[0, 5:7], marks[0, 9] = 1, GAP
    groups = np.zeros((1, TILE_CELLS, len(GROUPS)), np.uint8)
    monkeypatch.setattr(Trace, "cells", lambda *_: (regions, shares, marks))
    monkeypatch.setattr(Trace, "row_cells", lambda *_: (groups, marks))
    body = page.get("cells?locations=0&level=6&tile=0").content
    (size,) = struct.unpack_from("<I", body, 4)
    header, _, rows = _raster(page, "rows/cells?place=0&row_level=2&first=0&count=1&level=6&tile=0")
    assert rows is not None
    for palette, found in (
        (
            json.loads(body[8 : 8 + size])["palette"],
            np.frombuffer(body, np.uint8, TILE_CELLS, 8 + size + 2 * TILE_CELLS),
        ),
        (header["palette"], rows[0]),
    ):
        names = [None, *((entry[0], entry[1]) for entry in palette)]
        told = {cell: names[found[cell]] for cell in np.flatnonzero(found).tolist()}
        assert told == {5: (1, "rare"), 6: (1, "rare"), 9: (GAP, "nothing ran")}


def test_every_process_has_steps_of_its_own_with_one_order_of_classes(tmp_path: Path) -> None:
    extras = dict.fromkeys(range(0, 20, 2), ("validate", 5 * MS))
    page = page_of({"main": train_steps(40)}, {"main": train_steps(20, extras=extras)}, folder=tmp_path)
    most, other = page.table("steps"), page.table("steps?process=1")
    about = json.loads(most.schema.metadata[b"about"])
    assert about["processes"] == [0, 1]
    assert page.table("steps?process=0").to_pylist() == most.to_pylist()
    assert set(other["process"].to_pylist()) == {1}
    assert len(other) == 20
    ranks = {row["class"]: row["class_rank"] for table in (most, other) for row in table.to_pylist()}
    assert len(set(ranks.values())) == len(ranks) > 1, "a class has one colour in all processes, and no other has it"
