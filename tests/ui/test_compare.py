"""Two runs side by side: the step of A over that of B, the changes between them, and the way to the spans."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from strobe.api.trace import open_trace
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import complaints

# Twelve steps of two calls; B does one thing more, which takes longer than the whole step of A.
PROGRAM = """
import sys, time

def load():
    time.sleep(0.002)

def compute():
    time.sleep(0.004)

def validate():
    time.sleep(0.02)

def step():
    load()
    compute()
    if len(sys.argv) > 1:
        validate()

for _ in range(12):
    step()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("compared")
    (folder / "loop.py").write_text(PROGRAM)
    for name, words in (("before", []), ("after", ["more"])):
        command = [STROBE, "run", "--quiet", "--keep", "all", "-o", f"{name}.strobe", "loop.py", *words]
        subprocess.run(command, check=True, cwd=folder)
    return folder / "before.strobe", folder / "after.strobe"


@pytest.fixture(scope="module")
def address(runs: tuple[Path, Path]) -> Iterator[str]:
    with view(runs[0], str(runs[1])) as address:
        yield f"{address}t/before/#page=compare&with.other=after"


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        page.goto(address)
        yield page


def extent(page: Page, selector: str) -> tuple[float, float]:
    """Left and right edge of something, CSS pixels."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"], box["x"] + box["width"]


def test_the_changes_lead_from_the_step_of_a_to_that_of_b(page: Page, runs: tuple[Path, Path]) -> None:
    lane = page.get_by_role("region", name="thread of the loop").first
    line = lane.get_by_role("listitem").filter(has_text="only in B")
    expect(line).to_contain_text("validate")
    table = open_trace(runs[0]).ask("compare", other=str(runs[1])).to_arrow().to_pylist()
    (more,) = [row for row in table if row["lane"] == "host" and row["change"] == "only in B"]
    assert more["name"].startswith("validate")
    assert 15e6 < more["difference_ns"] < 60e6, "20 ms of sleep in each step"
    expect(line.locator(".number")).to_have_text(re.compile(r"^\+\d\d\.\d ms$"))
    _, end_of_a = extent(page, ".change-side >> nth=0")
    _, end_of_b = extent(page, ".change-side >> nth=1")
    bars = page.locator(".waterfall").first.locator("ol .change-axis i")
    boxes = [bars.nth(at).bounding_box() for at in range(bars.count())]
    first, last = boxes[0], boxes[-1]
    assert first is not None
    assert last is not None
    assert first["x"] == pytest.approx(end_of_a, abs=3), "the first change begins where A ends"
    ends = (last["x"], last["x"] + last["width"])
    assert min(abs(end - end_of_b) for end in ends) < 3, "the last one ends where B does"


def test_places_are_sorted_and_searched_and_lead_to_the_spans_of_either_run(page: Page) -> None:
    grid = page.get_by_role("grid", name="Differences by place")
    expect(grid).to_contain_text("validate")
    page.get_by_role("searchbox", name="Search the places").fill("validate")
    expect(grid).not_to_contain_text("compute")
    page.get_by_role("link", name=re.compile("validate.* in the spans of B")).first.click()
    page.wait_for_url(re.compile("/t/after/#page=timeline"))
    page.go_back()
    expect(page.get_by_role("link", name=re.compile("validate.* in the spans of A"))).to_have_count(0)
    page.get_by_role("link", name="B with A").click()
    page.wait_for_url(re.compile("/t/after/#page=compare&with.other=before"))
    expect(page.get_by_role("region", name="thread of the loop").first).to_contain_text("only in A")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_everybody_can_read_it(browser: Browser, address: str, scheme: str) -> None:
    assert complaints(browser, address, scheme, ".change-axis i") == []


def test_a_server_of_one_run_shows_how_to_compare_two(browser: Browser, runs: tuple[Path, Path]) -> None:
    with view(runs[0]) as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=compare")
        expect(page.get_by_role("main")).to_contain_text("strobe view A.strobe B.strobe")
