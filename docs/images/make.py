"""Makes the pictures of the README and the tutorial: `./dev screenshots` (needs Debian's Chromium)."""

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent
ROOT = IMAGES.parents[1]
TRACE = ROOT / "build/screenshots.strobe"
STROBE = str(Path(sys.executable).with_name("strobe"))
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def record() -> None:
    """Record the example with all its steps, unless an earlier call has."""
    if not TRACE.exists():
        program = [str(ROOT / "examples/train_cnn.py"), "--steps", "300", "--seed", "1"]
        subprocess.run([STROBE, "run", "--keep", "all", "-o", str(TRACE), *program], check=True)


def shoot(page: Page, address: str) -> None:
    """The pages, with what a first look shows."""
    page.goto(address)
    page.get_by_label("Verdict").wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / "overview.png")
    page.keyboard.press("2")
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="outlier").click()
    page.get_by_role("navigation", name="Zoom").get_by_text("step 18").wait_for()
    # The slow step with its neighbours, and the facts about the wait that makes it slow.
    page.mouse.move(620, 700)
    page.keyboard.down("s")
    page.wait_for_timeout(350)
    page.keyboard.up("s")
    page.wait_for_timeout(800)
    page.mouse.click(620, 401)
    page.get_by_role("complementary").get_by_role("heading", level=2).wait_for()
    page.mouse.move(620, 760)
    page.locator(".notice").wait_for(state="hidden")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / "timeline.png")
    # The same slow step among the others, and what differs in it from the usual one.
    page.goto(f"{address}#page=steps&step=55")
    page.get_by_role("row", selected=True).wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / "steps.png")
    page.goto(f"{address}#page=structure&step=55&region=aten::conv2d")
    page.locator(".graph-node").first.wait_for()
    page.get_by_role("list", name="What differs most from the usual step").wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / "structure.png")


def main() -> None:
    record()
    server = subprocess.Popen([STROBE, "view", "--no-browser", str(TRACE)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            shoot(browser.new_page(viewport={"width": 1400, "height": 860}), found[0])
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
