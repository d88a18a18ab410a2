"""Words for what a person does on the page and sees there."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"

# A stretch of time that holds every run: without one the timeline opens on typical steps.
WHOLE = "0-9000000000000000"

# Colours on the tracks, counted over every 3rd pixel; the background and the grid are few, a picture has many.
COLOURS = """canvas => {
  const { width, height } = canvas;
  const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 3) seen.add(data[i]);
  return seen.size;
}"""


@dataclass
class Timeline:
    """The timeline in the browser."""

    page: Page

    @property
    def box(self) -> dict[str, float]:
        """Place of the tracks on the screen, CSS pixels."""
        box = self.page.locator(".tracks-canvas").bounding_box()
        assert box is not None
        return dict(box)

    @property
    def fields(self) -> dict[str, str]:
        """What the address says."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).fragment).items()}

    @property
    def window(self) -> tuple[int, int] | None:
        """The shown stretch of time in ns; None is the whole run."""
        start, end = map(int, self.fields.get("time", WHOLE).split("-"))
        return None if (start, end) == self.whole or end > self.whole[1] else (start, end)

    @property
    def whole(self) -> tuple[int, int]:
        """Begin and end of the run, ns."""
        meta = self.page.evaluate("fetch('api/meta').then(r => r.json())")
        return meta["start_ns"], meta["end_ns"]

    @property
    def length(self) -> int:
        """Length of the shown stretch, ns."""
        start, end = self.window or (0, 10**18)
        return end - start

    def wait_for(self, pattern: str) -> None:
        """Until the address matches."""
        expect(self.page).to_have_url(re.compile(pattern))

    def wait_for_zoom(self) -> None:
        """Until the address has another time than it was opened with."""
        self.wait_for(rf"time=(?!{WHOLE})")

    def wait_for_whole(self) -> None:
        """Until the address has the time of the whole run."""
        start, end = self.whole
        self.wait_for(f"time={start}-{end}")

    def settle(self) -> None:
        """Until nothing moves any more: address and picture are the same for 0.4 s."""
        last, same, end = None, 0, time.monotonic() + 30
        while same < 4:
            assert time.monotonic() < end, "the timeline never rests"
            self.page.wait_for_timeout(100)
            now = self.page.url, self.page.locator(".tracks-canvas").evaluate("canvas => canvas.toDataURL()")
            same, last = same + 1 if now == last else 0, now

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A point on the screen from a share of the tracks' width, and pixels from their top."""
        box = self.box
        return box["x"] + x * box["width"], box["y"] + y

    def row(self, name: str) -> float:
        """Middle of the first line of a thread's row, in pixels from the top of the tracks."""
        box = self.page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        return box["y"] + 10 - self.box["y"]

    def colours(self) -> int:
        """Number of different colours on the tracks."""
        count: int = self.page.locator(".tracks-canvas").evaluate(COLOURS)
        return count


def wait_until(page: Page, condition: str, timeout_s: float = 15) -> None:
    """Until an expression is true on the page. (Playwright's own way needs `eval`, which the page forbids.)"""
    end = time.monotonic() + timeout_s
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never true: {condition}"
        page.wait_for_timeout(30)


def wait_for_picture(page: Page) -> None:
    """Until the first complete picture was drawn."""
    wait_until(page, "performance.getEntriesByName('first-picture').length > 0")


def wait_for_rest(page: Page) -> None:
    """Until the page is the same for 0.4 s: what is still loading moves what a person is about to click."""
    last, same, end = None, 0, time.monotonic() + 30
    while same < 4:
        assert time.monotonic() < end, "the page never rests"
        page.wait_for_timeout(100)
        now = page.locator("main").inner_text()
        same, last = same + 1 if now == last else 0, now


def open_timeline(page: Page, address: str, more: str = "") -> Timeline:
    """Open the timeline, of the whole run unless `more` has a time, and wait for its first picture."""
    if "time=" not in more:
        more += f"&time={WHOLE}"
    page.goto(f"{address}#page=timeline{more}")
    wait_for_picture(page)
    return Timeline(page)


def complaints(browser: Browser, address: str, scheme: str, ready: str) -> list[object]:
    """What axe says against a page in a colour scheme, once something that `ready` selects is there."""
    if not AXE.exists():
        pytest.skip("needs web/node_modules (./dev sync)")
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    expect(page.locator(ready).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.add_script_tag(path=AXE)
    result = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    context.close()
    return [(v["id"], v["help"], [n["html"][:120] for n in v["nodes"]][:3]) for v in result["violations"]]
