"""The timeline of a process that `strobe sample` sampled: boxes against its samples, counted here one by one."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import strobe
from strobe.server.http.app import Application
from strobe.server.http.trace_library import Source
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import open_timeline
from tests.unit.test_server import TOKEN, Page

TILE_CELLS = 1024
PROGRAM = """
import threading, time
def leaf(end):
    while time.monotonic() < end:
        sum(range(100))
def short():
    leaf(time.monotonic() + 0.02)
def long():
    leaf(time.monotonic() + 0.06)
threading.Thread(target=time.sleep, args=(60,), name="sleeper", daemon=True).start()
print("ready", flush=True)
while True:
    short()
    long()
"""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of a program that calls two functions in turn while another thread sleeps."""
    folder = tmp_path_factory.mktemp("sampled")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as target:
        assert target.stdout
        target.stdout.readline()
        command = [STROBE, "sample", str(target.pid), "--for", "1.5s", "--rate", "200", "-o", str(folder / "out")]
        subprocess.run(command, check=True, capture_output=True)
        target.kill()
    return folder / "out.strobe"


def rows_of(trace: strobe.Trace) -> dict[str, list[dict[str, Any]]]:
    """The samples of each thread in order, with the names in their stack and begin and end."""
    names = trace.locations.column("name")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in trace.side_table("samples").to_pylist():
        stack = [line.split(" (")[0] for line in (row["call_stack"] or "").split("\n") if line]
        begin = row["time_ns"] - row["period_ns"]
        rows.setdefault(names[row["location"]], []).append({**row, "names": stack, "begin": begin})
    return rows


def test_boxes_and_cells_are_those_of_the_samples(sampled: Path) -> None:
    trace = strobe.open(sampled)
    page = Page(Application([Source(sampled, lambda: trace)], token=TOKEN))
    names = trace.locations.column("name")
    assert page.json("meta")["sampled"] == list(range(len(names)))  # type: ignore[index]
    of_main = rows_of(trace)["MainThread"]
    location = names.index("MainThread")
    level = 22  # 4.3 s
    boxes = page.table(f"stack?location={location}&level={level}&tile=0").to_pylist()
    # Time and number of boxes of the functions that the module calls; samples of one of them follow each other.
    expected: Counter[str] = Counter()
    for row in of_main:
        for name in row["names"][1:2]:
            expected[name] += row["period_ns"]
    drawn: Counter[str] = Counter()
    for box in boxes:
        if box["depth"] == 1 and box["name"] in ("short", "long"):
            drawn[box["name"]] += box["duration_ns"]
    assert set(expected) >= {"short", "long"}
    assert drawn == Counter({name: expected[name] for name in ("short", "long")})
    runs = [name for name, _ in groupby(of_main, lambda row: row["names"][1:2])]
    assert len([box for box in boxes if box["depth"] == 1 and box["name"] in ("short", "long")]) == len(
        [name for name in runs if name in (["short"], ["long"])]
    )
    assert sum(box["self_ns"] for box in boxes) == sum(row["period_ns"] for row in of_main)

    # Cells: the innermost function, or the state, that takes most of each.
    palette, index = page.cells(f"cells?locations={location}&level={level}&tile=0")
    width = 1 << level
    for at in range(0, TILE_CELLS, 7):
        inside: Counter[str] = Counter()
        for row in of_main:
            overlap = min(row["time_ns"], (at + 1) * width) - max(row["begin"], at * width)
            if overlap > 0:
                label = row["names"][-1] if row["state"] == "python" else row["state"]
                inside[label] += overlap
        shown = palette[index[0][at] - 1][1] if index[0][at] else ""
        shown = {"native code": "native", "waits for a core": "ready"}.get(str(shown), str(shown))
        assert inside[shown] == max(inside.values(), default=0), (at, shown, inside)


def test_sampled_threads_have_rows_and_a_box_its_facts(browser: Browser, sampled: Path) -> None:
    with view(sampled) as address, watched_page(browser, address) as page:
        timeline = open_timeline(page, address)
        page.mouse.click(*timeline.at(0.5, timeline.row("MainThread")))
        facts = page.get_by_label("Facts about what is chosen")
        expect(facts).to_contain_text("<module>")
        expect(facts).to_contain_text("Calls were not recorded")
        expect(page.get_by_text("sleeper").first).to_be_visible()
        timeline.settle()
        assert timeline.colours() > 3
