"""The page of a run that is being recorded: it follows the run, and shows what was there until the next is there."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import COLOURS, open_timeline

# How many colours the tracks have in each frame of three seconds; an empty canvas has few.
_WATCHED = """async (colours) => {
  const count = eval(colours), seen = [], end = performance.now() + 3000;
  while (performance.now() < end) {
    seen.push(count(document.querySelector(".tracks-canvas")));
    await new Promise(requestAnimationFrame);
  }
  return seen;
}"""

PROGRAM = """
import os, time

def step():
    time.sleep(0.01)

while not os.path.exists("stop"):
    step()
"""


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """The trace of a program that runs until there is a file `stop` beside it."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [STROBE, "run", "-q", "--keep", "all", "-o", "t.strobe", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        try:
            while not list(tmp_path.glob("t.strobe/*.blocks")):
                time.sleep(0.1)
            time.sleep(2)
            yield tmp_path / "t.strobe"
        finally:
            (tmp_path / "stop").touch()
            process.wait(60)


@pytest.fixture
def page(browser: Browser, growing: Path) -> Iterator[Page]:
    with view(growing) as address, watched_page(browser, address) as page:
        page.goto(address)
        yield page


def steps_shown(page: Page) -> int:
    """How many steps the Overview counts; it has to find some first."""
    expect(page.locator(".overview")).to_contain_text(re.compile(r"\d steps?\b"), timeout=20_000)
    text = page.locator(".overview").inner_text()
    return max(
        int(number.replace(" ", "").replace("\u202f", "")) for number in re.findall(r"([\d\u202f ]+) steps?\b", text)
    )


def test_the_overview_follows_the_run_and_ends_with_it(page: Page, growing: Path) -> None:
    expect(page.locator(".status")).to_contain_text("still running")
    steps_shown(page)
    page.evaluate(
        """() => {
          window.gone = 0;
          new MutationObserver(() => { window.gone += document.querySelector(".overview .late") ? 1 : 0; })
            .observe(document.body, { childList: true, subtree: true });
        }"""
    )
    counts = []
    for _ in range(3):
        counts.append(steps_shown(page))
        page.wait_for_timeout(2500)
    assert counts[0] < counts[1] < counts[2]
    assert page.evaluate("window.gone") == 0  # the page is never empty in between
    (growing.parent / "stop").touch()
    expect(page.locator(".status")).to_contain_text("ended with exit code 0", timeout=20_000)


def test_the_timeline_grows_and_leaves_a_gesture_alone(page: Page) -> None:
    timeline = open_timeline(page, page.url.split("#")[0], "")
    text = page.locator("h1").inner_text()
    expect(page.locator("h1")).not_to_have_text(text, timeout=20_000)
    seen = page.evaluate(_WATCHED, COLOURS)
    assert min(seen) > seen[0] / 3  # it never goes blank in between
    timeline.page.keyboard.press("w")
    timeline.wait_for_zoom()
    window = timeline.window
    page.wait_for_timeout(2500)
    assert timeline.window == window
