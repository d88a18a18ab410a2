"""The rows of the timeline with many ranks: folded, walked by keys, pinned, filtered, and as the address says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints, open_timeline, wait_for_picture

RANKS = 20
STEPS = 12


def _events(rank: int) -> list[dict[str, object]]:
    pid = 1000 + rank
    names = [(pid, "main thread"), (2, "loader")]
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}} for tid, name in names
    ]
    for step in range(STEPS):
        at = step * 1000.0
        # Rank 5 computes longest, and so waits least for the others.
        compute = 600 + 10 * rank if rank != 5 else 950
        for tid, cat, name, begin, length in (
            (pid, "cpu_op", "aten::linear", at, compute),
            (pid, "user_annotation", "nccl:all_reduce", at + compute, 1000 - compute),
            (2, "cpu_op", "fetch", at, 300),
        ):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": length})
    return events


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a job of 20 ranks, each with a main thread and a loader."""
    folder: Path = tmp_path_factory.mktemp("ui") / "job"
    folder.mkdir()
    for rank in range(RANKS):
        about = {"distributedInfo": {"rank": rank, "world_size": RANKS}, "schemaVersion": 1}
        (folder / f"rank-{rank}.json").write_text(json.dumps({**about, "traceEvents": _events(rank)}))
    with view(folder) as address:
        yield address


@pytest.fixture
def job(browser: Browser, ranks: str) -> Iterator[Page]:
    with watched_page(browser, ranks) as page:
        yield page


def names(page: Page) -> list[str]:
    return page.locator(".tracks-body:not(.pinned) .gutter-name").all_inner_texts()


def row(page: Page, name: str) -> Locator:
    return page.locator(".tracks-body:not(.pinned)").get_by_role("button", name=name, exact=True)


def test_many_ranks_come_folded_and_are_walked_and_pinned_by_keys(job: Page, ranks: str) -> None:
    timeline = open_timeline(job, ranks)
    assert names(job) == [f"rank {rank}" for rank in range(RANKS)]
    assert timeline.colours() > 5
    job.keyboard.press("r")
    expect(row(job, "rank 0")).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        job.keyboard.press(key)
    expect(row(job, "rank 2 1002")).to_have_attribute("aria-expanded", "true")
    # Each rank has steps of its own; they come later than the picture.
    expect(row(job, "steps")).to_be_visible()
    assert names(job)[2:7] == ["rank 2", "steps", "main thread", "loader", "rank 3"]
    for _ in range(3):
        job.keyboard.press("ArrowDown")
    expect(row(job, "loader")).to_be_focused()
    job.keyboard.press("p")
    pinned = job.get_by_role("region", name="Pinned rows")
    expect(pinned.locator(".gutter-name")).to_have_text(["rank 2 · loader"])
    for key in ("ArrowLeft", "ArrowLeft"):
        job.keyboard.press(key)
    assert names(job)[2:4] == ["rank 2", "rank 3"]
    before = job.url
    job.reload()
    wait_for_picture(job)
    assert job.url == before
    expect(pinned.locator(".gutter-name")).to_have_text(["rank 2 · loader"])


def test_a_filter_says_what_it_hides_and_all_rows_fit_when_asked(job: Page, ranks: str) -> None:
    timeline = open_timeline(job, ranks, "&preset=master")
    job.keyboard.press("Backslash")
    job.keyboard.type("rank:3-5,17 loader")
    job.keyboard.press("Enter")
    expect(job.locator(".gutter-name")).to_have_text(["rank 3", "rank 4", "rank 5", "rank 17"])
    expect(job.locator(".tracks-canvas")).to_have_attribute("aria-label", re.compile("4 threads"))
    job.get_by_role("button", name=f"{2 * RANKS - 4} threads hidden").click()
    assert names(job) == [f"rank {rank}" for rank in range(RANKS)]
    assert "rows" not in timeline.fields
    job.set_viewport_size({"width": 1400, "height": 420})
    job.keyboard.press("v")
    timeline.wait_for("fit=1")
    body = job.locator(".tracks-body")
    assert body.evaluate("e => e.scrollHeight <= e.clientHeight + 1"), "all rows are on the screen"
    assert timeline.colours() > 5


def test_rows_are_ordered_by_what_they_have(job: Page, ranks: str) -> None:
    timeline = open_timeline(job, ranks, "&preset=master&sort=time&region=nccl:all_reduce")
    by_time = [f"rank {rank}" for rank in (*(each for each in range(RANKS) if each != 5), 5)]
    expect(job.locator(".gutter-name").first).to_have_text("rank 0")
    expect(job.locator(".gutter-name").last).to_have_text("rank 5")
    assert names(job) == by_time
    # Late in a step rank 5 alone still computes.
    open_timeline(job, ranks, "&preset=radar&measure=group.compute")
    job.mouse.move(*timeline.at(3.85 / STEPS, 100))
    job.keyboard.press("o")
    expect(job.locator(".gutter-name").first).to_have_text("rank 5")
    timeline.wait_for("sort=value-38")


def test_summary_and_radar_show_all_ranks_and_say_what_is_under_the_pointer(job: Page, ranks: str) -> None:
    timeline = open_timeline(job, ranks, "&preset=summary")
    assert names(job) == ["main thread", "loader"]
    job.mouse.move(*timeline.at(2.3 / STEPS, 100))
    expect(job.get_by_role("tooltip")).to_contain_text(re.compile(r"Compute\s*100 %"))
    assert timeline.colours() > 3
    job.keyboard.press("k")
    timeline.wait_for("preset=radar")
    expect(job.get_by_role("img", name="Colours: share of communication from 0 % to 100 %")).to_be_visible()
    job.mouse.move(*timeline.at(2.97 / STEPS, 100))
    expect(job.get_by_role("tooltip")).to_contain_text(re.compile(r"rank \d+\s*share of communication\s*100 %"))


def test_more_ranks_than_pixels_are_rows_of_many_that_open(job: Page, ranks: str) -> None:
    job.set_viewport_size({"width": 1400, "height": 303})
    timeline = open_timeline(job, ranks, "&preset=master&fit=1")
    assert timeline.box["height"] < RANKS, "there are fewer pixels than ranks"
    expect(row(job, "ranks 0–7 main thread")).to_have_attribute("aria-expanded", "false")
    job.mouse.click(*timeline.at(0.5, 1))
    timeline.wait_for("fold=~g0.1.0")
    expect(row(job, "ranks 0–7 main thread")).to_have_attribute("aria-expanded", "true")
    expect(row(job, "rank 0 · main thread")).to_be_visible()


@pytest.mark.parametrize(
    ("scheme", "more", "ready"),
    [("dark", "pin=l3&fold=~p1&rows=rank", ".pinned-canvas"), ("light", "preset=radar&fold=~p1", ".radar-scale")],
)
def test_the_rows_and_their_controls_are_sound_for_those_who_do_not_see_them(
    browser: Browser, ranks: str, scheme: str, more: str, ready: str
) -> None:
    assert complaints(browser, f"{ranks}#page=timeline&{more}", scheme, ready) == []
