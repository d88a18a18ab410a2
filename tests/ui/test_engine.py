"""The page Serving: classes of steps, why the GPU is idle in them, and layers; figures are those on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deep.kineto import operator, write
from tests.deep.test_generation import requests
from tests.deep.test_serving import busy_host
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("engine") / "trace.json"
    write(file, *busy_host(functions=True))
    with view(file) as address:
        yield f"{address}#page=serving"


@pytest.fixture
def serving(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        page.goto(address)
        yield page


def test_the_page_has_classes_and_what_the_host_does_between_steps(serving: Page) -> None:
    row = serving.get_by_role("row").filter(has_text=re.compile("^decode"))
    # Four steps of two requests, 40 us on the GPU.
    expect(row).to_contain_text("40.0 µs")
    assert row.get_by_role("cell").all_inner_texts()[:4] == ["decode", "4", "2", "2"]
    gaps = serving.get_by_role("region", name="Idle in steps: decode")
    expect(gaps).to_contain_text("idle 120 µs a step")
    scheduler = gaps.get_by_role("listitem").filter(has_text="the scheduler")
    expect(scheduler).to_contain_text("between steps: the scheduler, get_new_blocks (vllm/v1/core/block_pool.py:5)")
    expect(scheduler).to_contain_text("60.0 µs")
    expect(gaps.get_by_role("listitem").filter(has_text="not recorded")).to_contain_text("37.5 µs")
    expect(serving.get_by_role("region", name="What each layer takes")).to_contain_text("with_stack")


def test_the_overview_leads_to_the_page(serving: Page, address: str) -> None:
    serving.goto(address.replace("serving", "overview"))
    serving.get_by_role("button", name="gaps and layers").click()
    expect(serving).to_have_url(re.compile("page=serving"))


def test_the_overview_has_the_latency_of_loops_without_marks(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path / "trace.json", *requests())
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=overview")
        card = page.get_by_role("region", name="Iterations that generate tokens")
        expect(card.get_by_role("row").filter(has_text=re.compile("^decode"))).to_contain_text("12")
        expect(card).to_contain_text("time to first token 320 µs (median; p95 320 µs)")
        card.get_by_role("button", name="each iteration").click()
        # One of each request, and the heads (prefill tokens).
        expect(page.get_by_role("row").filter(has_text=re.compile("prefill"))).to_have_count(4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, address: str, scheme: str) -> None:
    assert complaints(browser, address, scheme, ".parted-time") == []


def test_a_run_without_an_engine_has_a_sentence(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path / "trace.json", operator("aten::mm", 0, 10))
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=serving")
        expect(page.get_by_role("main")).to_contain_text("No marks of a serving engine")
        expect(page.get_by_role("button", name="Serving")).to_have_attribute(
            "title", re.compile("no marks of a serving")
        )
