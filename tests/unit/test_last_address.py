"""The address of the page: the same after a restart, and known to its user only."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from strobe.server.http.last_address import LastAddress


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def shown(trace: Path) -> str:
    """Start the server as a user does, and stop it once it has printed its address."""
    words = [sys.executable, "-m", "strobe", "view", "--no-browser", str(trace)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        server.terminate()
    return address


def test_a_page_has_the_same_address_after_a_restart_and_another_port_where_that_is_taken(tmp_path: Path) -> None:
    trace = tmp_path / "stacks.folded"
    trace.write_text("main;solve 10\nmain;write 3\n")
    first = shown(trace)
    assert first.startswith("http://127.0.0.1:")
    assert shown(trace) == first
    with socket.create_server(("127.0.0.1", urlsplit(first).port or 0)):
        other = shown(trace)
    assert urlsplit(other).port != urlsplit(first).port
    assert urlsplit(other).path == urlsplit(first).path


def test_other_traces_have_other_tokens_and_the_order_of_their_names_does_not_matter() -> None:
    both = LastAddress([Path("a"), Path("b")])
    both.keep(4000)
    again = LastAddress([Path("b"), Path("a")])
    assert (again.port, again.token) == (4000, both.token)
    other = LastAddress([Path("a")])
    assert other.port == 0
    assert other.token != both.token


def test_only_the_user_can_read_the_file_and_one_that_others_could_write_is_not_believed(cache: Path) -> None:
    kept = LastAddress([Path("a")])
    kept.keep(4000)
    file = cache / "views.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o666)
    assert LastAddress([Path("a")]).token != kept.token


@pytest.mark.parametrize("text", ["", "[]", '{"x": 1}', '{"x": [1]}', "\x00"])
def test_a_damaged_file_is_no_address_and_is_written_anew(cache: Path, text: str) -> None:
    cache.mkdir()
    with open(os.open(cache / "views.json", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(text)
    last = LastAddress([Path("a")])
    assert last.port == 0
    last.keep(4000)
    assert LastAddress([Path("a")]).port == 4000
