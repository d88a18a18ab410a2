"""Whoever shows how many steps there are, how long one takes and how long it waits for data shows the same figures."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import strobe
from strobe.present.summary import summarise
from tests.golden import answers
from tests.ui.conftest import view, watched_page

UNITS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}


def count(text: str) -> int:
    """The first number of a text: "1 200 steps"."""
    found = re.search(r"\d[\d\s]*", text)
    assert found, text
    return int(re.sub(r"\s", "", found[0]))


def duration_ns(text: str) -> float:
    """The first duration of a text."""
    found = re.search(r"([\d.]+)\s(ns|µs|ms|s|min)\b", text)
    assert found, text
    return float(found[1]) * UNITS[found[2]]


def overview(page: Page, address: str) -> dict[str, object]:
    page.goto(f"{address}#page=overview")
    card = page.get_by_role("region", name="All steps")
    expect(card).to_be_visible()
    rows = [item.inner_text() for item in card.get_by_role("listitem").all() if "outlier" not in item.inner_text()]
    found = page.locator(".found").inner_text()
    return {
        "steps": count(found),
        "classes": sorted(count(row.split("\n")[1] if "\n" in row else row) for row in rows),
        "verdict": page.get_by_role("region", name="Verdict").locator("p").first.inner_text(),
        "confidence": re.search(r"found with (\w+) confidence", found)[1],  # type: ignore[index]
    }


def steps_page(page: Page, address: str) -> dict[str, object]:
    page.goto(f"{address}#page=steps")
    chips = page.get_by_role("toolbar", name="Which steps are listed").get_by_role("button")
    expect(chips.first).to_be_visible()
    others = re.compile("outliers|▲|kept")
    classes = [chip.locator("b").inner_text() for chip in chips.all() if not others.match(chip.inner_text())]
    splits = page.locator(".step-split")

    def of(split: Locator) -> float:
        return duration_ns(split.locator(".number").inner_text())

    expect(splits.first).to_be_visible()
    return {
        "classes": sorted(map(count, classes)),
        "means": [
            (count(split.locator(".weak").inner_text().split("mean of")[1]), of(split)) for split in splits.all()
        ],
    }


def shown_wait(page: Page, address: str) -> float | None:
    """What the loop waits for its data, as a part of a step; None where there is no data pipeline."""
    page.goto(f"{address}#page=data")
    expect(page.locator("main .verdict p, main .empty p").first).to_be_visible()
    text = page.locator("main").inner_text()
    if "There is no data pipeline to show" in text:
        return None
    found = re.search(r"\(([\d.]+)\s%\) of a step on average", text)
    assert found, text
    return float(found[1]) / 100


# Without steps, the page has one sentence: of each kind of profile one trace is enough.
WITHOUT_STEPS = {"callgrind", "cprofile", "kineto", "mpi-traffic", "otf2", "sampled"}


@pytest.mark.parametrize("name", sorted({*answers.names()} - WITHOUT_STEPS))
def test_pages_show_what_the_verbs_answer(browser: Browser, name: str, tmp_path: Path) -> None:
    with tarfile.open(answers.TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    path = tmp_path / f"{name}.strobe"
    trace = strobe.open(path)
    summary = summarise(trace)
    with view(path) as address, watched_page(browser, address) as page:
        if summary.step is None:
            page.goto(f"{address}#page=steps")
            expect(page.get_by_text("No steps were found")).to_be_visible()
            return
        shown, listed = overview(page, address), steps_page(page, address)
        waits = [row["wait_share"] for row in trace.ask("data_pipeline").to_pylist()]
        assert shown_wait(page, address) == (pytest.approx(max(waits), abs=0.006) if waits else None)
    assert shown["steps"] == summary.step.count
    told = re.sub(r"^[a-z]+-bound: ", "", summary.verdict.text)
    assert told[1:].rstrip(".") in str(shown["verdict"])
    assert shown["confidence"] == summary.step.confidence
    assert shown["classes"] == listed["classes"] == sorted(each.count for each in summary.classes)
    for question in ("step_time", "step_trace"):
        row = trace.ask(question).to_pylist()[0]
        if not row.get("forward_backward_ns", 1):  # the page has no passes where there are none
            continue
        assert any(row["duration_ns"] == pytest.approx(ns, rel=0.01) for _, ns in listed["means"])
        if "steps" in row:
            assert row["steps"] in [number for number, _ in listed["means"]]
