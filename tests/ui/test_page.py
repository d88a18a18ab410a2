"""The frame of the page: overview, keys, themes, accessibility, proxies, answers in time."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from strobe.model import exit_codes
from tests.deep.kineto import kernel, operator, profile, step
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import complaints, open_timeline, wait_until


def test_the_overview_says_what_the_summary_says(page: Page, address: str, trace: Path) -> None:
    printed = subprocess.run([STROBE, "summary", str(trace), "--json"], capture_output=True, text=True, check=True)
    summary = json.loads(printed.stdout)
    page.goto(address)
    verdict = summary["verdict"]["text"].removeprefix(f"{summary['verdict']['kind']}: ")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text(verdict, ignore_case=True)
    expect(page.get_by_role("region", name="One step")).to_contain_text(f"{summary['step']['count']} steps")
    for finding in summary["findings"]:
        expect(page.get_by_role("region", name="Most worth fixing")).to_contain_text(finding["what"], ignore_case=True)
    expect(page.get_by_role("region", name="Can it be trusted?")).to_contain_text("complete")
    expect(page.get_by_role("img", name=re.compile("^Steps: "))).to_be_visible()


def test_the_overview_shows_what_gpus_do(browser: Browser, tmp_path: Path) -> None:
    events = [step(n, 1000 * n, 1000) for n in range(6)]
    events += [operator("aten::mm", 1000 * n + at, 100) for n in range(6) for at in (0, 300, 600)]
    events += [kernel("gemm", 1000 * n, 250) for n in range(6)]
    trace = profile(tmp_path, *events)
    with view(trace.path) as address, watched_page(browser, address) as page:
        page.goto(address)
        expect(page.get_by_role("region", name="Verdict")).to_contain_text("The GPU is idle 75 % of the time")
        step_card = page.get_by_role("region", name="One step")
        lane = step_card.get_by_role("list", name=re.compile("^GPU 0, mean of "))
        expect(lane).to_contain_text(re.compile("computes.*25 %.*idle: other.*75 %"))
        expect(lane.get_by_role("button", name="computes")).to_have_attribute(
            "title", re.compile("a kernel computes: 25 %")
        )
        bars = step_card.locator(".step-bar")
        width = {
            kind: bars.get_by_title(re.compile(f"^{kind}")).evaluate("bar => bar.clientWidth")
            for kind in ("computes", "idle")
        }
        assert width["idle"] == pytest.approx(3 * width["computes"], rel=0.02)
        lane.get_by_role("button", name="computes").click()
        expect(page).to_have_url(re.compile("page=kernels"))
        page.go_back()
        lane.get_by_role("button", name="idle: other").click()  # the longest gap
        expect(page).to_have_url(re.compile("page=timeline.*range="))
        page.go_back()
        page.get_by_role("button", name="such a step on the timeline").click()
        expect(page).to_have_url(re.compile("page=timeline&time="))
        expect(page.get_by_role("navigation", name="Zoom")).to_contain_text("step ")


def test_the_overview_draws_metrics(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("img", name="Memory over the run").locator("canvas")).to_be_visible()


def test_a_bar_of_the_strip_leads_to_its_step(page: Page, address: str) -> None:
    page.goto(address)
    strip = page.get_by_role("img", name=re.compile("^Steps: "))
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 41.5 / 60, box["y"] + box["height"] - 5)
    expect(page).to_have_url(re.compile("page=timeline&time="))
    expect(page.get_by_role("navigation", name="Zoom")).to_contain_text("step 41")


def test_evidence_leads_to_the_place_that_shows_it(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_title("Show it on the timeline").first.click()
    expect(page).to_have_url(re.compile("page=timeline&time=.*range="))
    expect(page.get_by_role("heading", name="Chosen stretch")).to_be_visible()


def test_digits_open_pages_and_the_question_mark_the_keys(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Timeline")).to_have_attribute("aria-current", "page")
    page.keyboard.press("1")
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("undo the last zoom")
    expect(keys).to_contain_text(re.compile("▼ rare and long.*16 times the median"))
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_theme_follows_the_system_until_it_is_chosen(browser: Browser, address: str) -> None:
    page = browser.new_page(color_scheme="light")
    page.goto(address)
    background = "getComputedStyle(document.body).backgroundColor"
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.keyboard.press("t")
    wait_until(page, f"{background} === 'rgb(18, 21, 27)'")
    page.reload()
    wait_until(page, f"{background} === 'rgb(18, 21, 27)'")
    page.close()


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize(
    "name", ["overview", "timeline", "profile", "operators", "kernels", "steps", "data", "structure"]
)
def test_axe_finds_nothing_to_complain_about(browser: Browser, address: str, name: str, scheme: str) -> None:
    assert complaints(browser, f"{address}#page={name}", scheme, "main") == []


def test_a_page_whose_server_is_gone_goes_on_when_it_is_started_again(browser: Browser, trace: Path) -> None:
    page = browser.new_page()
    with view(trace) as address:
        open_timeline(page, address)
    gone = page.get_by_role("alert").filter(has_text="strobe view")
    page.keyboard.press("]")
    expect(gone).to_be_visible()
    with view(trace) as again:
        assert again == address
        expect(gone).to_be_hidden(timeout=20_000)
        page.keyboard.press("2")  # another page, whose answers the first server never gave
        expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


def test_the_server_ends_with_ctrl_c(trace: Path) -> None:
    with subprocess.Popen([STROBE, "view", str(trace), "--no-browser"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{16}/\n", server.stdout.readline())
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(timeout=20) in (0, 130)
        finally:
            server.kill()


def test_a_taken_port_is_said_in_a_sentence(trace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [STROBE, "view", str(trace), "--no-browser", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == exit_codes.FAILED
    assert done.stdout == ""
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
