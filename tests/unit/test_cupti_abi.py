"""What strobe declares of CUPTI's binary interface, compared by the compiler with NVIDIA's own headers."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
NVIDIA = Path(sysconfig.get_path("purelib")) / "nvidia"
# Both need the compiler's own header of 13.0 (crt/): the older one has it in a package of 200 MB.
HEADERS = {
    "12.8": [NVIDIA / "cuda_cupti/include", NVIDIA / "cuda_runtime/include", NVIDIA / "cu13/include"],
    "13.0": [NVIDIA / "cu13/include"],
}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def compare(folders: list[Path], native: Path = NATIVE) -> subprocess.CompletedProcess[str]:
    """Compile the comparison with the headers in `folders`; what differs is in its stderr."""
    for needed in ("cupti.h", "cuda.h", "crt/host_defines.h"):
        if not any((folder / needed).exists() for folder in folders):
            pytest.skip(f"{needed} of NVIDIA is not installed: uv pip install --group cuda")
    headers = [word for folder in folders for word in ("-isystem", str(folder))]
    return subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-I", native, *headers, NATIVE / "tests/cupti/abi.cpp"],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("release", HEADERS)
def test_the_declarations_are_those_of_the_headers(release: str) -> None:
    compared = compare(HEADERS[release])
    assert compared.returncode == 0, compared.stderr[:4000]


@pytest.mark.parametrize(
    ("file", "right", "wrong", "named"),
    [
        ("abi.h", r"uint64_t queued, submitted;", "uint64_t submitted, queued;", "KernelRecord.queued"),
        ("abi.h", r"uint64_t event_sync;", "", "event_sync"),
        ("abi.h", r"kSynchronization = 38", "kSynchronization = 37", "kSynchronization"),
        ("abi.h", r"kContextCreated = 1", "kContextCreated = 2", "kContextCreated"),
        ("abi.h", r"Graph graph, original_graph;", "Graph graph;", "GraphData"),
        ("functions.h", r"\(Context context, uint32_t stream, size_t\* dropped\)", "(size_t* dropped)", "Dropped"),
    ],
)
def test_a_wrong_declaration_does_not_compile(tmp_path: Path, file: str, right: str, wrong: str, named: str) -> None:
    adapters = tmp_path / "adapters" / "cupti"
    adapters.mkdir(parents=True)
    for header in ("abi.h", "functions.h"):
        text = (NATIVE / "adapters/cupti" / header).read_text()
        if header == file:
            text, changed = re.subn(right, wrong, text, count=1)
            assert changed
        (adapters / header).write_text(text)
    compared = compare(HEADERS["13.0"], tmp_path)
    assert compared.returncode != 0
    assert named in compared.stderr
