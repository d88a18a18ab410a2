"""What `strobe doctor` says about GPUs, on machines made of files as driver, packages and toolkits leave them."""

from pathlib import Path

import pytest

from strobe.record.adapters.cuda.cupti_libraries import candidates
from strobe.record.adapters.cuda.doctor import gpu_findings
from strobe.record.doctor.finding import Finding

VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\nGCC: 12\n"
GPU = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 100\nGPU UUID: \t GPU-11111111-2222\nDevice Minor: \t 1\n"


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def machine(root: Path, driver: str = "580.65.06", params: str = "RmProfilingAdminOnly: 0\n") -> Path:
    put(root / "proc/driver/nvidia/version", VERSION.format(driver))
    put(root / "proc/driver/nvidia/params", f"EnableMSI: 1\n{params}")
    put(root / "proc/driver/nvidia/gpus/0000:18:00.0/information", GPU)
    return root


def packaged(site: Path, version: str) -> Path:
    """A libcupti as NVIDIA's wheels install it."""
    major = version.partition(".")[0]
    if major == "13":
        put(site / f"nvidia_cuda_cupti-{version}.dist-info/METADATA", f"Name: nvidia-cuda-cupti\nVersion: {version}\n")
        return put(site / "nvidia/cu13/lib/libcupti.so.13")
    put(site / f"nvidia_cuda_cupti_cu{major}-{version}.dist-info/METADATA", "Name: x\n")
    return put(site / f"nvidia/cuda_cupti/lib/libcupti.so.{'11.8' if major == '11' else major}")


def findings(root: Path, site: Path, **environment: str) -> dict[str, Finding]:
    found = list(gpu_findings({"PATH": str(root / "bin"), **environment}, root, [site]))
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def test_without_a_driver_one_line_says_so(tmp_path: Path) -> None:
    packaged(tmp_path / "site", "13.0.85")
    found = findings(tmp_path, tmp_path / "site")
    assert [(each.name, each.state) for each in found.values()] == [("driver", "note")]
    assert found["driver"].found == "no NVIDIA driver here: GPU work cannot be recorded"


def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    root, site = machine(tmp_path), tmp_path / "site"
    library = packaged(site, "13.0.85")
    metadata = "Metadata-Version: 2.1\nName: nvidia-ml-py\nVersion: 13.580.82\n"
    put(site / "nvidia_ml_py-13.580.82.dist-info/METADATA", metadata)
    put(root / "bin/ncu").chmod(0o755)
    found = findings(root, site)
    assert {each.state for each in found.values()} == {"ok"}
    assert "580.65.06" in found["driver"].found
    assert "CUDA 13" in found["driver"].found
    assert found["GPU 1"].found == "NVIDIA H100 80GB HBM3, GPU-11111111-2222"
    assert found["libcupti"].found == f"13.0.85: {library}"
    assert found["nvidia-ml-py"].found.startswith("13.580.82")
    assert str(root / "bin/ncu") in found["ncu"].found


def test_what_is_missing_comes_with_the_command_that_mends_it(tmp_path: Path) -> None:
    root = machine(tmp_path, driver="535.104.05", params="")
    put(root / "proc/driver/nvidia/capabilities/gpu1/mig/gi3/access")
    found = findings(root, tmp_path / "site", STROBE_CUPTI="/nowhere/libcupti.so")
    assert (found["libcupti"].state, found["libcupti"].mend) == ("missing", 'pip install "nvidia-cuda-cupti-cu12"')
    assert (found["nvidia-ml-py"].state, found["nvidia-ml-py"].mend) == ("missing", "pip install nvidia-ml-py")
    assert (found["STROBE_CUPTI"].state, found["STROBE_CUPTI"].mend) == ("missing", "unset STROBE_CUPTI")
    assert "MIG" in found["GPU 1"].found
    assert "counters" not in found


def test_a_libcupti_that_is_newer_than_the_driver_does_not_count(tmp_path: Path) -> None:
    root, site = machine(tmp_path, driver="570.86.15"), tmp_path / "site"
    packaged(site, "13.0.85")
    found = findings(root, site)["libcupti"]
    assert (found.state, found.mend) == ("missing", 'pip install "nvidia-cuda-cupti-cu12"')
    assert "13.0.85, newer than the driver, which knows CUDA 12" in found.found
    older = packaged(site, "12.8.90")
    found = findings(root, site)["libcupti"]
    assert (found.state, found.found) == ("ok", f"12.8.90: {older}")


def test_versions_that_crash_come_last_and_are_named(tmp_path: Path) -> None:
    root, site = machine(tmp_path), tmp_path / "site"
    packaged(site, "13.2.23")
    found = findings(root, site)["libcupti"]
    assert (found.state, found.mend) == ("limited", 'pip install "nvidia-cuda-cupti!=13.2.*"')
    older = packaged(site, "12.8.90")
    assert findings(root, site)["libcupti"].found == f"12.8.90: {older}"


def test_who_may_read_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, params="RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = findings(root, tmp_path)["counters"]
    assert found.state == "limited"
    assert "https://developer.nvidia.com/ERR_NVGPUCTRPERM" in found.found
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found.mend
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert findings(root, tmp_path)["counters"].state == "ok"


def test_candidates_are_in_the_order_in_which_they_are_tried(tmp_path: Path) -> None:
    site, toolkits = tmp_path / "site", tmp_path / "usr/local"
    own = put(tmp_path / "own/libcupti.so")
    thirteen, twelve = packaged(site, "13.0.85"), packaged(site, "12.8.90")
    eleven = packaged(site, "11.8.87")
    home = put(tmp_path / "cuda/extras/CUPTI/lib64/libcupti.so.12")
    put(home.with_name("libcupti.so.2025.1.0"))
    put(tmp_path / "cuda/version.json", '{"cuda_cupti": {"name": "CUPTI", "version": "12.9.19"}}')
    old = put(toolkits / "cuda-12.4/extras/CUPTI/lib64/libcupti.so.12")
    new = put(toolkits / "cuda-13.1/extras/CUPTI/lib64/libcupti.so.13")
    (toolkits / "cuda").symlink_to(toolkits / "cuda-12.4")
    environment = {"STROBE_CUPTI": str(own), "CUDA_HOME": str(tmp_path / "cuda")}
    found = [(each.path, each.version) for each in candidates([site], environment, toolkits)]
    assert found == [
        (own, None),
        (thirteen, "13.0.85"),
        (twelve, "12.8.90"),
        (eleven, "11.8.87"),
        (home, "12.9.19"),
        (toolkits / "cuda/extras/CUPTI/lib64/libcupti.so.12", "12"),
        (new, "13"),
    ]
    assert old.exists()
    assert candidates([], {"STROBE_CUPTI": str(twelve)}, toolkits)[0].version == "12.8.90"
    assert [each.major for each in candidates([], {}, toolkits)] == [12, 13]
