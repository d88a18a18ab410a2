"""Pages about training: operators, kernels and the data pipeline of profiles made by hand, and the way to spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deep.kineto import call, kernel, operator, profile, step, write
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.fixture(scope="module")
def training_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Six steps that convolve, add in place, add, and wait for data; the kernels of the first two."""
    events = [step(n, 1000 * n, 1000) for n in range(6)]
    for n in range(6):
        at = 1000 * n
        events += [operator("aten::conv2d", at, 300), operator("aten::add_", at + 400, 50)]
        events += [operator("aten::add", at + 600, 20), operator(SINGLE, at + 700, 200)]
        events += [call(at + 10, 5, correlation=2 * n + 1), call(at + 410, 5, correlation=2 * n + 2)]
        events += [kernel("void conv<float, 4>(int)", at + 100, 200 + n, correlation=2 * n + 1)]
        events += [kernel("add", at + 450, 40, correlation=2 * n + 2)]
    trace = profile(tmp_path_factory.mktemp("tables"), *events)
    with view(trace.path) as address:
        yield address


@pytest.fixture
def training(browser: Browser, training_address: str) -> Iterator[Page]:
    with watched_page(browser, training_address) as page:
        page.goto(f"{training_address}#page=kernels")
        expect(page.get_by_role("grid", name="Kernels")).to_be_visible()
        yield page


def rows(page: Page, table: str) -> list[list[str]]:
    """The texts of the rows on the screen, once they are there: what is drawn has none."""
    grid = page.get_by_role("grid", name=table)
    expect(grid.locator(".grid-row").first).to_be_visible()
    return [row.locator("td:not(.spark)").all_inner_texts() for row in grid.locator(".grid-row").all()]


def test_operators_by_type_lead_to_those_of_the_type_and_to_their_spans(training: Page) -> None:
    training.keyboard.press("4")
    assert [row[:2] for row in rows(training, "Operators")] == [
        ["aten::conv2d", "6"],
        ["aten::add_", "6"],
        ["aten::add", "6"],
    ]
    training.get_by_role("button", name="type", exact=True).click()
    expect(training).to_have_url(re.compile("table.operators=by%3Dtype"))
    expect(training.get_by_role("gridcell", name="conv2d", exact=True)).to_be_visible()
    assert [row[:2] for row in rows(training, "Operators")] == [["conv2d", "6"], ["add", "12"]]
    training.get_by_role("gridcell", name="add", exact=True).click()
    facts = training.get_by_role("region", name="add")
    expect(facts).to_contain_text("12 spans, 420 µs")
    facts.get_by_role("button", name="First").click()
    # 400 to 450 us: the first of both.
    expect(training).to_have_url(re.compile("page=timeline.*span=[0-9]+_400000_"))
    training.keyboard.press("4")
    facts.get_by_role("button", name="Next").click()
    expect(training).to_have_url(re.compile("page=timeline.*span=[0-9]+_600000_"))


def test_a_table_is_sorted_searched_and_walked_by_keys(training: Page) -> None:
    assert [row[0] for row in rows(training, "Kernels")] == ["conv", "add"]
    training.get_by_role("button", name="avg", exact=True).click()
    expect(training.get_by_role("columnheader", name="avg", exact=True)).to_have_attribute("aria-sort", "descending")
    training.get_by_role("button", name="avg", exact=True).click()
    expect(training.locator(".grid-row td").first).to_have_text("add")
    grid = training.get_by_role("grid", name="Kernels")
    grid.focus()
    training.keyboard.press("End")
    # The whole name is a hover away, and beside the table.
    expect(training.get_by_role("gridcell", name="conv")).to_have_attribute("title", "void conv<float, 4>(int)")
    expect(training.get_by_role("region", name="conv")).to_contain_text("void conv<float, 4>(int)")
    training.reload()
    expect(training.get_by_role("region", name="conv")).to_contain_text("6 spans, 1.22 ms")
    training.get_by_role("grid", name="Kernels").focus()
    training.keyboard.press("Enter")
    expect(training).to_have_url(re.compile("page=timeline.*span=[0-9]+_5100000_"))  # 205 us, the longest
    training.keyboard.press("5")
    training.get_by_role("searchbox", name="Search this table").fill("ADD")
    expect(training.locator(".grid-row")).to_have_count(1)
    training.get_by_role("searchbox", name="Search this table").fill("nothing like that")
    expect(training.get_by_text("No row passes the filter.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize(
    ("name", "ready"),
    [("operators", ".grid-row"), ("kernels", ".grid-row"), ("data", ".stage"), ("what_if", ".changes")],
)
def test_axe_finds_nothing_to_complain_about(
    browser: Browser, training_address: str, name: str, ready: str, scheme: str
) -> None:
    assert complaints(browser, f"{training_address}#page={name}", scheme, ready) == []


def test_kernels_are_split_and_kept_as_a_file(training: Page) -> None:
    training.get_by_role("button", name="operator", exact=True).click()
    expect(training.get_by_role("columnheader", name="operator")).to_be_visible()
    assert sorted(row[1] for row in rows(training, "Kernels")) == ["aten::add_", "aten::conv2d"]
    with training.expect_download() as download:
        training.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "kernels.csv"
    assert len(download.value.path().read_text().splitlines()) == 3


def test_rows_have_bars_over_the_steps_asked_for_at_once(training: Page) -> None:
    longest = training.get_by_role("img", name="200 µs to 205 µs a step; most in step 5")
    expect(longest).to_be_visible()
    asked: list[str] = []
    training.on("request", lambda request: asked.append(request.url) if "over_steps" in request.url else None)
    training.reload()
    # The kernel of step n takes 200 + n us.
    expect(longest).to_be_visible()
    expect(training.get_by_role("img", name="40.0 µs in every step")).to_be_visible()
    assert len(asked) == 1
    assert [row[1:3] for row in rows(training, "Kernels")] == [["84 %", "84 %"], ["16 %", "100 %"]]


def test_a_type_leads_to_its_kernels(training: Page) -> None:
    by_type = training.get_by_role("region", name="By type")
    expect(by_type.get_by_role("listitem")).to_have_text(["convolution84 %"])
    by_type.get_by_role("button", name="convolution").click()
    assert [row[0] for row in rows(training, "Kernels")] == ["conv"]
    training.get_by_role("button", name="type convolution").click()
    assert [row[0] for row in rows(training, "Kernels")] == ["conv", "add"]
    training.get_by_role("button", name="type", exact=True).click()
    training.get_by_role("gridcell", name="convolution").click()
    training.get_by_role("button", name="Its kernels").click()
    assert [row[0] for row in rows(training, "Kernels")] == ["conv"]


def test_steps_are_divided_by_kinds_of_work_and_by_passes(training: Page) -> None:
    training.keyboard.press("6")
    split = training.get_by_role("region", name="Step-time split")
    # Kernels of 200 to 205 us and of 40 us in steps of 1000 us.
    expect(split.get_by_role("img", name=re.compile("mean of 6 steps: kernels 24[23] µs, 24 %"))).to_be_visible()
    # Nothing computes after the wait for data, so that there is no forward pass.
    expect(training.get_by_role("region", name="Step trace")).to_contain_text("no forward and backward pass")
    training.get_by_role("gridcell", name="3", exact=True).click()
    expect(split.get_by_role("img", name=re.compile("step 3: kernels 243 µs, 24 %"))).to_be_visible()


def test_the_data_pipeline_shows_what_a_step_waits_for(browser: Browser, tmp_path: Path) -> None:
    """Two ranks: one waits 60 of 100 ms for a loop that fetches itself, the other 1 ms."""
    paths = []
    for rank, wait in ((0, 1), (1, 60)):
        events = [step(n, 100_000 * n, 100_000) for n in range(6)]
        events += [operator(SINGLE, 100_000 * n, 1000 * wait) for n in range(6)]
        events += [operator("aten::mm", 100_000 * n + 1000 * wait, 100_000 - 1000 * wait) for n in range(6)]
        paths.append(tmp_path / "job" / f"rank{rank}.json")
        paths[-1].parent.mkdir(exist_ok=True)
        write(paths[-1], *events, rank=rank)
    with view(tmp_path / "job") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=data")
        # Of several ranks that which waits longest comes first.
        verdict = page.get_by_role("region", name="Verdict")
        expect(verdict).to_contain_text("highly input-bound")
        expect(verdict).to_contain_text("waits 60.0 ms (60 %) of a step on average")
        bar = page.get_by_role(
            "img", name=re.compile("What a step is made of: waiting for data 60.0 ms, training 40.0 ms")
        )
        expect(bar).to_be_visible()
        expect(page.get_by_role("region", name="What more workers would gain")).to_contain_text("70.0 ms: 30 % less")
        expect(page.locator(".stage.bottleneck")).to_have_count(1)
        expect(page.locator(".stage.bottleneck")).to_contain_text("Load and transform")
        page.get_by_role("button", name="rank 0").click()
        expect(verdict).to_contain_text("The data pipeline keeps up: the loop waits 1.00 ms (1.0 %)")
        page.reload()
        expect(verdict).to_contain_text("keeps up")
        page.get_by_title("Show it on the timeline").first.click()
        expect(page).to_have_url(re.compile("page=timeline.*span="))
        page.keyboard.press("6")
        told = "rank 1, mean of 6 steps: before the forward pass 60.0 ms, 60 %; forward and backward 40.0 ms, 40 %"
        expect(page.get_by_role("region", name="Step trace").get_by_role("img", name=told)).to_be_visible()


def test_a_run_without_a_gpu_says_what_is_missing(page: Page, address: str) -> None:
    page.goto(f"{address}#page=kernels")
    expect(page.get_by_role("main")).to_contain_text("GPU")
    for name in ("operators", "data"):
        page.goto(f"{address}#page={name}")
        expect(page.get_by_role("main")).to_contain_text("strobe run")


def test_what_if_answers_what_is_typed(training: Page) -> None:
    training.keyboard.press("Shift+Digit2")
    # Nothing was changed yet: what may gain something in these steps, with its gain.
    proposed = training.get_by_role("region", name="What may gain something in these steps").get_by_role("listitem")
    expect(proposed.first).to_contain_text(re.compile(r"\d (ns|µs|ms) to .* of 1\.00 ms"))
    proposed.first.get_by_role("button").click()
    expect(training).to_have_url(re.compile("table.what_if=inside"))
    expect(training.get_by_role("toolbar", name="What changes")).to_contain_text(re.compile("with .*: "))
    assert len(rows(training, "What if")) == 1
    field = training.get_by_role("searchbox", name="What changes")
    field.fill("*conv*=0.5")
    expect(training.get_by_role("toolbar", name="What changes")).to_contain_text(re.compile("with .conv.=0.5: "))
    expect(training).to_have_url(re.compile("table.what_if=inside"))
    (row,) = rows(training, "What if")
    assert row[:4] == ["inference", "4", "1.00 ms", "1.00 ms"]
    field.fill("ranks=2x")
    expect(training.get_by_text("Cannot be known from this trace: no collective in its steps")).to_be_visible()


def test_what_if_explains_what_is_not_a_change(browser: Browser, training_address: str) -> None:
    page = browser.new_page()  # Chromium itself logs an answer that is an error
    page.goto(f"{training_address}#page=what_if&table.what_if=inside%3Dconv")
    expect(page.get_by_role("alert")).to_contain_text("CHANGE: 'conv' is not a change")
    page.close()
