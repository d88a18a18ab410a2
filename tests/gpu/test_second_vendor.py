"""A second vendor of GPUs is a folder on each side: with no file of strobe changed, what a toy does is in a trace.

Its runtime is a fake (second_vendor/toy_runtime.c); all of strobe is the real one, in a copy of the tree into which
the toy's adapter is put. The native part is a library of its own here, built against the installed core.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import strobe
from strobe.native import library

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

HERE = Path(__file__).parent / "second_vendor"
ROOT = HERE.parents[2]
DECODE = [ROOT / f"native/adapters/gpu/decode/{name}.cpp" for name in ("spans", "memory", "waits")]
# The command line of the copy: the editable install would answer `import strobe` with the real one.
RUN = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ditable" not in type(finder).__module__]
sys.path.insert(0, {src!r})
from strobe.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strobe with the adapter, and a program that uses toys."""
    folder = tmp_path_factory.mktemp("second_vendor")
    copy = folder / "src/strobe"
    shutil.copytree(ROOT / "src/strobe", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for built in Path(library()).parents[1].iterdir():
        if not (copy / built.name).exists():
            (copy / built.name).symlink_to(built)
    adapters = copy / "record/adapters"
    shutil.copy(HERE / "toy.py", adapters)
    core = Path(library()).parent
    runtime = folder / "libtoy.so"
    for command in (
        ["gcc", "-shared", "-fPIC", HERE / "toy_runtime.c", "-o", runtime, "-ldl", "-pthread"],
        [
            *("g++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-I", ROOT / "native", "-I", HERE),
            *(HERE / "toy_vendor.cpp", *DECODE, "-o", adapters / "libstrobe_toy.so"),
            *(runtime, f"-L{core}", "-lstrobe", f"-Wl,-rpath,{core}"),
        ],
        ["gcc", HERE / "program.c", "-o", folder / "program", runtime, f"-Wl,-rpath,{folder}"],
    ):
        subprocess.run(list(map(str, command)), check=True)
    return folder


def run(tree: Path, *words: str) -> str:
    code = RUN.format(src=str(tree / "src"))
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tree, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def trace(tree: Path) -> strobe.Trace:
    run(tree, "run", "-o", "t.strobe", "--keep", "all", "--", "./program")
    return strobe.open(tree / "t.strobe")


def test_its_kernels_are_spans_of_their_streams(trace: strobe.Trace) -> None:
    rows = trace.sql(
        "select regions.name, stream, grid_x, registers_per_thread, duration_ns from kernel_spans"
        " join regions using (region)"
    ).to_pylist()
    assert Counter((row["name"], row["stream"]) for row in rows) == {("toy_gemm", 1): 50, ("toy_relu", 2): 50}
    assert {(row["grid_x"], row["registers_per_thread"]) for row in rows} == {(4, 16)}
    assert {row["duration_ns"] for row in rows if row["name"] == "toy_gemm"} == {200_000}
    streams = {row["name"] for row in trace.locations.to_pylist() if row["kind"] == "stream"}
    assert streams == {"GPU 0 stream 1", "GPU 0 stream 2"}


def test_kernels_are_answered_with_the_calls_that_launched_them(trace: strobe.Trace) -> None:
    rows = {row["kernel"]: row for row in trace.kernels().to_pylist()}
    assert set(rows) == {"toy_gemm", "toy_relu"}
    assert (rows["toy_gemm"]["calls"], rows["toy_gemm"]["total_ns"]) == (50, 50 * 200_000)
    calls = {row["name"]: row["calls"] for row in trace.calls().to_pylist()}
    assert calls["toyLaunch"] == 100


def test_the_timeline_paints_them(trace: strobe.Trace) -> None:
    numbers = {row["name"]: row["region"] for row in trace.regions.to_pylist()}
    locations = {row["name"]: row["location"] for row in trace.locations.to_pylist()}
    (span,) = trace.sql(
        "select min(start_ns) as first, max(start_ns + duration_ns) as last from kernel_spans"
    ).to_pylist()
    regions, _, _ = trace.pyramid.cells([locations["GPU 0 stream 1"]], span["first"], span["last"], 200)
    assert numbers["toy_gemm"] in set(regions[0].tolist())


def test_its_options_levels_and_findings_are_there(tree: Path) -> None:
    assert "toy-colour" in run(tree, "config")
    assert "--toy-colour" in run(tree, "run", "--help")
    assert "one toy" in run(tree, "doctor")
    assert "toy" in run(tree, "config").splitlines()[-1]
    run(tree, "run", "-o", "deep.strobe", "--toy-colour", "blue", "--trace", "+toy+deep", "--", "./program")


def test_no_file_of_strobe_names_it(tree: Path) -> None:
    changed = [
        path.relative_to(tree / "src/strobe")
        for path in (tree / "src/strobe").rglob("*.py")
        if not (ROOT / "src/strobe" / path.relative_to(tree / "src/strobe")).exists()
    ]
    assert changed == [Path("record/adapters/toy.py")]
