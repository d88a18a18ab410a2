"""Makes the pictures of the documents and the summary in the README: `./dev screenshots` (needs Debian's Chromium)."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import strobe

IMAGES = Path(__file__).parent
ROOT = IMAGES.parents[1]
TRACES = ROOT / "build/screenshots"
NEUTRAL = Path(tempfile.gettempdir(), "strobe")  # programs run there: pictures have paths of no one's machine
COLOURS = 256  # of a picture: a third of the bytes, and nobody sees it
SETTLED_MS = 3000
SUMMARY = re.compile(r"(?<=<!-- The summary is written by ./dev screenshots. -->\n```text\n).*?(?=```)", re.DOTALL)
STROBE = str(Path(sys.executable).with_name("strobe"))
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def record(name: str, *command: str) -> Path:
    """Record a program, unless an earlier call has; return the trace."""
    trace = TRACES / f"{name}.strobe"
    if not trace.exists():
        shutil.copytree(ROOT / "examples", NEUTRAL / "examples", dirs_exist_ok=True)
        subprocess.run([STROBE, "run", "-o", str(trace), *command], check=True, cwd=NEUTRAL)
    return trace


def unpacked(name: str) -> Path:
    """A small trace of the tests."""
    shutil.unpack_archive(ROOT / f"tests/golden/traces/{name}.tar.xz", TRACES)
    return TRACES / f"{name}.strobe"


def write_summary(trace: Path) -> None:
    """Put the summary of a run into the README: the verdict, one step, what to fix."""
    command = [STROBE, "summary", trace.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=TRACES)
    shown = done.stdout.strip("─\n").partition("\nTop ")[0].replace(f"{NEUTRAL}/", "")
    readme = ROOT / "README.md"
    readme.write_text(SUMMARY.sub(lambda _: f"{shown.rstrip()}\n", readme.read_text()))


def shoot(page: Page, address: str, name: str, shown: str) -> None:
    """Write images/NAME.png: what the page shows at an address, when all its answers are there."""
    page.goto("about:blank")
    page.goto(f"{address}#page={shown}")
    page.locator("main").wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLED_MS)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def longest_wait(trace: Path) -> tuple[int, str]:
    """The step that waits longest for its batch, and what an address of the timeline has for it and that wait."""
    with strobe.open(trace) as run:
        query = "select step, start_ns, duration_ns from steps where steady order by data_wait_ns desc limit 1"
        ((step, start_ns, duration_ns),) = run.sql(query).rows()
        (wait,) = run.sql(
            "select location, start_ns, depth from spans where process = 0 and \"group\" = 'data'"
            f" and start_ns between {start_ns} and {start_ns + duration_ns} order by duration_ns desc limit 1"
        ).rows()
    window = f"{start_ns - duration_ns // 2}-{start_ns + duration_ns * 3 // 2}"
    return step, f"step={step}&time={window}&span={'_'.join(map(str, wait))}"


@contextmanager
def viewed(trace: Path) -> Iterator[str]:
    """The address at which a trace is shown."""
    server = subprocess.Popen([STROBE, "view", "--no-browser", str(trace)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    write_summary(record("train_cnn", "examples/train_cnn.py", "--steps", "60"))
    training = record("training", "--keep", "all", "examples/train_cnn.py", "--steps", "300")
    ranks = record("ranks", "torchrun", "--standalone", "--nproc-per-node", "4", "examples/train_ranks.py")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 860})
        with viewed(training) as address:
            shoot(page, address, "overview", "overview")
            step, shown = longest_wait(training)
            shoot(page, address, "timeline", f"timeline&{shown}")
            shoot(page, address, "steps", f"steps&step={step}")
            shoot(page, address, "structure", f"structure&step={step}&region=aten::conv2d")
            shoot(page, address, "profile", "profile&profile=heavy---steady")
            shoot(page, address, "data-pipeline", "data")
            shoot(page, address, "operators", "operators")
        with viewed(ranks) as address:
            shoot(page, address, "ranks", "ranks")
        with viewed(unpacked("gpu")) as address:
            shoot(page, address, "gpus", "devices")
            shoot(page, address, "kernels", "kernels")
        browser.close()


if __name__ == "__main__":
    main()
