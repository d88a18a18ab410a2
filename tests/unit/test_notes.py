"""Notes and labels: kept beside the trace, whoever writes at once, whatever they write, and shown in every form."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strobe.api.trace import Trace, open_trace
from strobe.errors import TraceError, UsageError
from strobe.formats.html.page import report
from strobe.present.snapshot import snapshot
from strobe.present.snapshot_text import snapshot_text
from strobe.server.trace_context import state_of
from strobe.trace.user_notes import change_notes, notes_file, plain_text, read_notes, with_labels, with_note
from tests.unit.hand_made import make_trace, span
from tests.unit.test_server import TOKEN, Page, page_of

pytestmark = pytest.mark.every_python

JSON = {"Content-Type": "application/json"}
RANGE = {"start_ns": 100, "end_ns": 300, "text": "slow here", "location": 1, "depth": None, "span": ""}
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\x00 a\u202eb\nnext \ud800line"
HARMLESS = "<img src=x onerror=alert(1)>[31m ab next line"
# Writes 20 notes of its own into a file.
WRITER = """
import sys
from pathlib import Path
from strobe.server.trace_context import state_of
from strobe.trace.user_notes import change_notes, with_note
for at in range(20):
    change_notes(Path(sys.argv[1]), with_note({"start_ns": at, "end_ns": at, "text": f"{sys.argv[2]} {at}"}))
"""


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return page_of({"main": [span("step", 0, 1000)], "helper": [span("copy", 10, 20)]}, folder=tmp_path)


def sent(page: Page, change: object, status: int = 200) -> dict[str, list[dict[str, object]]]:
    """Send a change; the answer."""
    body = change if isinstance(change, bytes) else json.dumps(change).encode()
    answer = page.request("POST", f"/{TOKEN}/api/notes", JSON, body)
    assert answer.status_code == status, answer.text
    found: dict[str, list[dict[str, object]]] = answer.json()
    return found


def noted(folder: Path, **more: object) -> Trace:
    threads = {"main": [span("step", 0, 1000)], "helper": [span("copy", 10, 20)]}
    trace = make_trace(threads, path=str(folder / "made.strobe"))
    change_notes(notes_file(trace.path), with_note(RANGE | more))
    return trace


def test_a_note_is_written_changed_and_deleted(page: Page, tmp_path: Path) -> None:
    (first,) = sent(page, {"note": RANGE})["notes"]
    assert {name: first[name] for name in RANGE} == RANGE
    assert page.json("notes") == {"notes": [first], "labels": []}
    early = sent(page, {"note": {"start_ns": 5, "end_ns": 5, "text": "begin"}})["notes"]
    assert [note["text"] for note in early] == ["begin", "slow here"]  # in order of time
    changed = sent(page, {"note": first | {"text": "why?"}})["notes"]
    assert [(note["text"], note["key"] == first["key"]) for note in changed] == [("begin", False), ("why?", True)]
    assert [note["text"] for note in sent(page, {"remove": first["key"]})["notes"]] == ["begin"]
    sent(page, {"remove": changed[0]["key"]})
    assert not (tmp_path.parent / f"{tmp_path.name}.notes.json").exists(), "nothing is left of no notes"


def test_the_browser_asks_anew_for_notes_only_where_they_changed(page: Page) -> None:
    etags = []
    for text in ("one", "two"):
        sent(page, {"note": RANGE | {"text": text}})
        first = page.get("notes")
        assert first.headers["cache-control"] == "no-cache"
        etags.append(first.headers["etag"])
        assert page.get("notes", {"If-None-Match": etags[-1]}).status_code == 304
    assert etags[0] != etags[1]
    assert page.get("meta").headers["etag"] not in etags


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (b"no JSON", 400),
        (b"[" * 60_000, 400),
        ({"note": []}, 400),
        ({"note": RANGE | {"start_ns": -1}}, 400),
        ({"note": RANGE | {"end_ns": 99}}, 400),
        ({"note": RANGE | {"start_ns": "1"}}, 400),
        ({"note": RANGE | {"text": " \x00 "}}, 400),
        ({"note": RANGE | {"text": "x" * 2001}}, 400),
        ({"note": RANGE | {"key": "../../etc/passwd"}}, 400),
        ({"note": RANGE | {"location": True}}, 400),
        ({"note": {"text": "no time"}}, 400),
        ({"labels": ["x" * 61]}, 400),
        ({"labels": [str(at) for at in range(21)]}, 400),
        (b" " * 70_000, 413),
    ],
)
def test_what_is_no_note_is_refused_in_a_sentence(page: Page, change: object, status: int) -> None:
    why = sent(page, change, status)
    assert set(why) == {"error", "do"}
    assert page.json("notes") == {"notes": [], "labels": []}


def test_notes_are_written_with_the_token_and_by_pages_of_this_server_only(page: Page) -> None:
    body = json.dumps({"note": RANGE}).encode()
    assert page.request("POST", "/another/api/notes", JSON, body).status_code == 404
    assert page.request("POST", f"/{TOKEN}/api/notes", JSON | {"Host": "evil.example"}, body).status_code == 421
    # What a form of another site could send without asking.
    assert page.request("POST", f"/{TOKEN}/api/notes", {"Content-Type": "text/plain"}, body).status_code == 400
    assert page.request("OPTIONS", f"/{TOKEN}/api/notes", {"Origin": "http://evil.example"}).status_code == 405
    assert page.json("notes") == {"notes": [], "labels": []}


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen([*command, name]) for name in ("a", "b", "c")]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    expected = {f"{name} {at}" for name in "abc" for at in range(20)}
    assert {note.text for note in read_notes(file).notes} == expected
    assert [each.name for each in tmp_path.iterdir()] == ["notes.json"]


def test_a_hostile_text_stays_text(page: Page, tmp_path: Path) -> None:
    assert plain_text(HOSTILE) == HARMLESS
    (note,) = sent(page, {"note": RANGE | {"text": HOSTILE}})["notes"]
    assert note["text"] == HARMLESS
    trace = noted(tmp_path, text=HOSTILE)
    html, _ = report(trace, ["notes"])
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<img" not in html


def test_a_note_is_in_table_snapshot_and_report_with_its_row(tmp_path: Path) -> None:
    trace = noted(tmp_path, depth=0, span="copy")
    change_notes(notes_file(trace.path), with_labels(["baseline", "bf16"]))
    (row,) = trace.ask("notes").to_arrow().to_pylist()
    expected = {"kind": "span", "start_ns": 100, "duration_ns": 200, "rank": None, "thread": "helper"}
    assert {name: row[name] for name in expected} == expected
    assert trace.ask("notes").about == "labels: baseline, bf16"
    page = snapshot(trace)
    line = "100 ns after the start, for 200 ns, helper, copy: slow here"
    assert f"NOTES\n  Labels: baseline, bf16.\n  {line}\n" in snapshot_text(page)
    assert [note["text"] for note in json.loads(page.to_json())["notes"]] == ["slow here"]
    assert f"<li>{line}</li>" in report(trace)[0]
    assert "NOTES" not in snapshot_text(snapshot(make_trace({"main": [span("step", 0, 10)]})))


@pytest.mark.parametrize("text", ["{", "[]", '{"format_version": 1, "labels": [], "notes": [{"key": "x"}]}'])
def test_a_damaged_file_is_reported_and_neither_lost_nor_in_the_way(tmp_path: Path, text: str) -> None:
    trace = noted(tmp_path)
    file = notes_file(trace.path)
    file.write_text(text)
    with pytest.raises(TraceError, match="the file is damaged"):
        change_notes(file, with_note(RANGE))
    assert file.read_text() == text
    assert "the file is damaged" in trace.ask("notes").note
    assert snapshot(trace).notes == ()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.json").mkdir()
    with pytest.raises(UsageError, match=r"the note cannot be kept in '.*notes\.json': Is a directory"):
        change_notes(tmp_path / "notes.json", with_note(RANGE))


def test_notes_on_a_file_of_another_tool_are_beside_it_and_survive_its_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    runs = tmp_path / "runs"
    runs.mkdir()
    file = runs / "stacks.txt"
    file.write_text("main;solve 1042\n")
    change_notes(notes_file(file), with_labels(["mine"]))
    assert (runs / "stacks.txt.notes.json").is_file()
    for path in (file, runs):  # it is not a file to import
        assert "stacks.txt" in open_trace(path).info.source
    assert open_trace(file).ask("notes").about == "labels: mine"
    beside = runs / "stacks.txt.strobe"
    shutil.move(open_trace(file).path, beside)
    change_notes(notes_file(file), with_labels(["in the folder"]))
    file.write_text("main;solve 7\n")
    assert open_trace(file).path == beside
    assert open_trace(file).ask("notes").about == "labels: in the folder"


def test_a_note_makes_no_trace_another_one(tmp_path: Path) -> None:
    (tmp_path / "process-1.blocks").write_bytes(b"1")
    before = state_of(tmp_path)
    change_notes(tmp_path / "notes.json", with_note(RANGE))
    assert state_of(tmp_path) == before
    (tmp_path / "process-1.blocks").write_bytes(b"12")
    assert state_of(tmp_path) != before
