"""What CUPTI wrote into a killed process's buffers, walked by NVIDIA's own iterator: the recovered trace has all of it.

A capture is a folder as `kill -9` of the whole tree leaves it: `tests/gpu/verify.sh` makes one on a machine with a GPU
(killed.tar.gz, to be put into tests/gpu/captures), and here the fakes do.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.trace.after_run.closing import close_trace
from tests.gpu import fake_cuda
from tests.gpu.test_library import GENUINE

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

CAPTURES = sorted((Path(__file__).parent / "captures").glob("*.tar.gz"))
# native/adapters/gpu/decode/buffers_layout.h
BUFFERS_AT, BUFFER_BYTES = 8 << 10, 256 << 10
FREE, HELD, REPORTING = 0, 1, 3

PROGRAM = """
import fake_cuda
gpu = fake_cuda.Gpu()
stream = gpu.stream(non_blocking=True)
print("ready", flush=True)
for i in range(600):
    gpu.launch("gemm", grid=(i + 1, 2, 1), block=(64, 2, 1), ns=2_000)
    gpu.launch("_Z4reluPfi", ns=1_000, stream=stream)
    gpu.memcpy(1, 4096 + i, stream=stream)
    gpu.memset(64, 7)
gpu.synchronize()
gpu.synchronize(stream)
print("over", flush=True)
input()
"""


def killed(folder: Path, release: str) -> Path:
    """A folder that nobody has recovered, made with the fakes."""
    (folder / "program.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
        cwd=folder,
        env=fake_cuda.environment(release, folder / "truth.jsonl"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    for line in process.stdout:
        if line == "over\n":
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    return folder / "t.strobe"


# Runs in a process of its own, which may load one CUPTI.
WALK = """
import ctypes, json, struct, sys
library, path, at_first, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
step = ctypes.CDLL(library).cuptiActivityGetNextRecord
bytes_ = open(path, "rb").read()
(count,) = struct.unpack_from("<I", bytes_, 12)
rows, kinds = [], 60
for i in range(count):
    state, valid, _ = struct.unpack_from("<3I", bytes_, 24 + 4 * kinds + 12 * i)
    if state == 0:
        continue
    at = at_first + i * size
    part = ctypes.create_string_buffer(bytes_[at : at + size], size)
    record = ctypes.c_void_p()
    while step(part, ctypes.c_size_t(valid if state > 1 else size), ctypes.byref(record)) == 0 and record.value:
        offset = record.value - ctypes.addressof(part)
        (kind,) = struct.unpack_from("<I", part, offset)
        if kind == 0:
            break
        if kind == 10:  # CUpti_ActivityKernel9 and 10
            start, end = struct.unpack_from("<QQ", part, offset + 16)
            (correlation,) = struct.unpack_from("<I", part, offset + 92)
            rows.append([kind, correlation, start, end, *struct.unpack_from("<6i", part, offset + 52)])
        elif kind == 1:  # CUpti_ActivityMemcpy5 and 6
            moved, start, end = struct.unpack_from("<QQQ", part, offset + 8)
            rows.append([kind, struct.unpack_from("<I", part, offset + 44)[0], start, end, moved])
print(json.dumps(rows))
"""


def walked(library: Path, folder: Path) -> list[list[int]]:
    """Kernels and copies in the buffers that hold something, by NVIDIA's iterator."""
    (path,) = folder.glob("process-*.gpu")
    done = subprocess.run(
        [sys.executable, "-c", WALK, library, path, str(BUFFERS_AT), str(BUFFER_BYTES)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows: list[list[int]] = json.loads(done.stdout)
    return rows


def recovered(trace: strobe.Trace) -> dict[int, list[list[Any]]]:
    """The same of a trace, by correlation."""
    found: dict[int, list[list[Any]]] = {}
    for kind, table, columns in (
        (10, "kernel_spans", ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]),
        (1, "copy_spans", ["size_bytes"]),
    ):
        which = "" if kind == 10 else "where k.copy_kind is not null"
        for row in trace.sql(
            f"select k.correlation, s.start_ns, s.duration_ns, {', '.join('k.' + name for name in columns)} "
            f"from {table} k join spans s using (location, row) {which}"
        ).to_pylist():
            start = row["start_ns"] + trace.zero_ns
            values = [kind, start, start + row["duration_ns"], *(row[name] for name in columns)]
            found.setdefault(row["correlation"], []).append(values)
    return found


@pytest.mark.parametrize("capture", [*GENUINE, *CAPTURES], ids=str)
def test_the_recovered_trace_has_what_nvidias_iterator_finds(tmp_path: Path, capture: str | Path) -> None:
    if isinstance(capture, Path):
        with tarfile.open(capture) as archive:
            archive.extractall(tmp_path, filter="data")
        (folder,) = tmp_path.glob("*.strobe")
    else:
        folder = killed(tmp_path, capture)
    size = struct.unpack_from("<60I", next(folder.glob("process-*.gpu")).read_bytes()[:264], 24)[10]
    library = GENUINE["13.0" if size == 216 else "12.8"]
    if not library.exists():
        pytest.skip(f"{library.name} is not installed: uv pip install --group cuda")
    rows = walked(library, folder)
    assert len(rows) > 100
    trace = recovered(strobe.open(folder))
    if isinstance(capture, str):  # everything was over
        assert sum(len(found) for found in trace.values()) == 600 * 3
    for kind, correlation, start, end, *values in rows:
        (found,) = trace[correlation]
        # Clocks: what follows at once on a stream may begin up to 100 ns late.
        assert (found[0], found[2], found[3:]) == (kind, end, values)
        assert 0 <= found[1] - start <= 100


@pytest.mark.parametrize("completed", [False, True])
def test_a_killed_process_that_the_kernel_has_not_ended_yet_loses_nothing(tmp_path: Path, completed: bool) -> None:
    """The kernel lets go of the block file of a killed process last; on a busy machine that takes a while."""
    folder = killed(tmp_path, "12.8")
    (blocks,) = folder.glob("process-*.blocks")
    with blocks.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ended = threading.Timer(0.5, fcntl.flock, (file, fcntl.LOCK_UN))
        ended.start()
        if completed:
            close_trace(folder)
        found = recovered(strobe.open(folder))
        ended.join()
    assert sum(map(len, found.values())) == 600 * 3


def test_the_span_that_was_being_reported_at_the_kill_is_there_once(tmp_path: Path) -> None:
    """It is in the ring already, and the buffers have not noted it yet."""
    (tmp_path / "program.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0", tmp_path / "truth.jsonl"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline() == "over\n"
    (path,) = (tmp_path / "t.strobe").glob("process-*.gpu")
    before = bytearray(path.read_bytes())
    time.sleep(2.2)  # a round takes at most a second
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    count, reported = struct.unpack_from("<IQ", before, 12)[0], struct.unpack_from("<Q", before, 16)[0]
    if reported:
        pytest.skip("a round was over before the program was")
    for i in range(count):
        state_at = 24 + 4 * 60 + 12 * i
        if struct.unpack_from("<I", before, state_at)[0] != FREE:
            struct.pack_into("<3I", before, state_at, REPORTING, BUFFER_BYTES, i)
    struct.pack_into("<Q", before, 16, 4 * 600 - 1)
    path.write_bytes(before)
    trace = strobe.open(tmp_path / "t.strobe")
    rows = trace.sql("select correlation from kernel_spans union all select correlation from copy_spans").to_pylist()
    correlations = [row["correlation"] for row in rows]
    assert len(correlations) == len(set(correlations)) == 4 * 600
    assert sum(row["kind"] == "stream" for row in trace.locations.to_pylist()) == 2
