"""The machine crashes: only what was flushed to the disk (fsync) is there, and the trace has the facts of its begin."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import strobe
from strobe import native
from strobe.record.launch import first_sync
from strobe.trace.quality import counters

_PROGRAM = """
import time
def work(k): return k
until = time.monotonic() + 60
k = 0
while time.monotonic() < until:
    work(k); k += 1
    time.sleep(0.0001)
"""


def test_what_strobe_run_flushed_at_the_begin_opens_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    words = (Path(sys.executable).with_name("strobe"), "run", "--quiet", "-o", "crash.strobe", "program.py")
    folder, flushed = tmp_path / "crash.strobe", dict[str, bytes]()
    program = subprocess.Popen(words, cwd=tmp_path, start_new_session=True)
    try:
        real = os.fsync

        def fsync(number: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{number}"))
            if path.is_file():
                flushed[path.name] = path.read_bytes()
            real(number)

        monkeypatch.setattr(os, "fsync", fsync)
        until = time.monotonic() + 60
        while not folder.exists() and time.monotonic() < until:
            time.sleep(0.05)
        ended = first_sync.start(os.fspath(folder))
        while not any(name.endswith(".blocks") for name in flushed) and time.monotonic() < until:
            time.sleep(0.05)
        ended.set()
        time.sleep(0.5)  # more is written
    finally:
        os.killpg(program.pid, 9)
        program.wait()
        # The program itself was started by `strobe run`, not by this test: it may still be about to die.
        while any(native.is_held(os.fspath(path)) for path in folder.glob("*.blocks")) and time.monotonic() < until:
            time.sleep(0.05)
    for path in folder.iterdir():
        if path.name in flushed:
            path.write_bytes(flushed[path.name])
        else:
            path.unlink()
    with strobe.open(folder) as trace:
        assert trace.info.command[-1] == "program.py"
        assert trace.info.host == os.uname().nodename
        (argv,) = (row["argv"] for row in trace.processes.to_pylist())
        assert argv.endswith("python program.py")
        assert counters(trace)["ends_lost"] == 1
        assert "the end of its file is damaged or missing" in trace.info.ended
    # Pages that a file system gives back as zeros, because their content was never written.
    for path in folder.glob("*.blocks"):
        with path.open("ab") as file:
            file.write(bytes(8192))
    with strobe.open(folder) as trace:
        assert counters(trace)["bytes_lost"] == 8192
        assert trace.info.command[-1] == "program.py"
