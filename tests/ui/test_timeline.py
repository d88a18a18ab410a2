"""The timeline as a person uses it: looks, moves, chooses, searches, comes back."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import Timeline, open_timeline, wait_for_picture, wait_until
from tests.ui.program import SLOW_STEP


@pytest.fixture
def timeline(page: Page, address: str) -> Timeline:
    return open_timeline(page, address)


def test_it_shows_threads_steps_and_a_picture(timeline: Timeline) -> None:
    page = timeline.page
    expect(page.get_by_role("button", name="main thread")).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="watcher")).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".tracks-canvas")).to_have_attribute(
        "aria-label", re.compile(r"Timeline of program\.py.* 2 threads, 60 of 60 steps")
    )
    assert timeline.colours() > 20
    assert page.locator(".gutter-metric").filter(has_text="CPU").count() == 1


def test_w_and_s_zoom_around_the_pointer(timeline: Timeline) -> None:
    timeline.page.mouse.move(*timeline.at(0.25, 200))
    timeline.page.keyboard.press("w")
    timeline.wait_for_zoom()
    start, end = timeline.window or (0, 0)
    first, last = timeline.whole
    at = first + 0.25 * (last - first)
    assert abs((at - start) / (end - start) - 0.25) < 0.01, "the moment under the pointer stays there"
    timeline.settle()
    before = timeline.window or (0, 0)
    timeline.page.keyboard.press("w")
    timeline.wait_for(rf"time=(?!{before[0]}-{before[1]})")
    assert timeline.length < before[1] - before[0]
    for _ in range(12):  # a busy machine sees short pushes
        timeline.page.keyboard.press("s")
    timeline.wait_for_whole()


def test_a_and_d_pan_without_zooming(timeline: Timeline, address: str) -> None:
    open_timeline(timeline.page, address, "&time=100000000-150000000")
    timeline.page.keyboard.press("d")
    timeline.wait_for(r"time=(?!100000000-)")
    timeline.settle()
    start, end = timeline.window or (0, 0)
    assert start > 100_000_000
    assert end - start == 50_000_000
    timeline.page.keyboard.press("a")
    timeline.wait_for(rf"time=(?!{start}-)")
    back = timeline.window or (0, 0)
    assert back[0] < start
    assert back[1] - back[0] == 50_000_000


def test_the_wheel_zooms_with_ctrl_pans_with_shift_and_scrolls_alone(timeline: Timeline) -> None:
    page = timeline.page
    page.mouse.move(*timeline.at(0.5, 150))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    timeline.wait_for_zoom()
    start, end = timeline.window or (0, 0)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 200)
    page.keyboard.up("Shift")
    timeline.wait_for(f"time=(?!{start}-)")
    after = timeline.window or (0, 0)
    assert after[0] > start
    assert after[1] - after[0] == end - start
    page.set_viewport_size({"width": 1400, "height": 330})
    page.mouse.move(*timeline.at(0.5, 20))
    page.mouse.wheel(0, 120)
    wait_until(page, "document.querySelector('.tracks-body').scrollTop > 0")
    assert timeline.window == after


def test_a_dragged_stretch_is_chosen_measured_and_zoomed_into(timeline: Timeline) -> None:
    page = timeline.page
    page.mouse.move(*timeline.at(0.4, 100))
    page.mouse.down()
    page.mouse.move(*timeline.at(0.5, 100), steps=4)
    page.mouse.up()
    timeline.wait_for("range=")
    start, end = map(int, timeline.fields["range"].split("-"))
    expect(page.get_by_role("heading", name="Chosen stretch")).to_be_visible()
    host = page.get_by_role("region", name="Host")
    expect(host.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"Host code \d+ %"))
    expect(host.get_by_role("list", name="Other threads")).to_contain_text("watcher")
    spans = page.get_by_role("region", name="Spans of the stretch")
    expect(spans.get_by_role("listitem").filter(has_text="forward")).to_contain_text(
        re.compile(r"\d+ × [\d.]+ ms · [\d.]+ ms · [\d.]+ ms")
    )
    spans.get_by_label("by").select_option("caller")
    timeline.wait_for("by%3Dcaller")
    expect(spans.get_by_role("listitem").filter(has_text="train_step")).to_be_visible()
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press("Enter")
    timeline.wait_for(f"time={start}-{end}")
    assert "range" not in timeline.fields
    crumbs = page.get_by_role("navigation", name="Zoom")
    expect(crumbs).to_contain_text("whole run")
    page.keyboard.press("Backspace")
    timeline.wait_for_whole()


def test_0_shows_the_whole_run_and_escape_clears_the_stretch(page: Page, address: str) -> None:
    timeline = open_timeline(page, address, "&time=100000000-150000000&trail=run&range=110000000-120000000")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("range="))
    page.keyboard.press("0")
    timeline.wait_for_whole()
    assert timeline.window is None


def test_a_click_selects_a_span_and_says_all_about_it(timeline: Timeline) -> None:
    page = timeline.page
    page.keyboard.press("]")
    timeline.wait_for_zoom()
    timeline.settle()
    # Depths of the main thread: <module>, main, train_step, then fetch, forward, backward.
    page.mouse.click(*timeline.at(0.5, timeline.row("main thread") + 2 * 17))
    details = page.get_by_role("complementary")
    expect(details.get_by_role("heading", name="train_step")).to_be_visible()
    expect(details).to_contain_text("python function")
    expect(details).to_contain_text(re.compile(r"program\.py:\d+"))
    expect(details.locator(".call-path li")).to_have_text(["<module>", "main", "train_step"])
    expect(details).to_contain_text("60 of this name here")
    assert timeline.fields["span"].endswith("_2")


def test_one_walks_along_spans_by_keys_alone(timeline: Timeline) -> None:
    page = timeline.page
    name = page.get_by_role("complementary").get_by_role("heading", level=2)
    for key, expected in [(".", "<module>"), ("ArrowDown", "main"), ("ArrowDown", "train_step"), (".", "train_step")]:
        page.keyboard.press(key)
        expect(name).to_have_text(expected)
        page.wait_for_timeout(300)
    expect(page.get_by_role("complementary")).to_contain_text("step1")
    page.keyboard.press("ArrowDown")
    expect(name).to_have_text("fetch")
    page.keyboard.press("ArrowUp")
    page.keyboard.press(",")
    expect(name).to_have_text("train_step")
    page.keyboard.press("f")
    timeline.wait_for_zoom()
    assert timeline.length < 100_000_000


def test_a_double_click_zooms_to_a_span(timeline: Timeline) -> None:
    page = timeline.page
    page.keyboard.press("]")
    timeline.wait_for_zoom()
    timeline.settle()
    before = timeline.window or (0, 0)
    page.mouse.dblclick(*timeline.at(0.75, timeline.row("main thread") + 3 * 17))
    timeline.wait_for("span=")
    timeline.wait_for(rf"time=(?!{before[0]}-{before[1]})")
    timeline.settle()
    assert timeline.length < before[1] - before[0]


def test_a_reload_brings_everything_back(timeline: Timeline) -> None:
    page = timeline.page
    page.keyboard.press("]")
    timeline.wait_for_zoom()
    page.get_by_role("button", name="watcher").click()
    timeline.settle()
    page.mouse.click(*timeline.at(0.5, timeline.row("main thread") + 2 * 17))
    timeline.wait_for("span=")
    before = page.url
    page.reload()
    wait_for_picture(page)
    assert page.url == before
    expect(page.get_by_role("button", name="watcher")).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("complementary").get_by_role("heading", name="train_step")).to_be_visible()
    expect(page.get_by_role("navigation", name="Zoom")).to_contain_text("step")


def test_a_closed_thread_is_one_row(timeline: Timeline) -> None:
    button = timeline.page.get_by_role("button", name="main thread", exact=True)
    tall = (button.bounding_box() or {})["height"]
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false")
    assert (button.bounding_box() or {})["height"] < tall / 2
    timeline.settle()
    assert timeline.colours() > 5


def test_n_goes_to_the_slow_step_and_brackets_to_its_neighbours(timeline: Timeline) -> None:
    page = timeline.page
    slow = re.compile(rf"step {SLOW_STEP} \(\w+, outlier\)")
    for _ in range(25):  # A loaded machine may make other steps slow as well.
        page.keyboard.press("n")
        page.wait_for_timeout(300)
        if slow.search(page.get_by_role("status").first.inner_text()):
            break
    expect(page.locator(".notice")).to_have_text(slow)
    assert timeline.length > 40_000_000
    page.keyboard.press("]")
    expect(page.locator(".notice")).to_contain_text(f"step {SLOW_STEP + 1}")
    page.keyboard.press("[")
    expect(page.locator(".notice")).to_contain_text(f"step {SLOW_STEP}")


def test_c_outlines_the_critical_path_of_the_step_in_the_middle(timeline: Timeline) -> None:
    page = timeline.page
    page.keyboard.press("]")
    timeline.wait_for_zoom()
    timeline.settle()
    (step,) = re.findall(r"step (\d+)", page.locator(".notice").inner_text())
    picture = "document.querySelector('.tracks-canvas').toDataURL()"
    before = page.evaluate(picture)
    page.keyboard.press("c")
    said = re.compile(rf"critical path of step {step}: [\d.]+ ms")
    expect(page.locator(".tracks-canvas")).to_have_attribute("aria-label", said)
    expect(page.get_by_role("button", name="critical path")).to_have_attribute("aria-pressed", "true")
    wait_until(page, f"{picture} !== {before!r}")
    panel = page.get_by_role("region", name="Critical path")
    first = panel.get_by_role("region", name="On the path").get_by_role("listitem").first
    # Of a step of sleeps, the path is its functions on the main thread.
    expect(first).to_contain_text(re.compile(r"(fetch|forward|backward).*m?s.*main thread.*host", re.DOTALL))
    timeline.wait_for("critical=")
    page.reload()
    expect(panel).to_be_visible()
    page.get_by_role("button", name="critical path").click()
    expect(page.get_by_role("button", name="critical path")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".tracks-canvas")).not_to_have_attribute("aria-label", said)


def test_search_finds_in_the_whole_run_and_enter_goes_there(page: Page, address: str) -> None:
    timeline = open_timeline(page, address, "&time=100000000-110000000")
    page.keyboard.press("/")
    page.keyboard.type("backward")
    hits = page.get_by_role("listbox")
    expect(hits.get_by_role("option")).to_have_count(60)
    expect(page.locator(".hits-head")).to_contain_text("60 spans")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary").get_by_role("heading", name="backward")).to_be_visible()
    start, end = timeline.window or (0, 0)
    assert start <= int(timeline.fields["span"].split("_")[1]) < end


def test_the_pointer_tells_what_lies_under_it(timeline: Timeline) -> None:
    page = timeline.page
    page.keyboard.press("]")
    timeline.wait_for_zoom()
    timeline.settle()
    page.mouse.move(*timeline.at(0.5, timeline.row("main thread") + 2 * 17))
    expect(page.get_by_role("tooltip")).to_contain_text("train_step")


def test_letters_in_the_search_field_do_not_move_the_picture(timeline: Timeline) -> None:
    timeline.page.keyboard.press("/")
    timeline.page.keyboard.type("wasd0n")
    timeline.page.wait_for_timeout(300)
    assert timeline.window is None


def test_it_opens_on_three_typical_steps_with_the_whole_run_above(page: Page, address: str) -> None:
    page.goto(f"{address}#page=timeline")
    wait_for_picture(page)
    crumbs = page.get_by_role("navigation", name="Zoom")
    expect(crumbs).to_contain_text(re.compile(r"steps \d+ to \d+"))
    about = page.get_by_role("img", name=re.compile("^Timeline of program"))
    expect(about).to_have_attribute("aria-label", re.compile("[345] of 60 steps"))
    minimap = page.get_by_role("img", name=re.compile("^The whole run"))
    expect(minimap).to_have_attribute("aria-label", re.compile(r"60 steps, the worst is step \d+"))
    assert "time=" not in page.url, "nothing was chosen yet"
    timeline = Timeline(page)
    page.keyboard.press("Backspace")
    timeline.wait_for_whole()
    page.reload()
    wait_for_picture(page)
    expect(about).to_have_attribute("aria-label", re.compile("60 of 60 steps"))
    page.go_back()
    expect(crumbs).to_contain_text(re.compile(r"steps \d+ to \d+"))
    page.get_by_role("button", name="worst step").click()
    expect(page.locator(".notice")).to_have_text(re.compile(r"step \d+ \(\w+, outlier\)"))
    page.get_by_role("button", name="whole run", exact=True).last.click()
    timeline.wait_for_whole()


def test_the_window_is_dragged_on_the_minimap(timeline: Timeline, address: str) -> None:
    page, (first, last) = timeline.page, timeline.whole
    tenth = (last - first) // 10
    begin = first + 2 * tenth
    page.goto(f"{address}#page=timeline&time={begin}-{begin + tenth}")
    minimap = page.get_by_role("img", name=re.compile("^The whole run.* 60 steps"))
    expect(minimap).to_be_visible()
    timeline.settle()
    box = minimap.bounding_box() or {}

    def drag(from_ns: float, to_ns: float) -> None:
        x = [box["x"] + box["width"] * (ns - first) / (last - first) for ns in (from_ns, to_ns)]
        page.mouse.move(x[0], box["y"] + 10)
        page.mouse.down()
        page.mouse.move(x[1], box["y"] + 10, steps=4)
        page.mouse.up()

    drag(begin + tenth / 2, begin + 3.5 * tenth)
    timeline.wait_for(f"time=(?!{begin}-)")
    timeline.settle()
    start, end = timeline.window or (0, 0)
    assert end - start == tenth, "it moves and does not zoom"
    assert abs(start - begin - 3 * tenth) < 2 * (last - first) / box["width"]
    drag(end, end + tenth)
    timeline.wait_for(f"time={start}-(?!{end})")


def test_m_draws_messages_between_ranks_or_notes_that_they_are_too_many(browser: Browser, tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "golden/traces/mpi.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with view(tmp_path / "mpi.strobe") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=timeline")
        wait_for_picture(page)
        timeline, picture = Timeline(page), page.locator(".tracks-canvas")
        expect(page.get_by_role("navigation", name="Zoom")).to_contain_text(re.compile(r"steps \d+ to \d+"))
        timeline.settle()
        before = picture.evaluate("canvas => canvas.toDataURL()")
        page.keyboard.press("m")
        timeline.wait_for("messages=1")
        expect(picture).to_have_attribute("aria-label", re.compile(r", [1-9]\d* lines of messages"))
        timeline.settle()
        assert picture.evaluate("canvas => canvas.toDataURL()") != before
        page.keyboard.press("0")
        expect(page.locator(".notice")).to_have_text(re.compile(r"[\d ]+ messages are here, too many for lines"))
        page.keyboard.press("m")
        expect(page).not_to_have_url(re.compile("messages="))
