"""The page CPU: pictures of the run, bars by what the rows are of, and the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.record.workshop import Workshop
from tests.ui.conftest import view, watched_page

PROGRAM = """
import os, time
import strobe

zero, buffer = os.open("/dev/zero", os.O_RDONLY), bytearray(1 << 20)

def read_zeros(until):
    while time.monotonic() < until:
        os.readv(zero, [buffer])

def sleep(until):
    time.sleep(max(0, until - time.monotonic()))

for step in range(6):
    strobe.step()
    (read_zeros, sleep)[step % 2](time.monotonic() + 1.2)
"""


@pytest.fixture(scope="module")
def cpu_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A program that reads from the kernel and sleeps in turn, recorded."""
    workshop = Workshop(tmp_path_factory.mktemp("cpu"))
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("program.py").returncode == 0
    with view(Path(workshop.trace)) as address:
        yield address


def test_kinds_of_cpu_time_have_pictures_and_bars_of_the_rows_that_are_chosen(
    browser: Browser, cpu_address: str
) -> None:
    with watched_page(browser, cpu_address) as page:
        page.goto(f"{cpu_address}#page=cpu")
        expect(page.get_by_role("grid", name="CPU time")).to_be_visible()
        charts = page.locator(".run-chart")
        expect(charts).to_have_count(2)
        expect(charts.first.locator("canvas")).to_be_visible()
        expect(charts.last.get_by_text("system", exact=True)).to_be_visible()
        assert share(page, r"^thread · main thread: ", "idle") < 0.9
        page.get_by_role("button", name="class", exact=True).click()
        expect(page).to_have_url(re.compile("table.cpu=by%3Dclass"))
        # The kernel reads for the one class, and the other sleeps.
        assert share(page, r"^thread · main thread · .*sleep: ", "idle") > 0.9
        assert share(page, r"^thread · main thread · .*read_zeros: ", "system") > 0.05


def share(page: Page, bar: str, kind: str) -> float:
    """The share of a kind in the bar with this name."""
    bars = page.get_by_role("img", name=re.compile(bar))
    expect(bars.first).to_be_visible()
    found = re.search(rf"{kind} ([\d.]+) %", bars.first.get_attribute("aria-label") or "")
    assert found
    return float(found[1]) / 100
