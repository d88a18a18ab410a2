"""The page of a damaged trace: where spans are lost is hatched, and pointing there shows how many."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

import strobe
from tests.damage.test_damaged_traces import damage_chunk
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import open_timeline
from tests.unit.blocks_twin import SPANS

_PROGRAM = """
def work(k): return k
for k in range(20_000): work(k)
"""


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A trace whose main thread lacks its third block of five."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    words = [STROBE, "run", "--quiet", "--keep", "all", "--throttle", "off", "-o", "lost.strobe", "program.py"]
    subprocess.run(words, cwd=tmp_path, check=True)
    (blocks,) = (tmp_path / "lost.strobe").glob("*.blocks")
    assert damage_chunk(blocks, 2, SPANS) == 4096
    return tmp_path / "lost.strobe"


# How much of a column of pixels is red: more red than green and blue by far.
_RED = """(canvas, x) => {
  const ratio = canvas.width / canvas.clientWidth;
  const { data } = canvas.getContext("2d").getImageData(Math.round(x * ratio), 0, 2, canvas.height);
  let red = 0;
  for (let i = 0; i < data.length; i += 4) red += data[i] > data[i + 1] + 60 && data[i] > data[i + 2] + 60;
  return red;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lost_spans_are_hatched_in_their_row_and_counted_under_the_pointer(
    browser: Browser, damaged: Path, scheme: Literal["light", "dark"]
) -> None:
    with strobe.open(damaged) as trace:
        (lost,) = trace.lost_spans
    with view(damaged) as address, watched_page(browser, address) as page:
        page.emulate_media(color_scheme=scheme)
        timeline = open_timeline(page, address)
        begin, end = timeline.whole
        left, right = ((ns - begin) / (end - begin) * timeline.box["width"] for ns in (lost.begin_ns, lost.end_ns))
        canvas = page.locator(".tracks-canvas")
        assert canvas.evaluate(_RED, left + 0.5) > 3 * canvas.evaluate(_RED, left - 20)
        middle = (left + right) / 2 / timeline.box["width"]
        page.mouse.move(*timeline.at(middle, timeline.row("main thread")))
        expect(page.get_by_role("tooltip")).to_contain_text(re.compile("4.096 spans lost in .+: this part of the file"))
