"""One recorded run, its server as a user starts it, and a Chromium that notices whatever goes wrong on the page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

# Five seconds are not enough where eight programs share two cores.
expect.set_options(timeout=20_000)

STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM = Path(__file__).with_name("program.py")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Headless Chromium asks the network for updates unless told not to; it has no sandbox where it runs as root.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs a browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of program.py: 60 steps, number 41 of them slow."""
    path = tmp_path_factory.mktemp("ui") / "program.strobe"
    subprocess.run([STROBE, "run", "--quiet", "--keep", "all", "-o", str(path), str(PROGRAM)], check=True)
    return path


@pytest.fixture(scope="session")
def address(trace: Path) -> Iterator[str]:
    """The address of the run's page."""
    with view(trace) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def watched_page(browser: Browser, address: str) -> Iterator[Page]:
    """An empty page of 1400 x 900. The test fails if the page complains, or asks anybody but its own server."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="dark", bypass_csp=False)
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    origin = address.split("/", 3)[2]
    page.on("request", lambda r: troubles.append(f"asked {r.url}") if r.url.split("/", 3)[2] != origin else None)
    yield page
    context.close()
    assert troubles == []


@contextmanager
def view(trace: Path, *more: str) -> Iterator[str]:
    """The address that `strobe view` prints, while it serves."""
    with subprocess.Popen(
        [STROBE, "view", str(trace), *more, "--no-browser"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A watched page for the run of program.py."""
    with watched_page(browser, address) as page:
        yield page
