"""`strobe doctor` says what is there: compared with what the machine says by other means."""

import ctypes
import json
import os
import resource
import struct
import subprocess
from pathlib import Path

import pytest

from strobe.cli.main import main
from strobe.record.control_groups import cpu_limit, folders_of
from strobe.record.doctor.checks import Finding, examine, file_system


def found(environment: dict[str, str] | None = None, folder: str = ".") -> dict[str, Finding]:
    """Findings by name."""
    return {each.name: each for each in examine(folder, environment or {})}


def kernel_counts_instructions() -> bool:
    """Whether perf_event_open(2) gives a counter of instructions of this process in user mode."""
    exclude_kernel_and_hypervisor = 1 << 5 | 1 << 6
    attributes = struct.pack("IIQQQQQ", 0, 112, 1, 0, 0, 0, exclude_kernel_and_hypervisor) + bytes(112 - 48)
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    file = ctypes.CDLL(None, use_errno=True).syscall(number, attributes, 0, -1, -1, 0)
    if file >= 0:
        os.close(file)
    return bool(file >= 0)


def test_what_it_finds_is_what_is_there(tmp_path: Path) -> None:
    findings = found(folder=str(tmp_path / "not/there/yet"))
    assert (findings["hardware counters"].state == "ok") == kernel_counts_instructions()
    listed = subprocess.run(["df", "--output=fstype", tmp_path], capture_output=True, text=True, check=True)
    assert file_system(str(tmp_path)) == listed.stdout.split()[-1]
    assert findings["output"].found.startswith(str(tmp_path))
    assert (
        findings["driver"].found == "no NVIDIA driver here: GPU work cannot be recorded"
        or Path("/proc/driver/nvidia/version").exists()
    )
    for folder in folders_of("cpu"):
        assert folder.startswith("/sys/fs/cgroup")


def test_the_strictest_control_group_limits_the_processors(tmp_path: Path) -> None:
    files = {"root/cpu.max": "max 100000", "pod/cpu.max": "150000 100000", "job/cpu.max": "400000 100000"}
    files |= {"old/cpu.cfs_quota_us": "50000", "old/cpu.cfs_period_us": "100000", "free/cpu.cfs_quota_us": "-1"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    groups = {name: str(tmp_path / name) for name in ("root", "pod", "job", "old", "free", "absent")}
    assert cpu_limit([groups["root"], groups["pod"], groups["job"]]) == 1.5
    assert cpu_limit(groups.values()) == 0.5
    assert cpu_limit([groups["root"], groups["free"], groups["absent"]]) is None


def test_limits_and_other_tools_are_told_with_the_command_that_mends_them() -> None:
    environment = {
        "LD_PRELOAD": "/lib/other.so",
        "NVTX_INJECTION64_PATH": "/opt/nsys.so",
        "COVERAGE_PROCESS_START": "x",
        "STROBE_DISABLE": "1",
    }
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
    try:
        findings = found(environment)
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    assert (findings["stack"].state, findings["stack"].mend) == ("limited", "ulimit -s 8192")
    assert "1024 KiB" in findings["stack"].found
    assert findings["NVTX_INJECTION64_PATH"].mend == "unset NVTX_INJECTION64_PATH"
    assert findings["COVERAGE_PROCESS_START"].found == "coverage.py measures this program, too"
    assert findings["STROBE_DISABLE"].state == "missing"
    assert "LD_PRELOAD" not in found({})
    assert "/lib/other.so" in findings["LD_PRELOAD"].found


def test_the_verb_prints_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["findings"]
    assert {"python", "frameworks", "mpi", "gpu", "kernel", "clock", "limits", "disk"} <= {row["area"] for row in rows}
    assert all(row["state"] in ("ok", "limited", "missing", "note") for row in rows)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert all(row["found"] in out for row in rows if row["name"] not in ("output", "/dev/shm", "load"))
