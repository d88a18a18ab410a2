"""What is whole on a small screen, and on a phone; and figures that two pages have in common."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import view, watched_page

# Elements of which a part lies outside of the nearest element that cuts what is too large.
_CUT = """elements => elements.filter(element => {
  const box = element.getBoundingClientRect();
  let around = element.parentElement;
  while (around && getComputedStyle(around).overflowX === "visible") around = around.parentElement;
  const edge = around.getBoundingClientRect();
  if (box.top >= edge.bottom) return false;
  const beyond = box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
  return beyond || element.scrollWidth > element.clientWidth + 1;
}).map(element => element.textContent)"""


@pytest.fixture
def small(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        page.set_viewport_size({"width": 1280, "height": 800})
        yield page


def test_classes_of_steps_and_the_name_of_the_run_are_whole(small: Page, address: str) -> None:
    small.goto(f"{address}#page=steps")
    expect(small.locator(".cell-class").first).to_be_visible()
    assert small.locator(".cell-class > span, .head h1").evaluate_all(_CUT) == []


def test_the_tools_of_the_timeline_are_whole(small: Page, address: str) -> None:
    small.goto(f"{address}#page=timeline")
    expect(small.locator(".gutter-name-metric .legend").first).to_be_visible()
    expect(small.get_by_role("list", name="Colours of steps")).to_be_visible()
    # A hint that has no room is not there: none of them is half there.
    whole = ".step-legend li, .rows-bar button, .rows-bar label, .gutter-name-metric .legend span, .key-hints-one"
    assert small.locator(whole).evaluate_all(_CUT) == []


def test_a_phone_reaches_all_pages(browser: Browser, address: str) -> None:
    with watched_page(browser, address) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{address}#page=overview")
        page.get_by_role("button", name="SQL").click()
        expect(page).to_have_url(f"{address}#page=sql")
        page.get_by_role("button", name="Steps").click()
        expect(page.get_by_role("grid", name="Steps")).to_be_visible()


def test_a_profile_of_pairs_of_functions_has_its_time_once(browser: Browser, tmp_path: Path) -> None:
    """cProfile: a calls b calls c, for 0.1, 0.2 and 0.7 s of their own: 1 s in all on each page."""
    a, b, c = (("prog.py", line, name) for line, name in ((1, "a"), (2, "b"), (3, "c")))
    stats = {
        a: (1, 1, 0.1, 1.0, {}),
        b: (1, 1, 0.2, 0.9, {a: (1, 1, 0.2, 0.9)}),
        c: (1, 1, 0.7, 0.7, {b: (1, 1, 0.7, 0.7)}),
    }
    (tmp_path / "prog.prof").write_bytes(marshal.dumps(stats))
    with view(tmp_path / "prog.prof") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=overview")
        expect(page.get_by_role("row", name="c 1 700 ms 70 %")).to_be_visible()
        # Nothing was read meanwhile, nor could have been.
        expect(page.get_by_text("The process over time")).to_have_count(0)
        page.goto(f"{address}#page=profile")
        expect(page.get_by_role("listitem").filter(has_text="c700 ms70 %")).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text("1.00 sof all threads together")
