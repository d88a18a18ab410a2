"""OpenACC: constructs, launches, copies and bytes equal what another profiling library is called with."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

HERE = Path(__file__).parent / "openacc"
STEPS = 20
CONSTRUCTS = {0: "parallel", 3: "data", 4: "enter data", 5: "exit data", 12: "update"}
EVENTS = {10: "enter data", 12: "exit data", 14: "update", 16: "compute", 18: "launch", 20: "upload", 22: "download"}


def has_openacc() -> bool:
    """Whether gcc is there, with the runtime of OpenACC."""
    command = ["gcc", "-fopenacc", "-x", "c", "-", "-o", "/dev/null"]
    source = "#include <acc_prof.h>\nint main(void) { acc_init(acc_device_host); return 0; }"
    if not shutil.which("gcc"):
        return False
    return not subprocess.run(command, input=source.encode(), capture_output=True).returncode


if not has_openacc():
    pytest.skip("gcc has no OpenACC (acc_prof.h and libgomp)", allow_module_level=True)


def build(*command: str | Path) -> None:
    subprocess.run([*map(str, command)], check=True)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other profiling library."""
    library = tmp_path_factory.mktemp("counter") / "count.so"
    build("gcc", "-shared", "-fPIC", HERE / "count.c", "-o", library)
    return library


def run(workshop: Workshop, counter: Path, program: str) -> tuple[int, list[list[str]], Counter[tuple[object, ...]]]:
    """A program's exit status; what the other library was called with, in a recorded run; and the spans of the trace.

    A span is (name, file, line).
    """
    counts = workshop.folder / "counts"
    env = {"ACC_PROFLIB": str(counter), "COUNTS": str(counts), "ACC_DEVICE_TYPE": "host"}
    plain = workshop.plain("--", f"./{program}", env=env)
    alone = counts.read_text()
    recorded = workshop.recorded("--", f"./{program}", env=env)
    assert recorded.visible == plain.visible
    assert counts.read_text() == alone
    with strobe.open(workshop.trace) as trace:
        spans = trace.sql(
            "select regions.name as name, file, regions.line as line, count(*) as calls from spans"
            " join regions using (region) where regions.paradigm = 'openacc' group by all"
        ).to_pylist()
    found = Counter({(row["name"], Path(row["file"]).name, row["line"]): row["calls"] for row in spans})
    return recorded.returncode, [line.split() for line in alone.splitlines()], found


def name_of(event: int, construct: str, text: str) -> str:
    """The name that a span should have."""
    what = EVENTS.get(event, "wait")
    if what == "compute":
        return construct
    if what in ("launch", "upload", "download"):
        return f"{what} {text}"
    return what if what == construct else f"{what} of {construct}"


def line_of(source: str, construct: str) -> int:
    """The line of a program that ends with the name of its construct."""
    lines = (HERE / source).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith((f"// {construct}", f"! {construct}")))


@pytest.mark.parametrize("source", ["host.c", "host.f90"])
def test_constructs_on_the_host_are_counted_and_have_their_lines(
    source: str, workshop: Workshop, counter: Path
) -> None:
    compiler = "gcc" if source.endswith(".c") else "gfortran"
    if not shutil.which(compiler):
        pytest.skip("gfortran is not installed")
    build(compiler, "-g", "-fopenacc", HERE / source, "-o", workshop.folder / "host")
    status, called, found = run(workshop, counter, "host")
    assert status == 3
    expected: Counter[tuple[str, int]] = Counter()
    for event, parent, *_ in called:
        construct = CONSTRUCTS[int(parent)]
        expected[name_of(int(event), construct, ""), line_of(source, construct)] += 1
    assert expected["parallel", line_of(source, "parallel")] == STEPS
    placed = {(name, line): calls for (name, file, line), calls in found.items() if file == source}
    assert placed.pop(("init", line_of(source, "data"))) == 1  # of the device, when it is first used
    # The data construct ends at the end of its block, on a line that has no name.
    (end,) = (line for name, line in placed if name == "exit data of data")
    expected["exit data of data", end] = expected.pop(("exit data of data", line_of(source, "data")))
    assert placed == expected


def test_launches_copies_and_bytes_of_a_device_are_those_of_its_events(workshop: Workshop, counter: Path) -> None:
    build("gcc", HERE / "device.c", "-o", workshop.folder / "device", "-ldl")
    status, called, found = run(workshop, counter, "device")
    assert status == 7
    expected: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[str] = Counter()
    for event, parent, size, text, file, line in called:
        expected[name_of(int(event), CONSTRUCTS[int(parent)], text), file, int(line)] += 1
        sizes[{"20": "HtoD", "22": "DtoH"}.get(event, "")] += int(size)
    assert len(called) == 8 * STEPS
    assert found == expected
    with strobe.open(workshop.trace) as trace:
        copies = trace.sql(
            "select copy_kind, device, stream, sum(size_bytes) as size from copy_spans group by all"
        ).to_pylist()
        assert {row["copy_kind"]: row["size"] for row in copies} == {kind: sizes[kind] for kind in ("HtoD", "DtoH")}
        assert {(row["device"], row["stream"]) for row in copies} == {(1, 2)}
        calls = {row["name"]: (row["calls"], row["waits"]) for row in trace.calls().to_pylist()}
    assert calls["launch saxpy"] == (STEPS // 2, False)
    assert calls["wait of update"] == (STEPS, True)
    assert "parallel" not in calls  # its code may run on the host
