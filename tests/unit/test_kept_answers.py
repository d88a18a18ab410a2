"""Answers that took long are kept for the next server, as long as the trace has not changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strobe.server.http import app as application
from strobe.server.http import kept_answers
from strobe.server.http.app import Application
from strobe.server.http.kept_answers import KeptAnswers
from strobe.server.http.trace_library import Source
from strobe.trace.archive import Job
from tests.unit.hand_made import HandMadeProcess, make_trace, train_steps
from tests.unit.test_server import TOKEN, Page


class Unreadable(HandMadeProcess):
    """Has no spans any more."""

    def spans(self, location: int, start_ns: int, end_ns: int) -> object:  # type: ignore[override]
        raise OSError("gone")


def server(folder: Path, kind: type[HandMadeProcess], ended: bool = True) -> Page:
    job = Job(zero_ns=0, ended={"exit_code": 0, "ended_ns": 1} if ended else {})
    trace = make_trace(kind({"main": train_steps(20)}, pid=1, main=True), job=job, path=str(folder))
    return Page(Application([Source(folder, lambda: trace)], token=TOKEN, static=folder))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(application, "LONG_S", 0)
    trace = tmp_path / "made.strobe"
    trace.mkdir()
    (trace / "process-1.blocks").write_bytes(b"as it was recorded")
    return trace


def test_the_next_server_need_not_read_the_spans_again(folder: Path) -> None:
    first = server(folder, HandMadeProcess).get("steps")
    (folder / "process-1.tiles").write_bytes(b"made from the others")
    again = server(folder, Unreadable).get("steps")
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert server(folder, Unreadable).get("steps?limit=3").status_code == 500  # another question


def test_a_changed_trace_is_read_again(folder: Path) -> None:
    assert server(folder, HandMadeProcess).get("steps").status_code == 200
    (folder / "process-1.blocks").write_bytes(b"more")
    assert server(folder, Unreadable).get("steps").status_code == 500


def test_nothing_is_kept_of_a_run_that_goes_on(folder: Path) -> None:
    assert server(folder, HandMadeProcess, ended=False).get("steps").status_code == 200
    assert server(folder, Unreadable, ended=False).get("steps").status_code == 500


def test_what_was_not_used_for_longest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 10)
    kept = KeptAnswers(tmp_path)
    for key in ("one", "two"):
        kept.put(key, b"1234")
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    assert kept.get("one") == b"1234"
    kept.put("three", b"1234")
    assert ("one" in kept, "two" in kept, "three" in kept) == (True, False, True)
    assert KeptAnswers(tmp_path / "nowhere").get("one") is None
