"""The list of runs: what is known of each, search, order, comparison, files that are opened, the way there and back."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints


@pytest.fixture(scope="module")
def other(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run by another name, of which only the manifest is left to name it."""
    return Path(shutil.copytree(trace, tmp_path_factory.mktemp("other") / "other.strobe"))


def rows(page: Page) -> list[str]:
    return page.get_by_role("row").get_by_role("link").all_inner_texts()


def test_runs_are_listed_found_sorted_and_compared(browser: Browser, trace: Path, other: Path) -> None:
    with view(trace, str(other)) as address, watched_page(browser, address) as page:
        page.goto(address)
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        line = page.get_by_role("row").filter(has=page.get_by_role("link", name="program", exact=True))
        expect(line.locator(".badge")).to_be_visible()  # summed up without being asked
        expect(line.get_by_role("img", name=re.compile("Durations of steps"))).to_be_visible()
        expect(line).to_contain_text("program.py")
        assert complaints(browser, address, "dark", "tbody .badge") == []
        page.get_by_role("columnheader", name="run").get_by_role("button").click()
        assert rows(page) == ["other", "program"]
        page.get_by_role("columnheader", name="run").get_by_role("button").click()
        assert rows(page) == ["program", "other"]
        page.get_by_role("searchbox").fill("other")
        expect(page.get_by_role("link", name="program", exact=True)).to_have_count(0)
        page.reload()  # what is shown is in the address
        expect(page.get_by_role("link", name="other", exact=True)).to_be_visible()
        assert rows(page) == ["other"]
        page.get_by_role("searchbox").fill("")
        for name in ("program", "other"):
            page.get_by_role("checkbox", name=f"Compare {name}").check()
        page.get_by_role("link", name="Compare program with other").click()
        expect(page.get_by_role("toolbar", name="What is compared")).to_contain_text("A program")
        expect(page.get_by_role("combobox", name="B", exact=True)).to_have_value("other")
        expect(page.get_by_role("region", name="In words")).to_contain_text("B is equal to A in every call")


def test_a_file_is_opened_from_the_list_and_the_page_of_a_run_leads_there(
    browser: Browser, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    stacks = tmp_path / "stacks.txt"
    stacks.write_text("main;solve;dot 1042\nmain;read 50\n")
    with view(trace) as address, watched_page(browser, address) as page:
        page.goto(address)
        page.get_by_role("link", name="runs", exact=True).click()
        expect(page.get_by_role("link", name="program", exact=True)).to_be_visible()
        page.get_by_label("Open a file").set_input_files(stacks)
        page.wait_for_url(re.compile("/t/stacks.txt/"))
        expect(page.get_by_role("region", name="Verdict")).to_contain_text("of all samples are in dot itself")
        page.get_by_label("Run", exact=True).select_option("program")
        page.wait_for_url(re.compile("/t/program/"))
        page.get_by_role("link", name="all runs", exact=True).click()
        expect(page.get_by_role("link", name="stacks.txt", exact=True)).to_be_visible()


def test_a_file_that_is_no_trace_is_refused_in_a_sentence(browser: Browser, trace: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "notes.txt"
    wrong.write_bytes(b"\x00\x01")
    with view(trace) as address:
        context = browser.new_context()  # the browser logs the refusal
        page = context.new_page()
        page.goto(f"{address}runs/")
        page.get_by_label("Open a file").set_input_files(wrong)
        expect(page.get_by_role("status")).to_contain_text(re.compile("notes.txt: .*(known|knows|recognised|format)"))
        context.close()


def test_a_file_that_is_dropped_on_the_page_of_a_run_is_opened(
    browser: Browser, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    with view(trace) as address, watched_page(browser, address) as page:
        page.goto(address)
        expect(page.get_by_role("region", name="Verdict")).to_be_visible()
        page.evaluate(
            """() => {
                const data = new DataTransfer();
                data.items.add(new File(["main;solve;dot 1042\\nmain;read 50\\n"], "dropped.txt"));
                window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
            }"""
        )
        page.wait_for_url(re.compile("/t/dropped.txt/"))
        expect(page.get_by_role("region", name="Verdict")).to_contain_text("of all samples are in dot itself")
