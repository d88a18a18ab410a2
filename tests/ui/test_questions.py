"""The pages Analyses and SQL as a person uses them: any question, its options, its answer, and the way to its time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import strobe
from tests.ui.conftest import watched_page
from tests.ui.driving import complaints
from tests.ui.program import SLOW_STEP


def test_an_analysis_is_chosen_asked_with_options_and_followed_to_the_timeline(
    page: Page, address: str, trace: Path
) -> None:
    page.goto(f"{address}#page=analyses")
    page.goto(f"{address}#page=analyses&analysis=steps")
    grid = page.get_by_role("grid", name="steps")
    expect(grid).to_have_attribute("aria-rowcount", "61")
    only = page.get_by_role("combobox", name="only")
    expect(only).to_have_value("all")
    only.select_option("outliers")
    expect(page).to_have_url(re.compile(r"with\.only=outliers"))
    with strobe.open(trace) as opened:
        rows = len(opened.steps(only="outliers"))
    expect(grid).to_have_attribute("aria-rowcount", str(rows + 1))
    row = grid.get_by_role("row").filter(has=page.get_by_role("gridcell", name=str(SLOW_STEP), exact=True)).first
    row.click()
    page.get_by_role("button", name="Show on the timeline").click()
    expect(page).to_have_url(re.compile("page=timeline&time="))
    page.go_back()
    expect(only).to_have_value("outliers")


def test_a_query_in_sql_is_written_asked_and_kept_in_the_address(page: Page, address: str) -> None:
    page.goto(f"{address}#page=sql")
    page.get_by_role("textbox", name="SQL").fill("select count(*) as steps from steps")
    page.keyboard.press("Control+Enter")
    grid = page.get_by_role("grid", name="Answer")
    expect(grid).to_contain_text("60")
    page.reload()
    expect(page.get_by_role("textbox", name="SQL")).to_have_value("select count(*) as steps from steps")
    expect(grid).to_contain_text("60")
    tables = page.get_by_role("navigation", name="Tables")
    tables.get_by_text("spans", exact=True).click()
    expect(tables.get_by_role("button", name="duration_ns").first).to_be_visible()


def test_a_mistake_is_a_sentence_beside_the_query(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#page=sql&sql=select%20nme%20from%20spans")
    expect(page.get_by_role("alert")).to_contain_text("nme")
    page.close()


def test_a_query_can_be_cancelled(browser: Browser, address: str) -> None:
    endless = "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range = 7"
    with watched_page(browser, address) as page:
        page.goto(f"{address}#page=sql")
        page.get_by_role("textbox", name="SQL").fill(endless)
        page.get_by_role("button", name="Run").click()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Cancelled.")).to_be_visible()
        page.get_by_role("textbox", name="SQL").fill("select 7 as seven")
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_role("grid", name="Answer")).to_contain_text("seven")


def test_pages_without_data_are_marked_and_name_what_the_run_lacks(page: Page, address: str) -> None:
    page.goto(f"{address}#page=analyses")
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("button", name=re.compile("^Kernels"))).to_have_attribute(
        "title", re.compile("^no GPU did")
    )
    expect(pages.get_by_role("button", name=re.compile("^Steps"))).not_to_have_attribute("title", re.compile("."))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("place", "ready"),
    [
        ("page=analyses&analysis=steps", "[role=grid]"),
        ("page=sql&sql=select%20name%20from%20regions", "[role=grid]"),
        ("page=structure", ".stack-headings button"),
        ("page=structure&flow=1", ".graph-node"),
    ],
)
def test_axe_finds_nothing_to_complain_about(
    browser: Browser, address: str, scheme: str, place: str, ready: str
) -> None:
    assert complaints(browser, f"{address}#{place}", scheme, ready) == []
