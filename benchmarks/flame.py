"""The page Profile with 100 000 call paths: time to the first picture, and to each one while pointer and keys move.

./dev bench flame [--paths 100000] [--rounds 5]
"""

import argparse
import random
import shutil
import subprocess
from pathlib import Path

from measure import STROBE, folder, middle, table
from playwright.sync_api import Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PICTURES = "performance.getEntriesByName('flame-picture').map(one => one.duration)"
WATCH = """window.long = []; new PerformanceObserver(list => {
  for (const one of list.getEntries()) window.long.push(one.duration);
}).observe({ entryTypes: ["longtask"] })"""
WALK = [*["ArrowDown"] * 8, *["ArrowUp"] * 4, "ArrowRight", "ArrowDown", "ArrowLeft", "0"]


def write(path: Path, paths: int) -> None:
    """Collapsed stacks, deep and uneven as real ones are; always the same."""
    chance = random.Random(1)
    known, lines = set(), []
    while len(known) < paths:
        stack = ["main", *(f"m{i}::f{min(int(chance.paretovariate(0.8)), 12)}" for i in range(chance.randint(3, 25)))]
        known.update(tuple(stack[:depth]) for depth in range(1, len(stack) + 1))
        lines.append(f"{';'.join(stack)} {1 + int(chance.paretovariate(0.6) * 10) % 10**7}\n")
    path.write_text("".join(lines))


def pictures_ms(page: Page) -> tuple[list[float], list[float]]:
    """How long pictures took to draw while the pointer moved over them, and while keys walked from path to path."""
    box = page.locator("canvas.flame").bounding_box()
    assert box is not None
    times = []
    for moves in (range(40), WALK):
        page.evaluate("performance.clearMeasures()")
        for move in moves:
            if isinstance(move, int):
                page.mouse.move(box["x"] + 20 + 25 * move, box["y"] + 30 + 8 * move)
            else:
                page.keyboard.press(move)
            page.wait_for_timeout(60)
        times.append([float(one) for one in page.evaluate(PICTURES)])
    return times[0], times[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    first, hover, walk, long = [], [], [], []
    with folder() as place, sync_playwright() as playwright:
        write(place / "big.folded", options.paths)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        command = [STROBE, "view", str(place / "big.folded"), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            for _ in range(options.rounds):
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                page.goto(f"{address}#page=profile")
                page.locator("canvas.flame").wait_for(timeout=60_000)
                first.append(page.evaluate("performance.getEntriesByName('flame-picture')[0]?.startTime ?? 0"))
                page.wait_for_timeout(1000)
                page.evaluate(WATCH)
                over, along = pictures_ms(page)
                hover += over
                walk += along
                long += page.evaluate("window.long")
                page.close()
            server.terminate()
        browser.close()
    print(f"\n## The page Profile, {options.paths} call paths, 1400 x 900, milliseconds\n")
    rows = [
        ("first picture after opening the page", first),
        ("drawing while the pointer moves", hover),
        ("drawing while keys walk and zoom", walk),
    ]
    print(
        table(
            [
                {
                    "what": what,
                    "samples": len(times),
                    "median": f"{middle(times):.1f}",
                    "95 % below": f"{sorted(times)[int(0.95 * (len(times) - 1))]:.1f}",
                    "most": f"{max(times):.1f}",
                }
                for what, times in rows
            ]
        )
    )
    print(f"\nTasks beyond 50 ms meanwhile: {len(long)}")


if __name__ == "__main__":
    main()
