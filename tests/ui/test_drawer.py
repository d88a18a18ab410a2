"""What the timeline says about a stretch, a span, and an empty place; what it saves; its keys."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Download, Page, expect

from tests.deep.kineto import call, kernel, operator, write
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints, open_timeline, wait_for_picture

KEYS = Path(__file__).parents[2] / "web/src/state/keys.json"


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a profile: operators, of which two launch a kernel each, 900 us apart."""
    path = tmp_path_factory.mktemp("gpu") / "two.json"
    write(
        path,
        operator("aten::mm", 0, 100),
        call(10, 20, correlation=1),
        operator("aten::add", 900, 100),
        call(910, 20, correlation=2),
        operator("aten::relu", 3900, 100),
        kernel("gemm", 50, 100, correlation=1),
        kernel("add", 950, 100, correlation=2),
    )
    with view(path) as address:
        yield address


@pytest.fixture
def gpu_page(browser: Browser, gpu: str) -> Iterator[Page]:
    with watched_page(browser, gpu) as page:
        yield page


def test_the_drawer_profiles_the_stretch_and_its_state_comes_back(page: Page, address: str) -> None:
    timeline = open_timeline(page, address, "&range=0-100000000000")
    page.keyboard.press("l")
    drawer = page.get_by_role("region", name="Statistics of the stretch of time")
    expect(drawer).to_contain_text("chosen stretch: 1 min 40 s")
    rows = drawer.get_by_role("row")
    drawer.get_by_label("Search the profile").fill("layer")
    expect(rows).to_have_count(4)  # heading, two that hold the place of others, layer
    rows.filter(has_text="layer").click()
    timeline.wait_for("region=[^&]*layer")
    page.keyboard.press("Shift+L")
    timeline.wait_for("drawer=durations")
    expect(drawer).to_contain_text(re.compile(r"\d executions?, .* in all, median"))
    expect(drawer.get_by_role("img", name=re.compile("Durations of"))).to_be_visible()
    box = drawer.locator(".durations-chart svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    page.mouse.up()
    timeline.wait_for(r"lasting=\d+-\d+")
    fields = timeline.fields
    low, high = map(int, fields["lasting"].split("-"))
    first = drawer.locator(".durations-list button").first
    expect(first).to_be_visible()
    page.reload()
    wait_for_picture(page)
    expect(drawer.get_by_role("tab", name="Durations")).to_have_attribute("aria-selected", "true")
    assert timeline.fields == fields
    first.click()
    timeline.wait_for("span=")
    location, start, depth = map(int, timeline.fields["span"].split("_"))
    found = page.evaluate(
        f"fetch('api/span?location={location}&start_ns={start}&end_ns={start + 1}&depth={depth}').then(r => r.json())"
    )
    assert found["name"].endswith("layer")
    assert low <= found["duration_ns"] <= high
    page.keyboard.press("l")
    expect(drawer).to_have_count(0)


def test_bars_of_processes_are_made_of_groups_or_regions(page: Page, address: str) -> None:
    timeline = open_timeline(page, address, "&drawer=processes-260")
    stack = page.locator(".bar-stack").first
    expect(stack).to_have_attribute("aria-label", re.compile(r"Host code .* m?s"))
    page.get_by_role("button", name="region", exact=True).click()
    expect(stack).to_have_attribute("aria-label", re.compile("layer"))
    timeline.wait_for("bars=region-cluster-0")


def test_streams_are_below_their_gpu_which_shows_what_it_is_used_for(gpu_page: Page, gpu: str) -> None:
    timeline = open_timeline(gpu_page, gpu)
    header = gpu_page.get_by_role("button", name=re.compile(r"^GPU 0 \d stream"))
    expect(header).to_have_attribute("aria-expanded", "true")
    names = gpu_page.locator(".gutter-button").all_inner_texts()
    streams = [at for at, name in enumerate(names) if "stream 7" in name]
    assert [at for at, name in enumerate(names) if "thread 1" in name] < streams
    gpu_page.mouse.move(*timeline.at(0.005, timeline.row(re.compile(r"^GPU 0 \d stream"))))  # type: ignore[arg-type]
    header.click()
    expect(gpu_page.get_by_role("button", name="stream 7")).to_have_count(0)
    timeline.wait_for(r"fold=.*d0\.0")
    parts = gpu_page.get_by_role("region", name="GPU").get_by_role("img")
    expect(parts).to_have_attribute("aria-label", re.compile(r"Computation [\d.]+ %.*Idle [\d.]+ %"))


def test_a_span_leads_to_what_it_launched_and_back(gpu_page: Page, gpu: str) -> None:
    timeline = open_timeline(gpu_page, gpu)
    gpu_page.wait_for_load_state("networkidle")  # steps that come later move the rows
    facts = gpu_page.get_by_role("complementary", name="Facts about what is chosen")
    gpu_page.mouse.click(*timeline.at(0.005, timeline.row("thread 1")))
    expect(facts).to_contain_text("aten::mm")
    expect(facts.get_by_role("region", name="Links 1")).to_contain_text("launched")
    operator_span = timeline.fields["span"]
    gpu_page.keyboard.press("j")
    expect(facts.get_by_role("heading", name="gemm")).to_be_visible()
    expect(facts.get_by_role("region", name="Links 1")).to_contain_text("launched by")
    gpu_page.keyboard.press("Shift+J")
    expect(facts.get_by_role("heading", name="aten::mm")).to_be_visible()
    assert timeline.fields["span"] == operator_span


def test_an_idle_gap_is_clicked_walked_and_comes_back(gpu_page: Page, gpu: str) -> None:
    timeline = open_timeline(gpu_page, gpu)
    gpu_page.wait_for_load_state("networkidle")  # steps that come later move the rows
    facts = gpu_page.get_by_role("complementary", name="Facts about what is chosen")
    gpu_page.mouse.move(*timeline.at(0.1, timeline.row("stream 7")))
    expect(gpu_page.get_by_role("tooltip")).to_contain_text("nothing runs: waits for the host")
    gpu_page.mouse.click(*timeline.at(0.1, timeline.row("stream 7")))
    expect(facts.get_by_role("heading", name="Idle: waits for the host")).to_be_visible()
    expect(facts).to_contain_text("800 µs")
    for text in ("before gemm", "after add", "launched by cudaLaunchKernel"):
        expect(facts).to_contain_text(re.compile(text.replace(" ", r"\s*")))
    gap = timeline.fields["gap"]
    gpu_page.reload()
    wait_for_picture(gpu_page)
    expect(facts.get_by_role("heading", name="Idle: waits for the host")).to_be_visible()
    gpu_page.keyboard.press("Escape")
    expect(gpu_page).not_to_have_url(re.compile("gap="))
    gpu_page.keyboard.press("i")
    timeline.wait_for(f"gap={gap}")
    gpu_page.keyboard.press("f")
    timeline.wait_for_zoom()
    gpu_page.keyboard.press("Control+z")
    timeline.wait_for_whole()


def test_a_gap_of_a_thread_shows_what_ran_meanwhile(gpu_page: Page, gpu: str) -> None:
    timeline = open_timeline(gpu_page, gpu)
    gpu_page.wait_for_load_state("networkidle")
    timeline.settle()
    place = timeline.at(0.1, timeline.row("thread 1"))
    gpu_page.mouse.move(*place)
    expect(gpu_page.get_by_role("tooltip")).to_contain_text(re.compile("nothing runs: meanwhile .*stream 7: gemm"))
    gpu_page.mouse.click(*place)
    expect(gpu_page.get_by_role("region", name="Meanwhile")).to_contain_text(re.compile("stream 7: 50.0 µs.*gemm"))


def test_what_is_seen_is_saved_as_picture_and_as_table(gpu_page: Page, gpu: str, tmp_path: Path) -> None:
    open_timeline(gpu_page, gpu, "&time=0-1100000")

    def saved(key: str) -> Path:
        gpu_page.keyboard.press("e")
        with gpu_page.expect_download() as download:
            gpu_page.keyboard.press(key)
        found: Download = download.value
        path = tmp_path / found.suggested_filename
        found.save_as(path)
        return path

    png, svg, table = saved("p"), saved("s"), saved("c")
    assert re.fullmatch(r"two.json_timeline_0.0+s-\d+.*s\.png", png.name)
    assert png.read_bytes().startswith(b"\x89PNG")
    texts = [each.text or "" for each in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any("aten::mm" in text for text in texts), "names are text"
    assert any("stream 7" in text for text in texts), "so are the names of rows"
    rows = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    names = ["aten::mm", "cudaLaunchKernel", "aten::add", "cudaLaunchKernel", "gemm", "add"]
    assert [row["name"] for row in rows] == names
    assert [int(row["duration_ns"]) for row in rows] == [100_000, 20_000, 100_000, 20_000, 100_000, 100_000]


def test_the_legend_has_every_key_and_its_line_can_be_hidden(page: Page, address: str) -> None:
    open_timeline(page, address)
    page.keyboard.press("?")
    card = page.get_by_role("dialog", name="Keys")
    table = json.loads(KEYS.read_text())
    lines = [line["what"] for group in table["timeline"] + table["pages"] for line in group["keys"]]
    for what in lines:
        expect(card.get_by_text(what, exact=True).first).to_be_attached()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()  # a key that is pressed before that is the card's
    hints = page.locator(".key-hints")
    expect(hints).to_contain_text("zoom in, out")
    # The page learns a moment later than the browser that the card is closed.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.keyboard.press("h")
    expect(hints).to_have_count(0)
    page.reload()
    wait_for_picture(page)
    expect(hints).to_have_count(0)
    page.keyboard.press("h")
    expect(hints).to_be_visible()


@pytest.mark.parametrize(
    "more", ["drawer=profile-280&gap=1_500000", "drawer=durations-280&region=aten::mm", "drawer=processes-280"]
)
def test_axe_finds_nothing_to_complain_about_in_the_drawer(browser: Browser, gpu: str, more: str) -> None:
    assert complaints(browser, f"{gpu}#page=timeline&{more}", "light", ".drawer-panel") == []
