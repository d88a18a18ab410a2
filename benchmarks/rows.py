"""The timeline with very many rows: time of a frame and memory of the page, on any trace with many ranks.

./dev bench rows TRACE [--size 2520x1400] [--fields '&fold=none&fit=1']

CPU is that of the page's main thread, for each frame that drew; zooms end further in, where there is room to pan.
"""

import argparse
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from measure import STROBE, middle, table
from playwright.sync_api import Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FIRST = "performance.getEntriesByName('first-picture')[0]?.startTime"
# A frame that drew nothing takes less than this, ms.
DREW_MS = 1.0
COUNTING = """(() => {
  const real = window.requestAnimationFrame.bind(window);
  window.frames_ms = [];
  window.requestAnimationFrame = (draw) => real((now) => {
    const begun = performance.now();
    draw(now);
    window.frames_ms.push(performance.now() - begun);
  });
})()"""


def processes_below(pid: int) -> Iterator[int]:
    """All processes that this one started, and those that they did."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            yield child
            yield from processes_below(child)


def renderers() -> list[int]:
    """The processes of pages."""
    return [p for p in processes_below(os.getpid()) if b"--type=renderer" in Path(f"/proc/{p}/cmdline").read_bytes()]


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def main_thread_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1e3 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gestures(page: Page, what: str) -> None:
    if what == "pointer moves":
        for step in range(40):
            page.mouse.move(500 + 9 * step, 500)
            page.wait_for_timeout(30)
        return
    # What shows the whole run cannot pan: it begins further in.
    for key in {"zoom": "wwwsssww", "pan": "ddaadd"}[what]:
        page.keyboard.down(key)
        page.wait_for_timeout(400)
        page.keyboard.up(key)
        page.wait_for_timeout(100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--size", default="2520x1400")
    parser.add_argument("--fields", default="")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark")
        page.goto("about:blank")
        base = max(map(resident_mb, renderers()))
        page.add_init_script(COUNTING)
        command = [STROBE, "view", options.trace, "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            page.goto(f"{server.stdout.readline().strip()}#page=timeline{options.fields}")
            while page.evaluate(FIRST) is None:
                page.wait_for_timeout(50)
            page.wait_for_timeout(3000)  # until steps and statistics are there: they do not count as frames
            shown = page.evaluate("(c => [c.width, c.height, c.ariaLabel])(document.querySelector('.tracks-canvas'))")
            renderer = max(renderers(), key=resident_mb)
            rows = []
            for what in ("pointer moves", "zoom", "pan"):
                page.evaluate("window.frames_ms.length = 0")
                before = main_thread_ms(renderer)
                gestures(page, what)
                cpu = main_thread_ms(renderer) - before
                drew = sorted(ms for ms in page.evaluate("window.frames_ms") if ms > DREW_MS)
                rows.append(
                    {
                        "what": what,
                        "frames": len(drew),
                        "CPU ms a frame": f"{cpu / max(1, len(drew)):.1f}",
                        "wall ms, median": f"{middle(drew):.1f}",
                        "95 % below": f"{drew[int(0.95 * (len(drew) - 1))]:.1f}",
                    }
                )
            memory = resident_mb(renderer)
            server.terminate()
        browser.close()
    print(f"\n## {shown[2]}: {shown[0]} x {shown[1]} pixels\n")
    above = f"{memory:.0f} MB, {memory - base:.0f} above an empty page"
    print(f"Memory of the page: {above}. Load {os.getloadavg()[0]:.1f}.\n")
    print(table(rows))


if __name__ == "__main__":
    main()
