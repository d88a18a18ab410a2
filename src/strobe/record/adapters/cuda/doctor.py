"""What `strobe doctor` finds out about NVIDIA GPUs: driver, libcupti, NVML, rights, other tools.

Reads files and names only, and loads nothing of NVIDIA's. Sources: /proc/driver/nvidia of the driver (its README,
chapter "Configuring and using the proc file system"), and what cupti_libraries.py finds.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from strobe.record.adapters.cuda import cupti_libraries
from strobe.record.adapters.cuda.driver import driver_is_there
from strobe.record.doctor.finding import LIMITED, MISSING, NOTE, OK, Finding
from strobe.record.launch.machine import driver_version

_ROOT = Path("/")
_RIGHTS = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
_ALL_USERS = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf"
    " && sudo reboot"
)
_NVML_PACKAGE = "nvidia-ml-py"


def gpu_findings(
    environment: Mapping[str, str], root: Path = _ROOT, site_packages: Iterable[Path] | None = None
) -> Iterator[Finding]:
    """Look at what recording of GPUs needs. `root` is where proc, dev and usr are, `site_packages` the program's."""
    if not driver_is_there(root):
        yield Finding("gpu", "driver", NOTE, "no NVIDIA driver here: GPU work cannot be recorded")
        return
    packages = [Path(each) for each in sys.path if each] if site_packages is None else list(site_packages)
    driver = driver_version(root)
    cuda = cupti_libraries.cuda_of_driver(driver)
    runs = f", runs programs of CUDA {cuda} and older" if cuda else ""
    yield Finding("gpu", "driver", OK, f"NVIDIA driver {driver or 'of unknown version'}{runs}")
    yield from _gpus(root)
    yield _nvml(packages)
    yield from _cupti(packages, environment, root, cuda)
    yield from _rights(root)
    ncu = shutil.which("ncu", path=environment.get("PATH"))
    if ncu:
        yield Finding("gpu", "ncu", OK, f"{ncu} (Nsight Compute: counters of single kernels)")
    else:
        found = "Nsight Compute is not on PATH: no counters of single kernels"
        yield Finding("gpu", "ncu", NOTE, found, f"export PATH=$PATH:{_toolkit(root)}/bin")


def _toolkit(root: Path) -> Path:
    """The folder in which a CUDA toolkit is, or would be."""
    return next((each.parent.parent for each in sorted(root.glob("usr/local/cuda*/bin/ncu"))), root / "usr/local/cuda")


def _gpus(root: Path) -> Iterator[Finding]:
    folders = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    for number, file in enumerate(folders):
        pairs = (line.partition(":") for line in _text(file).splitlines())
        facts = {name.strip(): value.strip() for name, _, value in pairs}
        # Without a minor number they are numbered in order of the bus, as NVML does.
        minor = facts.get("Device Minor", str(number))
        divided = any((root / f"proc/driver/nvidia/capabilities/gpu{minor}/mig").glob("gi*"))
        words = f"{facts.get('Model', 'of unknown model')}, {facts.get('GPU UUID', 'no uuid')}"
        state, parts = (LIMITED, "; divided (MIG): load is not known by part") if divided else (OK, "")
        yield Finding("gpu", f"GPU {minor}", state, words + parts)
    if not folders:
        found = "the driver names no GPU here"
        mend = "docker run --gpus all ..." if (root / ".dockerenv").exists() else "nvidia-smi -L"
        yield Finding("gpu", "GPUs", MISSING, found, mend)


def _nvml(packages: Iterable[Path]) -> Finding:
    there = list(metadata.distributions(name=_NVML_PACKAGE, path=[str(each) for each in packages]))
    what = "load, memory, clocks, power and temperature over time"
    if there:
        return Finding("gpu", _NVML_PACKAGE, OK, f"{there[0].version}: {what}")
    return Finding("gpu", _NVML_PACKAGE, MISSING, f"not installed: no {what}", f"pip install {_NVML_PACKAGE}")


def _cupti(packages: Iterable[Path], environment: Mapping[str, str], root: Path, cuda: int | None) -> Iterator[Finding]:
    package = "nvidia-cuda-cupti" if cuda is None or cuda >= 13 else f"nvidia-cuda-cupti-cu{cuda}"
    install = f'pip install "{package}"'
    chosen = environment.get(cupti_libraries.VARIABLE, "")
    if chosen and not os.path.isfile(chosen):
        yield Finding(
            "gpu", cupti_libraries.VARIABLE, MISSING, f"{chosen} is not a file", f"unset {cupti_libraries.VARIABLE}"
        )
    found = cupti_libraries.candidates(packages, environment, root / "usr/local")
    fitting = [each for each in found if cuda is None or each.major is None or each.major <= cuda]
    if not found:
        yield Finding("gpu", "libcupti", MISSING, "not found: kernels and copies cannot be recorded", install)
        return
    first = (fitting or found)[0]
    if not fitting:
        words = f"{first.path} is {first.version}, newer than the driver, which knows CUDA {cuda}: it will not work"
        yield Finding("gpu", "libcupti", MISSING, words, install)
    elif first.may_crash:
        words = f"{first.path} is {first.version}: 13.2 crashes programs in which the driver does not work"
        yield Finding("gpu", "libcupti", LIMITED, words, 'pip install "nvidia-cuda-cupti!=13.2.*"')
    else:
        yield Finding("gpu", "libcupti", OK, f"{first.version or 'of unknown version'}: {first.path}")


def _rights(root: Path) -> Iterator[Finding]:
    found = re.search(r"^RmProfilingAdminOnly:\s*(\d)", _text(root / "proc/driver/nvidia/params"), re.MULTILINE)
    if not found:
        return
    if found[1] == "0":
        yield Finding("gpu", "counters", OK, "every user may read hardware counters of kernels")
    elif os.geteuid() == 0:
        yield Finding("gpu", "counters", OK, "only administrators may read hardware counters of kernels, as we are")
    else:
        words = f"hardware counters of kernels are for administrators (recording needs no right): {_RIGHTS}"
        yield Finding("gpu", "counters", LIMITED, words, _ALL_USERS)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
