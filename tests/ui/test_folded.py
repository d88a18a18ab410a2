"""The page of a run of which most steps were folded into statistics: what it says is exact, or it says what is not."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import strobe
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import open_timeline
from tests.ui.folded_program import STEPS

PROGRAM = Path(__file__).with_name("folded_program.py")


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 steps, four and some of them in detail."""
    path = tmp_path_factory.mktemp("folded") / "folded.strobe"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [STROBE, "run", "--quiet", "--keep", "4", "-o", str(path), str(PROGRAM)]
    subprocess.run(command, check=True, env=environment)
    return path


@pytest.fixture(scope="module")
def folded_address(folded: Path) -> Iterator[str]:
    with view(folded) as address:
        yield address


@pytest.fixture
def folded_page(browser: Browser, folded_address: str) -> Iterator[Page]:
    with watched_page(browser, folded_address) as page:
        yield page


def row(page: Page, name: str) -> Locator:
    """The row of a name in the list of the panel."""
    return page.get_by_role("complementary").get_by_role("listitem").filter(has_text=re.compile(f"^{name}"))


def test_of_the_whole_run_every_call_is_counted(folded_page: Page, folded_address: str) -> None:
    open_timeline(folded_page, folded_address)
    panel = folded_page.get_by_role("complementary")
    expect(panel).to_contain_text("Exact: from spans, and from the statistics of")
    expect(row(folded_page, "backward")).to_have_attribute("title", f"backward: {STEPS} calls")


def test_a_window_of_folded_steps_blames_nobody_for_them(folded_page: Page, folded_address: str, folded: Path) -> None:
    with strobe.open(folded) as trace:
        steps = trace.steps().to_pylist()
    # Three steps in a row of which nothing was kept.
    first = next(i for i in range(len(steps)) if [each["detail"] for each in steps[i : i + 3]] == ["none"] * 3)
    start, end = steps[first]["start_ns"], steps[first + 2]["start_ns"] + steps[first + 2]["duration_ns"]
    open_timeline(folded_page, folded_address, f"&time={start}-{end}")
    panel = folded_page.get_by_role("complementary")
    expect(panel.get_by_role("list", name="Folded steps").get_by_role("listitem").first).to_contain_text(
        "3 folded steps"
    )
    expect(panel.get_by_role("region", name="Host").get_by_role("img")).to_have_attribute(
        "aria-label", "Steps that were kept as statistics only 100 %"
    )
    expect(row(folded_page, "train")).to_have_count(0)
    expect(panel).to_contain_text("only the time and its parts are known")
    folded_page.keyboard.press("c")
    said = f"step {steps[first + 1]['step']} was kept as statistics only: its critical path is not known"
    expect(folded_page.locator(".notice")).to_have_text(said)


def test_how_much_is_there_in_detail_is_said_everywhere(folded_page: Page, folded_address: str, folded: Path) -> None:
    with strobe.open(folded) as trace:
        steps = trace.steps().to_pylist()
        calls = sum(trace.sql("select count from totals where name = 'forward'").column("count"))
    kept = sum(each["detail"] == "all" for each in steps)
    assert 4 <= kept < STEPS / 2
    said = f"{kept} of {len(steps)} steps in detail"
    page = folded_page
    page.goto(f"{folded_address}#page=overview")
    expect(page.get_by_role("contentinfo")).to_contain_text(said)
    expect(page.get_by_role("contentinfo")).to_contain_text("more in statistics")
    expect(page.get_by_role("region", name="One step")).to_contain_text(f"{kept} of them in detail")
    at = next(each for each in steps if each["detail"] == "all" and each["step"] > 3)
    middle = at["start_ns"] + at["duration_ns"] // 2
    timeline = open_timeline(page, folded_address, f"&time={middle}-{middle + 1000}")
    page.mouse.click(*timeline.at(0.5, timeline.row("main thread") + 3 * 17))
    panel = page.get_by_role("complementary")
    expect(panel).to_contain_text("of this name here kept in detail")
    in_detail = int(re.search(r"(\d+) of this name here kept", panel.inner_text()).group(1))  # type: ignore[union-attr]
    expect(panel).to_contain_text(f"{calls - in_detail} more were folded")
    page.keyboard.press("/")
    page.keyboard.type("forward")
    expect(page.locator(".hits-head")).to_contain_text(f"{in_detail} spans in detail")


def test_a_function_around_the_steps_says_what_is_its_own(folded_page: Page, folded_address: str, folded: Path) -> None:
    with strobe.open(folded) as trace:
        own = next(r["self_ns"] for r in trace.profile(step="all").to_pylist() if r["name"] == "train")
        total = next(r["total_ns"] for r in trace.profile(step="all").to_pylist() if r["name"] == "train")
    assert own < total / 20
    timeline = open_timeline(folded_page, folded_address)
    timeline.settle()
    folded_page.mouse.click(*timeline.at(0.5, timeline.row("main thread") + 17))
    panel = folded_page.get_by_role("complementary")
    expect(panel.get_by_role("heading", name="train")).to_be_visible()
    expect(panel).to_contain_text("Self is exact")
    share = 100 * own / total
    said = f"self, {share:.1f} %" if share < 9.95 else f"self, {share:.0f} %"
    expect(panel).to_contain_text(said)
    # Then the span is found again by its first nanosecond: what is inside of it lies elsewhere.
    folded_page.reload()
    expect(panel.get_by_role("heading", name="train")).to_be_visible()
    expect(panel).to_contain_text(said)
