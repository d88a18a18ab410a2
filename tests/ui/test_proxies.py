"""Several runs in a real browser, behind real reverse proxies: one takes its prefix away, one leaves it."""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.conftest import view, watched_page
from tests.ui.driving import wait_for_picture

PUBLIC = "hub.example"


@contextmanager
def proxy(port: int, prefix: str, strips: bool) -> Iterator[str]:
    """A reverse proxy that shows a port of this machine under a prefix, and tells it the name by which it is known."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            onwards = http.client.HTTPConnection("127.0.0.1", port)
            onwards.request(
                "GET", self.path.removeprefix(prefix if strips else ""), headers={**self.headers, "Host": PUBLIC}
            )
            answer = onwards.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            onwards.close()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        # A browser opens connections that it asks nothing on: nobody waits for those.
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def other(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run by another name."""
    return Path(shutil.copytree(trace, tmp_path_factory.mktemp("other") / "other.strobe"))


@pytest.mark.parametrize(("prefix", "strips"), [("/user/me/proxy/8888", True), ("/node/n17.cluster/40123", False)])
def test_runs_are_shown_behind_a_proxy(browser: Browser, trace: Path, other: Path, prefix: str, strips: bool) -> None:
    with view(trace, str(other), "--allow-host", PUBLIC) as address:
        port, token = address.split(":")[2].split("/")[:2]
        with proxy(int(port), prefix, strips) as public, watched_page(browser, f"{public}/") as page:
            page.goto(f"{public}/{token}/")
            page.get_by_role("link", name="program", exact=True).click()
            page.wait_for_url(f"{public}/{token}/t/program/**")
            page.get_by_role("navigation").get_by_role("button", name="Timeline").click()
            wait_for_picture(page)
            expect(page.get_by_role("button", name="main thread")).to_be_visible()
            page.get_by_label("Run", exact=True).select_option("other")
            page.wait_for_url(f"{public}/{token}/t/other/**")
            expect(page.get_by_role("contentinfo")).to_contain_text("other.strobe")
            page.get_by_role("link", name="all runs", exact=True).click()
            expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_a_name_of_a_proxy_that_nobody_allowed_is_refused(trace: Path) -> None:
    with view(trace) as address:
        port, path = int(address.split(":")[2].split("/")[0]), "/" + address.split("/", 3)[3]
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers={"Host": PUBLIC})
        answer = connection.getresponse()
        assert (answer.status, "--allow-host" in answer.read().decode()) == (421, True)
        connection.close()
