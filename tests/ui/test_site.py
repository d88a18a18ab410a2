"""The site of the documents: every link leads somewhere, search works, and no other host is asked."""

import http.server
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.conftest import watched_page
from tests.ui.driving import complaints

ROOT = Path(__file__).parents[2]
# The markup of the theme, which we do not write: its search has no name, and its buttons to copy are landmarks.
OF_THE_THEME = ["aria-dialog-name", "landmark-unique"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site; where a link or an anchor leads nowhere there is none."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


def test_search_finds_a_page_without_another_host(browser: Browser, site: str) -> None:
    with watched_page(browser, site) as page:
        page.goto(site)
        expect(page.get_by_role("heading", level=1)).to_contain_text("strobe")
        page.keyboard.press("/")
        page.keyboard.type("straggler")
        page.locator(".md-search-result__link").filter(has_text="late").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("late")


def test_every_kind_of_document_is_in_the_menu(browser: Browser, site: str) -> None:
    with watched_page(browser, site) as page:
        page.goto(site)
        tabs = page.get_by_role("navigation", name="Tabs")
        for kind in ("Tutorials", "How-to", "Reference", "Explanation"):
            expect(tabs.get_by_role("link", name=kind)).to_be_visible()


def test_links_lead_to_files_outside_of_the_documents(browser: Browser, site: str) -> None:
    with watched_page(browser, site) as page:
        page.goto(site)
        page.get_by_role("article").get_by_role("link", name="ARCHITECTURE.md").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Architecture")
        page.get_by_role("article").get_by_role("link", name="glossary").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Glossary")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(browser: Browser, site: str, scheme: str) -> None:
    found = complaints(browser, site, scheme, "h1")
    assert [each for each in found if each[0] not in OF_THE_THEME] == []  # type: ignore[index]
