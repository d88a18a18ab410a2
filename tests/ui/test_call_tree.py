"""The page Profile as a person uses it, over a trace whose every sum is computed on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deep.kineto import call, copy, kernel, operator, write
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints

# Host: linear 300 us, in it addmm 200 us with two launches of 50 us; relu 100 us with one copy's call of 20 us.
# GPU: gemm 40 + 20 us, launched by addmm; a copy of 15 us, launched by relu.
EVENTS = (
    operator("aten::linear", 0, 300),
    operator("aten::addmm", 20, 200),
    call(30, 50, correlation=1),
    call(100, 50, correlation=2),
    operator("aten::relu", 400, 100),
    call(410, 20, "cudaMemcpyAsync", correlation=3),
    kernel("gemm", 90, 40, correlation=1),
    kernel("gemm", 160, 20, correlation=2),
    copy("Memcpy HtoD (Pageable -> Device)", 440, 15, correlation=3),
)
ROW = 18


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("tree") / "tree.json"
    write(path, *EVENTS)
    with view(path) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        yield page


def click_flame(page: Page, share: float, depth: int) -> None:
    """Click a place of the flame: a share of its width, and a depth."""
    box = page.locator("canvas.flame").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + share * box["width"], box["y"] + (depth + 0.5) * ROW)


def test_left_heavy_zooms_by_click_and_walks_by_keys(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile")
    flame = page.get_by_role("img", name=re.compile("^Left heavy"))
    whole = "Left heavy, host time: 400 µs in 5 call paths; outermost aten::linear 75 %, aten::relu 25 %"
    expect(flame).to_have_attribute("aria-label", whole)
    click_flame(page, 0.2, 1)
    facts = page.get_by_role("region", name="Chosen call path")
    expect(facts).to_contain_text("aten::addmm")
    expect(facts).to_contain_text("200 µstotal, 50 % of all")
    expect(facts).to_contain_text("100 µsself")
    expect(facts).to_contain_text("launched60.0 µs of GPU time")
    expect(page).to_have_url(re.compile(r"frame=p\d+"))
    page.keyboard.press("ArrowDown")
    expect(facts).to_contain_text("cudaLaunchKernel")
    expect(facts).to_contain_text("2 · 50.0 µs each")
    page.reload()
    expect(facts).to_contain_text("cudaLaunchKernel")
    page.keyboard.press("Escape")
    expect(facts).to_be_hidden()
    expect(page).not_to_have_url(re.compile("frame="))


def test_kernels_are_below_who_launched_them_and_lead_to_the_timeline(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile")
    expect(page.get_by_role("img", name=re.compile("^Left heavy"))).to_be_visible()
    page.keyboard.press("m")
    whole = "Left heavy, GPU time: 75.0 µs in 7 call paths; outermost aten::linear 80 %, aten::relu 20 %"
    expect(page.get_by_role("img", name=re.compile("^Left heavy"))).to_have_attribute("aria-label", whole)
    click_flame(page, 0.4, 3)
    facts = page.get_by_role("region", name="Chosen call path")
    expect(facts).to_contain_text("60.0 µstotal, 80 % of all")
    expect(facts.get_by_role("list", name="Spans")).to_contain_text("40.0 µs")
    expect(facts).to_contain_text("aten::linearaten::addmmcudaLaunchKernelgemm")
    facts.get_by_title("Show it on the timeline").first.click()
    expect(page).to_have_url(re.compile(r"page=timeline&time=\d+-\d+.*span=\d+_90000_0"))
    details = page.get_by_role("complementary", name="Facts about what is chosen")
    expect(details.get_by_role("heading", name="gemm")).to_be_visible()
    expect(details).to_contain_text("40.0 µs")


def test_the_sandwich_has_callers_above_and_callees_below(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile&profile=sandwich---")
    table = page.get_by_role("grid", name="Functions")
    expect(table.locator(".grid-row")).to_have_text(
        [
            re.compile(r"aten::linear1100 µs 25 %300 µs 75 %"),
            re.compile(r"aten::addmm1100 µs 25 %200 µs 50 %"),
            re.compile(r"cudaLaunchKernel2100 µs 25 %100 µs 25 %"),
            re.compile(r"aten::relu180.0 µs 20 %100 µs 25 %"),
            re.compile(r"cudaMemcpyAsync120.0 µs 5.0 %20.0 µs 5.0 %"),
        ]
    )
    table.get_by_role("button", name="total").click()
    expect(table.locator(".grid-row").nth(3)).to_contain_text("aten::relu")
    table.get_by_role("row", name="aten::addmm").click()
    callers = page.get_by_role("img", name=re.compile("^Callers of aten::addmm: 200 µs in 2 call paths"))
    expect(callers).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^What aten::addmm calls: 200 µs in 2 call paths"))).to_be_visible()
    # The caller lies above the function, in the upper row.
    box = callers.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 40, box["y"] + 9)
    expect(page.get_by_role("img", name=re.compile("^Callers of aten::linear"))).to_be_visible()


def test_search_says_how_much_of_all_is_inside_of_what_it_finds(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile")
    expect(page.get_by_role("img", name=re.compile("^Left heavy"))).to_be_visible()
    page.keyboard.press("Control+f")
    page.keyboard.type("cuda")
    expect(page.get_by_role("toolbar", name="What is shown")).to_contain_text("2 call paths, 30 %")
    expect(page).to_have_url(re.compile("find=cuda"))


def test_time_order_is_one_thread_as_it_ran(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile&profile=time---")
    where = page.get_by_role("combobox", name="Where")
    expect(where).to_be_visible()
    tracks = page.get_by_role("img", name=re.compile("^Timeline of .* 1 thread$"))
    expect(tracks).to_be_visible()
    where.select_option(label="GPU 0 stream 7")
    expect(page.get_by_role("img", name=re.compile("^Timeline of .* 1 stream$"))).to_be_visible()
    expect(page).to_have_url(re.compile(r"profile=time--l\d"))
    expect(page.locator(".gutter-location")).to_have_text([re.compile("GPU 0 stream 7")])


def test_a_stretch_of_the_timeline_can_be_asked_for(page: Page, address: str) -> None:
    page.goto(f"{address}#page=profile&time=0-100000&profile=heavy---window")
    whole = "Left heavy, host time: 100 µs in 3 call paths; outermost aten::linear 100 %"
    expect(page.get_by_role("img", name=re.compile("^Left heavy"))).to_have_attribute("aria-label", whole)
    page.get_by_role("combobox", name="Part of the run").select_option("")
    expect(page.get_by_role("img", name=re.compile("400 µs in 5 call paths"))).to_be_visible()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_in_the_sandwich(browser: Browser, address: str, scheme: str) -> None:
    assert complaints(browser, f"{address}#page=profile&profile=sandwich---&frame=r1", scheme, ".slices canvas") == []
