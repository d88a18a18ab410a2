"""Names that reorder text, command a terminal or cannot be seen: as escapes on the page and in its files."""

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import strobe
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import open_timeline, wait_for_rest

# U+202E turns what follows around; ESC begins commands; U+200B has no width.
PROGRAM = """
import strobe

NAME = "pay\\u202e001\\x1b[31m\\u200b"
with strobe.region(NAME):
    for _ in range(30):
        with strobe.region(f"{NAME} inside"):
            sum(range(100_000))
"""
SEEN = r"pay\u{202e}001\u{1b}[31m\u{200b}"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
# Every text that is written on a canvas, from the first on.
LISTEN = """
window.written = [];
for (const kind of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
  const write = kind.prototype.fillText;
  kind.prototype.fillText = function (text, ...where) { window.written.push(text); write.call(this, text, ...where); };
}
"""
SHOWN = """() => {
  const found = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
    else for (const name of ["title", "aria-label"]) found.push(node.getAttribute(name) ?? "");
  return found;
}"""


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a region whose name is meant to deceive."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "deceive.py").write_text(PROGRAM)
    words = ("run", "--quiet", "--keep", "all", "-o", "deceive.strobe", "deceive.py")
    subprocess.run([STROBE, *words], cwd=folder, check=True)
    return folder / "deceive.strobe"


def test_names_are_seen_on_every_page(browser: Browser, evil: Path) -> None:
    with view(evil) as address, watched_page(browser, address) as page:
        page.add_init_script(LISTEN)
        shows = set()
        for name in ("overview", "profile", "structure", "steps", "timeline"):
            if name == "timeline":
                open_timeline(page, address).settle()
            else:
                page.goto(f"{address}#page={name}")
                wait_for_rest(page)
            nodes, written = page.evaluate(SHOWN), page.evaluate("window.written")
            assert [text for text in nodes + written if HIDDEN.search(text)] == []
            for place, texts in (("DOM", nodes), ("canvas", written)):
                if SEEN in " ".join(texts):
                    shows.add(f"{name}, {place}")
        assert shows >= {"profile, DOM", "structure, DOM", "timeline, canvas"}


def test_names_are_seen_in_exported_html(browser: Browser, evil: Path, tmp_path: Path) -> None:
    strobe.open(evil).export(tmp_path / "a.html")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.add_init_script(LISTEN)
    page.goto(f"file://{tmp_path / 'a.html'}")
    page.locator("#icicle").scroll_into_view_if_needed()
    texts = page.evaluate(SHOWN) + page.evaluate("window.written")
    page.close()
    assert [text for text in texts if HIDDEN.search(text)] == []
    assert r"pay\u202e001\x1b[31m\u200b" in " ".join(texts)
