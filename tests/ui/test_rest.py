"""The timeline at rest: whatever way one came, it shows what a page that is opened at the same address shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import Timeline, open_timeline

THREADS = 1600
READINGS = 9000
# Frames that were asked for and have not been drawn.
FRAMES = """(() => {
  const real = window.requestAnimationFrame.bind(window);
  const cancel = window.cancelAnimationFrame.bind(window);
  window.frames = new Set();
  window.requestAnimationFrame = (draw) => {
    const id = real((now) => { window.frames.delete(id); draw(now); });
    window.frames.add(id);
    return id;
  };
  window.cancelAnimationFrame = (id) => { window.frames.delete(id); cancel(id); };
})()"""
STILL = "window.frames.size === 0 && performance.getEntriesByName('first-picture').length > 0"


class Resting:
    """Knows when a page waits for nothing any more: no answer, no frame."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: set[Request] = set()
        page.add_init_script(FRAMES)
        page.on("request", lambda request: self.asked.add(request))
        page.on("requestfinished", lambda request: self.asked.discard(request))
        page.on("requestfailed", lambda request: self.asked.discard(request))

    def picture(self) -> str:
        """The tracks as they are once there is a picture and the page is at rest."""
        quiet = 0
        for _ in range(400):
            self.page.wait_for_timeout(100)
            quiet = quiet + 1 if not self.asked and self.page.evaluate(STILL) else 0
            if quiet == 6:
                picture: str = self.page.evaluate("document.querySelector('.tracks-canvas').toDataURL()")
                return picture
        raise AssertionError(f"the page never comes to rest: {[each.url[-80:] for each in self.asked]}")

    def picture_anew(self) -> str:
        """The same of the page that is opened at this address."""
        self.page.reload()
        return self.picture()


def events() -> Iterator[dict[str, object]]:
    for thread in range(THREADS):
        for at in range(4):
            begin = 1000 * at + thread % 700
            yield {"ph": "X", "name": f"f{(thread + at) % 7}", "pid": 1, "tid": 1 + thread, "ts": begin, "dur": 300}
    for at in range(READINGS):
        reading = {"value": at * 7919 % 1000}
        yield {"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": 4000 * at / READINGS, "args": reading}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a process with 1600 threads, and a metric with more readings than the screen has pixels."""
    path: Path = tmp_path_factory.mktemp("ui") / "crowd.json"
    path.write_text(json.dumps({"traceEvents": list(events())}))
    with view(path) as address:
        yield address


@pytest.fixture
def page(browser: Browser, crowd: str) -> Iterator[Page]:
    with watched_page(browser, crowd) as page:
        yield page


def test_a_screen_of_more_tiles_than_are_kept_comes_to_rest(page: Page, crowd: str) -> None:
    page.set_viewport_size({"width": 2700, "height": THREADS + 500})
    resting, timeline = Resting(page), Timeline(page)
    page.goto(f"{crowd}#page=timeline&fit=1&fold=none")
    resting.picture()
    assert timeline.colours() > 5
    for key in "wd":
        page.keyboard.press(key)
    timeline.wait_for_zoom()
    assert resting.picture() == resting.picture_anew()


def test_metrics_at_rest_are_as_fine_as_the_window(page: Page, crowd: str) -> None:
    resting = Resting(page)
    timeline = open_timeline(page, crowd, "&fit=0&fold=none&metrics=0")
    expect(page.locator(".tracks-body")).to_contain_text("queue")
    resting.picture()
    page.keyboard.press("w")
    timeline.wait_for_zoom()
    assert resting.picture() == resting.picture_anew()


def test_rows_that_go_before_they_were_painted_leave_no_frames(page: Page, crowd: str) -> None:
    page.set_viewport_size({"width": 1400, "height": 700})
    resting = Resting(page)
    timeline = open_timeline(page, crowd, "&fit=1&fold=none")
    page.keyboard.down("w")
    page.keyboard.press("v")
    page.keyboard.up("w")
    assert timeline.fields["fit"] == "0"
    assert resting.picture() == resting.picture_anew()
