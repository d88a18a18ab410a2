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
            ("overview", "dot"),
            ("timeline", "This is a profile without times"),
            ("steps", "step"),
            ("structure", "loop"),
        ):
            page.goto(f"{profile_address}#page={name}")
            expect(page.get_by_role("main")).to_contain_text(text)
