"""The trace folder: what is one, what is none, and how runs are called."""

from __future__ import annotations

import json

import pytest

import strobe
from strobe.errors import FormatError, TraceError, UsageError
from strobe.trace import archive

pytestmark = pytest.mark.every_python


def make_run(folder, name, started, **facts):
    path = folder / f"{name}.strobe"
    path.mkdir()
    (path / "job.json").write_text(json.dumps({"format_version": 1, "started_unix_ns": started, **facts}))
    return path


def test_last_is_the_run_that_started_last_whatever_its_name(tmp_path):
    newer, older = make_run(tmp_path, "a", 200), make_run(tmp_path, "b", 100)
    assert archive.runs(tmp_path) == [newer, older]
    assert archive.find("last", tmp_path) == newer
    assert archive.find("last~1", tmp_path) == older
    with pytest.raises(UsageError, match="there are 2 runs"):
        archive.find("last~2", tmp_path)


def test_where_there_is_no_run_last_says_how_to_make_one(tmp_path):
    with pytest.raises(UsageError, match="no run") as caught:
        archive.find("last", tmp_path)
    assert "strobe run" in caught.value.do


def test_a_name_without_suffix_and_a_file_inside_mean_the_folder(tmp_path):
    run = make_run(tmp_path, "a", 1)
    assert archive.find(tmp_path / "a") == run
    assert archive.find(run / "job.json") == run


def test_what_is_no_trace_is_named_with_its_first_bytes(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    file = tmp_path / "trace.bin"
    file.write_bytes(b"\x7fELF\x02\x01")
    with pytest.raises(FormatError, match=r"7f 45 4c 46 .* \(a program\)"):
        strobe.open(file)
    file.write_bytes(b"")
    with pytest.raises(FormatError, match="the file is empty"):
        strobe.open(file)
    with pytest.raises(FormatError, match="folder without a trace"):
        strobe.open(empty)
    with pytest.raises(FormatError, match="folder without a trace"):
        strobe.open(tmp_path)
    with pytest.raises(TraceError, match="no such trace"):
        archive.find(tmp_path / "nothing")


def test_the_manifest_is_read_with_defaults(tmp_path):
    job = archive.read_job(make_run(tmp_path, "a", 5, command=["python", "x.py"], zero_ns=7, ended={"signal": 9}))
    assert (job.command, job.zero_ns, job.ended) == (("python", "x.py"), 7, {"signal": 9})
    assert archive.read_job(tmp_path) == archive.Job()


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_a_damaged_manifest_is_a_loss_and_not_the_end(tmp_path, text):
    run = make_run(tmp_path, "a", 1)
    (run / "job.json").write_text(text)
    assert "job.json is damaged" in archive.read_job(run).lost
    assert archive.runs(tmp_path) == [run], "and does not hide the other runs"


def test_a_newer_trace_format_is_refused_with_both_versions(tmp_path):
    run = make_run(tmp_path, "a", 1)
    (run / "job.json").write_text('{"format_version": 99}')
    with pytest.raises(TraceError, match="format 99; this strobe reads up to 1"):
        archive.read_job(run)


def test_files_of_a_process_belong_together(tmp_path):
    for name in ("process-7.blocks", "process-7.tiles", "process-31.blocks", "process-31.rings"):
        (tmp_path / name).write_bytes(b"abc")
    by_pid = {files.pid: files for files in archive.process_files(tmp_path)}
    assert by_pid[7].rings is None
    assert by_pid[31].rings is not None
    assert archive.sizes([by_pid[7], by_pid[31]]) == [6, 3]
