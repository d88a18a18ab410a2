"""The page Memory: a chart by category, what is in use at the peak as a flame graph, and the owners in a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.deep.test_tensor_memory import training
from tests.ui.conftest import view, watched_page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A training with a leak of 1 MB a step, in history.py."""
    path = tmp_path_factory.mktemp("memory") / "t.pickle"
    training(20).dump(Path(path))
    with view(path) as found:
        yield found


def test_categories_owners_and_what_is_in_use_at_the_peak(browser: Browser, address: str) -> None:
    with watched_page(browser, address) as page:
        page.goto(f"{address}#page=memory")
        table = page.get_by_role("grid", name="Owners of memory")
        # 19 steps are over at the peak.
        expect(table.get_by_role("row").filter(has_text="history.py:9")).to_contain_text("19.9 MB")
        chart = page.get_by_role("img", name="GPU 0 memory over the run")
        for category in ("parameters", "optimizer state", "activations", "workspace", "cache"):
            expect(chart.get_by_text(category, exact=True)).to_be_visible()
        flame = page.get_by_role("img", name="GPU 0 at its peak")
        # 19 MB of the leak, 8 of the cache, 8 of the workspace, 6 of state, 3 of parameters, 8.5 of a step.
        expect(flame).to_have_attribute("aria-label", re.compile("55.1 MB in"))
        page.get_by_role("button", name="module", exact=True).click()
        expect(table).to_contain_text("linear.py:134")
