"""verify.sh, which only a machine with a GPU can run whole: it must come to its end without one, and what it asserts
must hold for the fake driver."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.gpu import fake_cuda

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

SCRIPT = Path(__file__).parent / "verify.sh"
STEPS = re.findall(r"^(?:driver|torch|step) \d+ (\w+)", SCRIPT.read_text(), re.MULTILINE)


def verify(
    out: Path, environment: dict[str, str], *steps: str, python: str = sys.executable
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and results.json."""
    settings = {"PYTHON": python, "VERIFY_QUICK": "1"}
    done = subprocess.run(
        ["bash", SCRIPT, out, *steps], env=environment | settings, capture_output=True, text=True, timeout=120
    )
    assert (out / "results.json").exists(), done.stdout + done.stderr
    return done.returncode, [json.loads(line) for line in (out / "results.json").read_text().splitlines()]


def test_without_a_gpu_each_step_is_skipped_with_its_reason(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_CUDA_") and k != "LD_LIBRARY_PATH"}
    code, rows = verify(tmp_path / "out", environment)
    assert code == 0
    ended = {row["step"]: row for row in rows if "status" in row}
    assert list(ended) == [*STEPS, "all"]
    assert (ended["environment"]["status"], ended["build"]["status"]) == ("done", "done")
    needs = {
        "codes": "there is no CUDA driver: ",
        "program_in_c": "there is no CUDA driver: ",
        "levels": "there is no CUDA driver: ",
        "exits": "there is no CUDA driver: ",
        "overhead": "there is no CUDA driver: ",
        "graph_leak": "there is no CUDA driver: ",
        "training": "torch ",
        "beside_kineto": "torch ",
    }
    for step, reason in needs.items():
        assert ended[step]["status"] == "skipped"
        assert ended[step]["reason"].startswith(reason)
    assert {row["status"] for row in ended.values()} <= {"done", "skipped"}
    facts = json.loads((tmp_path / "out/env.json").read_text())
    assert facts["python"] == sys.version


def test_without_a_gpu_and_without_strobe_each_step_is_skipped_too(tmp_path: Path) -> None:
    """On a bare machine: no package of Python is there."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONNOUSERSITE": "1"}
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E -s "$@"\n')
    bare.chmod(0o755)
    code, rows = verify(tmp_path / "out", environment, python=str(bare))
    ended = {row["step"]: row for row in rows if "status" in row}
    assert list(ended) == [*STEPS, "all"]
    assert ended["build"]["reason"].startswith("ModuleNotFoundError: ")
    assert {row["status"] for row in ended.values()} == {"done", "skipped"}, rows
    assert code == 0


def test_with_the_fake_driver_everything_that_needs_no_torch_holds(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, rows = verify(out, fake_cuda.environment("13.0"), "codes", "program_in_c", "graph_leak")
    wrong = [row for row in rows if row.get("holds") is False or row.get("status") == "failed"]
    assert (code, wrong) == (0, [])
    ended = {row["step"]: row["status"] for row in rows if "status" in row}
    assert ended == dict.fromkeys(["codes", "program_in_c", "graph_leak", "all"], "done")
    found = {row["check"]: row["found"] for row in rows if "check" in row}
    # launches.c: 300 kernels on one thread and 100 on the other, 20 launches of a graph of 10.
    assert found["each launch of spin(unsigned long) is there once"] == [200, 200]
    assert found["each launch of empty() is there once"] == [200, 200]
    assert found["each kernel of the graph's launches is there once"] == [200, 200]
    assert found["copies are all there"] == [60, 60]
    assert found["one call for each kernel, by correlation"] == [600, 600]
    assert found["every kernel is there"] == [11_200, 11_200]
    codes = json.loads((out / "rc_table.json").read_text())
    assert codes["injection"]["sizes"]["10"] == 216  # of CUDA 13.0
    files = list(out.iterdir())
    assert len(files) <= 8
    assert sum(each.stat().st_size for each in files) < 2 << 20


@pytest.mark.parametrize("events", ["", "late"])
def test_memory_and_waits_hold_with_the_fake_driver(tmp_path: Path, events: str) -> None:
    code, rows = verify(tmp_path / "out", fake_cuda.environment("13.0", EVENTS=events), "levels")
    assert code == 0, [row for row in rows if row.get("holds") is False]
    found = {row["check"]: row["found"] for row in rows if "check" in row}
    assert found["Device, 3145728 bytes: allocated and released once"] == [[3 << 20, "Device"], [-3 << 20, "Device"]]
    assert found["nothing is in use at the end"] == {"Device": 0, "Pinned": 0, "Managed": 0}
    assert found["each names the call that recorded its event"] == [200, 200]
    figures = {row["figure"]: row["value"] for row in rows if "figure" in row}
    assert figures["Unified HtoD: bytes told, bytes asked for"] == [4 << 20, 4 << 20]


def test_the_killed_trace_that_it_leaves_is_recovered_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _ = verify(out, fake_cuda.environment("13.0"), "killed")
    assert code == 0
    with tarfile.open(out / "killed.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "killed.strobe"
    assert list(folder.glob("process-*.gpu"))
    over = int((folder / "over.txt").read_text())
    trace = strobe.open(folder)
    (row,) = trace.kernels().to_pylist()
    assert row["name"] == "empty()"
    assert over - 100 <= row["calls"] <= over + 200


def test_exits_and_overheads_with_the_fake_driver(tmp_path: Path) -> None:
    code, rows = verify(tmp_path / "out", fake_cuda.environment("13.0"), "exits", "overhead")
    assert code == 0, [row for row in rows if row.get("holds") is False]
    held = {row["check"] for row in rows if row.get("holds")}
    for ending in ("return", "sys.exit", "os._exit", "abort", "SIGTERM", "kill -9", "fork"):
        assert {f"{ending}: ends as it does alone", f"{ending}: all 3000 kernels are there"} <= held
    figures = {row["figure"]: row["value"] for row in rows if "figure" in row}
    for name in ("launch", "graph"):
        for variant in ("off", "gpu", "paused"):
            assert figures[f"{name}, launch_ns, {variant}"] > 0


def test_a_driver_that_does_not_start_is_a_reason_too(tmp_path: Path) -> None:
    environment = fake_cuda.environment("13.0", DEVICES=0)
    code, rows = verify(tmp_path / "out", environment, "program_in_c", "exits")
    assert code == 0
    reasons = [row["reason"] for row in rows if row.get("status") == "skipped"]
    assert reasons == ["the CUDA driver has no GPU (cuInit or cuDeviceGetCount: 0, GPUs: 0)"] * 2
