"""A real JupyterLab in the browser: the card of a recorded cell, and the page embedded below it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, expect

pytest.importorskip("jupyterlab", reason="jupyterlab is not installed: uv pip install --group jupyter")
pytest.importorskip("jupyter_server_proxy", reason="jupyter-server-proxy is not installed")

LOOP = """%%strobe
def work(step):
    return sum(range(20_000)) + step

for step in range(60):
    work(step)
"""
START_S = 120


@contextmanager
def jupyterlab(folder: Path, proxied: bool) -> Iterator[str]:
    """The address of a JupyterLab in a folder, with or without jupyter-server-proxy."""
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {} if proxied else {"JUPYTER_NO_CONFIG": "1"}  # the packages' settings load their extensions
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            end = time.monotonic() + START_S
            while not (files := list(folder.glob("runtime/jpserver-*.json"))):
                assert time.monotonic() < end, "JupyterLab did not start"
                assert server.poll() is None
                time.sleep(0.1)
            facts = json.loads(files[0].read_text())
            yield f"{facts['url']}lab/tree/a.ipynb?token={facts['token']}&reset"
        finally:
            server.send_signal(signal.SIGTERM)


def servers_of(folder: Path) -> list[str]:
    """The command lines of the servers of pages of traces in a folder."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended meanwhile
    return [line for line in lines if "--until-eof" in line and str(folder) in line]


@pytest.mark.parametrize("proxied", [True, False])
def test_the_card_and_the_timeline_are_seen_in_jupyterlab(browser: Browser, tmp_path: Path, proxied: bool) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in ("%load_ext strobe", LOOP, "%strobe_view")]
    nbformat.write(notebook, tmp_path / "a.ipynb")
    with jupyterlab(tmp_path, proxied) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 1300})
        page.set_default_timeout(120_000)
        page.goto(address)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.get_by_role("button", name="Python 3 (ipykernel) | Idle").wait_for()  # before, it asks which kernel
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        expect(page.locator(".jp-OutputArea-output").first).to_contain_text("60 steps", timeout=120_000)
        frame = page.locator("iframe[title='strobe: a.strobe']")
        expect(frame).to_be_visible(timeout=120_000)
        source = frame.get_attribute("src") or ""
        assert source.startswith("/proxy/" if proxied else "http://127.0.0.1:")
        inside = page.frame_locator("iframe[title='strobe: a.strobe']")
        expect(inside.get_by_role("button", name="main thread")).to_be_visible(timeout=60_000)
        expect(inside.locator(".tracks-canvas")).to_be_visible()
        assert len(servers_of(tmp_path)) == 1
        page.close()
    end = time.monotonic() + 60
    while servers_of(tmp_path):
        assert time.monotonic() < end, "the server of the page is still there without its kernel"
        time.sleep(0.1)
