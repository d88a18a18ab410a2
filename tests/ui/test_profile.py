"""The page of a profile without times: tables work, and the timeline says why it is empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.conftest import view, watched_page


@pytest.fixture(scope="module")
def profile_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("profile") / "profile.folded"
    path.write_text("main;solve;dot 42\nmain;solve 8\nmain;read 5\n")
    with view(path) as address:
        yield address


def test_the_timeline_says_why_it_is_empty(browser: Browser, profile_address: str) -> None:
    with watched_page(browser, profile_address) as page:
        for name, text in (
            ("overview", "76 % of all samples are in dot itself"),
            ("overview", "Most samples in functions"),
            ("timeline", "This is a profile without times"),
            ("steps", "step"),
            ("structure", "loop"),
        ):
            page.goto(f"{profile_address}#page={name}")
            expect(page.get_by_role("main")).to_contain_text(text)


def test_its_call_tree_is_drawn_in_its_own_unit(browser: Browser, profile_address: str) -> None:
    with watched_page(browser, profile_address) as page:
        page.goto(f"{profile_address}#page=profile")
        whole = "Left heavy, host time: 55 samples in 4 call paths; outermost main 100 %"
        expect(page.get_by_role("img", name="Left heavy")).to_have_attribute("aria-label", whole)
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        facts = page.get_by_role("region", name="Chosen call path")
        expect(facts).to_contain_text("dot")
        expect(facts).to_contain_text("42 samplestotal, 76 % of all")
        expect(facts).to_contain_text("known by its sums only")
        page.goto(f"{profile_address}#page=profile&profile=time---")
        expect(page.get_by_role("main")).to_contain_text("in the order in which its file names them")
