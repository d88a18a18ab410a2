"""The page on a trace of a million spans: time to the first picture in Chromium, and the server's time for zooms.

./dev bench view [--rounds 7] [--zooms 40]
"""

import argparse
import re
import shutil
import subprocess
from pathlib import Path

from measure import STROBE, checked, folder, middle, table
from playwright.sync_api import Browser, Page, sync_playwright

PROGRAM = """
import time

def leaf(): pass

def branch():
    for _ in range(9): leaf()

def tree():
    for _ in range(9): branch()

def wait(): time.sleep(0.001)

def step():
    wait()
    for _ in range(3): tree()

for _ in range(3650): step()
"""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FIRST = "performance.getEntriesByName('first-picture')[0]?.startTime"


def record(place: Path) -> Path:
    """A run of about a million spans in one thread."""
    (place / "million.py").write_text(PROGRAM)
    trace = place / "million.strobe"
    checked([STROBE, "run", "--quiet", "-o", str(trace), "million.py"], place)
    return trace


def first_picture_ms(browser: Browser, address: str) -> float:
    """From the start of the navigation to the first picture that lacks nothing; nothing is cached."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{address}#page=timeline")
    while (at := page.evaluate(FIRST)) is None:
        page.wait_for_timeout(20)
    page.close()
    return float(at)


def zoom_times_ms(page: Page, address: str, zooms: int) -> list[float]:
    """Server time of every picture that zooming in and out again asks for, at moving places."""
    times: list[float] = []

    def note(timing: str | None) -> None:
        if found := re.search(r"answer;dur=([\d.]+)", timing or ""):
            times.append(float(found[1]))

    page.goto(f"{address}#page=timeline")
    page.wait_for_timeout(2500)  # until the steps are found: not part of a zoom
    page.on(
        "response",
        lambda r: note(r.headers.get("server-timing")) if re.search("api/(stack|cells)", r.url) else None,
    )
    for number in range(zooms):
        if number % 10 == 0:
            page.keyboard.press("0")
            page.mouse.move(300 + (number * 97) % 700, 400)
        page.keyboard.down("w")
        page.wait_for_timeout(350)
        page.keyboard.up("w")
        page.wait_for_timeout(350)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--zooms", type=int, default=40)
    options = parser.parse_args()
    with folder() as place, sync_playwright() as playwright:
        trace = record(place)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        command = [STROBE, "view", str(trace), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            first = [first_picture_ms(browser, address) for _ in range(options.rounds)]
            zooms = zoom_times_ms(browser.new_page(viewport={"width": 1400, "height": 900}), address, options.zooms)
            server.terminate()
        browser.close()
    spans = "a million spans in one thread"
    print(f"\n## The page, {spans}, 1400 x 900, wall milliseconds\n")
    rows = [("first picture after opening the page", first), ("server time of a picture while zooming", zooms)]
    print(
        table(
            [
                {
                    "what": what,
                    "samples": len(values),
                    "median": f"{middle(values):.0f}",
                    "95 % below": f"{sorted(values)[int(0.95 * (len(values) - 1))]:.0f}",
                    "most": f"{max(values):.0f}",
                }
                for what, values in rows
            ]
        )
    )


if __name__ == "__main__":
    main()
