"""Which CUPTI a process takes, what is known of it, and the sentence that says why there is none."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import fake_cuda

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

NVIDIA = Path(sysconfig.get_path("purelib")) / "nvidia"
GENUINE = {
    "12.8": NVIDIA / "cuda_cupti/lib/libcupti.so.12",
    "13.0": NVIDIA / "cu13/lib/libcupti.so.13",
}
KERNEL, MEMCPY, SYNCHRONIZATION = 10, 1, 38


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prints as JSON what open_library() finds."""
    out = tmp_path_factory.mktemp("library") / "show_library"
    native = fake_cuda.NATIVE
    sources = [native / "tests/cupti/show_library.cpp", native / "adapters/cupti/library.cpp"]
    subprocess.run(["g++", "-std=c++20", "-I", native, *sources, "-o", out, "-ldl"], check=True)
    return out


def find(
    program: Path, *loaded: Path | str, asked: Path | None = None, candidates: tuple[Path, ...] = (), **settings: object
) -> Any:
    """What it finds in a process that has `loaded`, the driver first."""
    environment = fake_cuda.environment(None, **settings)
    for name in ("STROBE_CUPTI", "CUDA_HOME", "CUDA_PATH"):
        environment.pop(name, None)
    if asked:
        environment["STROBE_CUPTI"] = str(asked)
    environment["STROBE_CUPTI_CANDIDATES"] = ":".join(map(str, candidates))
    done = subprocess.run([program, *loaded], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)


def test_nothing_is_loaded_where_the_program_has_no_driver(program: Path) -> None:
    found = find(program, asked=fake_cuda.cupti("13.0"))
    assert (found["path"], found["version"]) == ("", 0)
    assert found["failure"] == "no CUDA driver is loaded in this process (libcuda.so.1)"


@pytest.mark.parametrize(
    ("release", "version", "kernel", "memcpy", "synchronization", "lacks"),
    [  # sizes of NVIDIA's records, by release
        ("12.4", 22, 208, 88, 40, "ActivityEnableRuntimeApi"),
        ("13.0", 130001, 216, 96, 56, "ActivityGetStructSize"),
        ("13.2", 130201, 224, 96, 56, None),
    ],
)
def test_what_a_release_has(
    program: Path, release: str, version: int, kernel: int, memcpy: int, synchronization: int, lacks: str | None
) -> None:
    library = fake_cuda.cupti(release)
    found = find(program, fake_cuda.driver(), asked=library, DRIVER=13020)
    assert (found["path"], found["version"], found["failure"]) == (str(library), version, "")
    assert [found["sizes"][kind] for kind in (KERNEL, MEMCPY, SYNCHRONIZATION)] == [kernel, memcpy, synchronization]
    assert found["priority"] is (release == "13.2")
    assert lacks in found["absent"] if lacks else found["absent"] == []


@pytest.mark.parametrize("release", GENUINE)
def test_the_genuine_library_says_the_same_as_the_fake_one(program: Path, release: str) -> None:
    if not GENUINE[release].exists():
        pytest.skip(f"CUPTI {release} is not installed: uv pip install --group cuda")
    genuine = find(program, fake_cuda.driver(), asked=GENUINE[release])
    fake = find(program, fake_cuda.driver(), asked=fake_cuda.cupti(release))
    assert genuine["path"] == str(GENUINE[release]), genuine["failure"]
    assert (genuine["version"], genuine["absent"]) == (fake["version"], fake["absent"])
    same = [kind for kind, size in enumerate(fake["sizes"]) if size and size != genuine["sizes"][kind]]
    assert same == []


def test_the_copy_that_the_program_has_is_the_one(program: Path) -> None:
    mapped, other = fake_cuda.cupti("12.4"), fake_cuda.cupti("13.0")
    found = find(program, fake_cuda.driver(), mapped, asked=other, candidates=(other,))
    assert found["path"] == str(mapped)


def test_none_that_is_newer_than_the_driver(program: Path) -> None:
    old, new = fake_cuda.cupti("12.4"), fake_cuda.cupti("13.0")
    found = find(program, fake_cuda.driver(), candidates=(new, old), DRIVER=12080)
    assert found["path"] == str(old)
    assert found["refused"] == [f"{new}: it is of CUDA 13, and the driver is of CUDA 12.8"]
    asked = find(program, fake_cuda.driver(), asked=new, DRIVER=12080, CRASH=1)  # nothing of it is called
    assert asked["path"] == ""
    assert asked["failure"].startswith("the CUPTI that STROBE_CUPTI names cannot be used: ")
    mapped = find(program, fake_cuda.driver(), new, candidates=(old,), DRIVER=12080)
    assert mapped["path"] == ""  # never a second copy
    assert mapped["failure"].startswith("the program has loaded a CUPTI that cannot be used: ")


def test_13_2_is_taken_only_where_there_is_no_other(program: Path, tmp_path: Path) -> None:
    crashing, other = fake_cuda.cupti("13.2"), fake_cuda.cupti("13.0")
    assert find(program, fake_cuda.driver(), candidates=(crashing, other), DRIVER=13020)["path"] == str(other)
    assert find(program, fake_cuda.driver(), asked=crashing, DRIVER=13020)["path"] == str(crashing)


def test_what_cannot_be_loaded_or_fails_is_passed_over(program: Path, tmp_path: Path) -> None:
    broken, good = tmp_path / "libcupti.so.13", fake_cuda.cupti("13.0")
    broken.write_text("no library")
    found = find(program, fake_cuda.driver(), candidates=(broken, good))
    assert found["path"] == str(good)
    assert found["refused"][0].startswith(f"{broken}: it cannot be loaded (")
    failing = find(program, fake_cuda.driver(), asked=good, FAIL="GetVersion:999")
    assert failing["path"] == ""
    assert "cuptiGetVersion fails (999)" in failing["failure"]


def test_a_library_without_a_needed_function(program: Path, tmp_path: Path) -> None:
    source = tmp_path / "poor.c"
    source.write_text("int cuptiGetVersion(unsigned *v) { *v = 130001; return 0; }\n")
    library = tmp_path / "libcupti.so.13"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcupti.so.13", source, "-o", library], check=True)
    found = find(program, fake_cuda.driver(), asked=library)
    assert found["failure"].endswith(": it lacks cuptiGetResultString")
