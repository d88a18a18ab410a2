"""A job that hangs, on the page: which ranks wait in which collective, and what the others did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints

# Real dumps of gloo: rank 1 did not call the last all-reduce (tests/samples/flight_recorder/job.py).
DUMPS = Path(__file__).parents[1] / "samples/flight_recorder/pickles"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with view(DUMPS) as address:
        yield address


@pytest.fixture
def hanging(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        yield page


@pytest.mark.parametrize("name", ["overview", "ranks"])
def test_the_page_opens_on_who_has_not_come(hanging: Page, address: str, name: str) -> None:
    hanging.goto(f"{address}#page={name}")
    ranks = hanging.get_by_role("table", name=re.compile("^Ranks of all_reduce 5 of group 0"))
    expect(ranks.get_by_role("row").nth(2)).to_contain_text("has not called it, its last call is all_gather 4")
    for rank in (0, 2):
        expect(ranks.get_by_role("row").nth(rank + 1)).to_contain_text("called it: scheduled")
    # No step, no wait and no efficiency is known, and none of them has an empty card.
    expect(hanging.get_by_role("heading", name="Efficiency")).to_have_count(0)
    expect(hanging.get_by_role("heading", name="All steps")).to_have_count(0)
    ranks.get_by_role("row").nth(1).get_by_role("button").click()
    expect(hanging).to_have_url(re.compile("page=timeline.*span="))


def test_the_page_of_a_hang_is_accessible(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        assert complaints(browser, f"{address}#page=ranks", scheme, ".unfinished") == []
