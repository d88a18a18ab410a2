"""Notes on the timeline and labels of runs, as people write them in the browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from strobe.api.trace import open_trace
from tests.ui.conftest import view, watched_page
from tests.ui.driving import Timeline, complaints, open_timeline

HOSTILE = "<img src=x onerror=alert(1)> is slow"


@pytest.fixture(scope="module")
def own(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, so that no other test sees what is noted."""
    return Path(shutil.copytree(trace, tmp_path_factory.mktemp("noted") / "noted.strobe"))


@pytest.fixture(scope="module")
def noted(own: Path) -> Iterator[str]:
    with view(own) as address:
        yield address


def flag(timeline: Timeline) -> tuple[float, float]:
    """Where the flag of a note stands on the ruler that begins after a quarter of the run."""
    x, _ = timeline.at(0.25, 0)
    return x + 3, timeline.page.locator(".tracks-head").bounding_box()["y"] + 4  # type: ignore[index]


def drawn(page: Page, canvas: str, x: float) -> int:
    """How many pixels of a column of a canvas have the colour of notes."""
    count: int = page.locator(canvas).evaluate(
        """(canvas, x) => {
            const { data } = canvas.getContext("2d").getImageData(Math.round(x), 0, 1, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4)
                if (data[i] > 200 && data[i + 1] > 150 && data[i + 1] < 200 && data[i + 2] < 110) count++;
            return count;
        }""",
        x,
    )
    return count


def test_a_stretch_a_moment_and_a_span_are_noted_drawn_changed_and_deleted(
    browser: Browser, noted: str, own: Path
) -> None:
    with watched_page(browser, noted) as page:
        first, last = open_timeline(page, noted).whole
        start, end = first + (last - first) // 4, first + (last - first) // 2
        timeline = open_timeline(page, noted, f"&range={start}-{end}&notes=1")
        page.keyboard.press("b")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading")).to_have_text(re.compile("Note on a range of"))
        page.keyboard.type(HOSTILE)
        page.keyboard.press("Enter")
        notes = page.get_by_role("complementary", name="Notes on the run")
        expect(notes).to_contain_text(HOSTILE)  # text, and no picture
        expect(notes.get_by_role("heading")).to_have_text("1 note")
        assert complaints(browser, f"{noted}#page=timeline&notes=1", "light", ".note-line") == []

        page.keyboard.press("Escape")  # clears the stretch
        timeline.wait_for(r"^(?!.*range=)")
        timeline.settle()
        at = timeline.box["width"] / 4
        assert drawn(page, ".tracks-head canvas", at + 3) > 2, "a flag on the ruler"
        assert drawn(page, ".tracks-canvas", at) > 100, "a band through the tracks"
        row = timeline.row("main thread")
        page.mouse.move(*timeline.at(0.6, row))
        page.keyboard.press("b")
        expect(dialog.get_by_role("heading")).to_have_text("Note on a moment")
        expect(dialog).to_contain_text("main thread")
        page.keyboard.type("here")
        page.keyboard.press("Enter")
        expect(notes.get_by_role("heading")).to_have_text("2 notes")

        page.mouse.click(*timeline.at(0.6, row))
        timeline.wait_for("span=")
        page.keyboard.press("b")
        expect(dialog.get_by_role("heading")).to_have_text(re.compile("Note on a span .+"))
        page.keyboard.type("this one")
        page.keyboard.press("Enter")
        expect(notes.get_by_role("heading")).to_have_text("3 notes")
        kinds = {row["text"]: row["kind"] for row in open_trace(own).ask("notes").to_arrow().to_pylist()}
        assert kinds == {HOSTILE: "range", "here": "moment", "this one": "span"}

        page.mouse.click(*flag(timeline))
        dialog.get_by_role("textbox").fill("changed")
        dialog.get_by_role("button", name="Save").click()
        expect(notes).to_contain_text("changed")
        notes.get_by_role("button", name="Edit the note here").click()
        dialog.get_by_role("button", name="Delete").click()
        expect(notes.get_by_role("heading")).to_have_text("2 notes")
        page.reload()
        expect(notes.get_by_role("heading")).to_have_text("2 notes")
        notes.get_by_role("button", name=re.compile("changed$")).first.click()
        timeline.wait_for_zoom()
        window = timeline.window or (0, 0)
        assert window[0] < start < end < window[1] < last
    texts = [note["text"] for note in json.loads((own / "notes.json").read_text())["notes"]]
    assert sorted(texts) == ["changed", "this one"]


def test_a_note_that_cannot_be_kept_is_not_lost_on_the_page(browser: Browser, trace: Path, tmp_path: Path) -> None:
    locked = Path(shutil.copytree(trace, tmp_path / "locked.strobe"))
    with view(locked) as address:
        context = browser.new_context(viewport={"width": 1400, "height": 900})  # the browser logs the refusal
        page = context.new_page()
        open_timeline(page, address)
        (locked / "notes.json").mkdir()  # what nobody can write, root neither
        page.keyboard.press("b")
        expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
        page.keyboard.type("keep me")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the note cannot be kept in")
        expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_value("keep me")
        context.close()


def test_runs_are_labelled_and_found_by_their_labels(browser: Browser, trace: Path, own: Path) -> None:
    with view(trace, str(own)) as address, watched_page(browser, address) as page:
        page.goto(address)
        page.get_by_role("button", name="Labels of noted").click()
        field = page.get_by_role("textbox", name="Labels of noted")
        field.fill("baseline, bf16 ")
        field.press("Enter")
        expect(page.locator(".label")).to_have_text(["baseline", "bf16"])
        page.get_by_role("searchbox").fill("BF16")
        expect(page.get_by_role("link", name="program", exact=True)).to_have_count(0)
        page.reload()
        expect(page.locator(".label")).to_have_text(["baseline", "bf16"])
        assert complaints(browser, f"{address}#find=bf16", "light", ".label") == []
        assert open_trace(own).ask("notes").about == "labels: baseline, bf16"
        page.get_by_role("button", name="Labels of noted").click()
        page.get_by_role("textbox", name="Labels of noted").fill("")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="noted", exact=True)).to_have_count(0)  # nothing is found by it any more
