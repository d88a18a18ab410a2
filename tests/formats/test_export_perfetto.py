"""What is written as Perfetto's protobuf and read again is equal; and the project's own classes find it in there."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.formats.round_trip import anything, assert_equal

STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM = Path(__file__).parents[2] / "tests/ui/program.py"


def exported(trace: strobe.Trace, path: Path) -> strobe.Trace:
    assert trace.export(path, "perfetto") == []
    return strobe.open(path)


@pytest.mark.parametrize(
    "name",
    [
        "kineto/two_ranks",
        "nsys/perlmutter-cloverleaf-cuda.sqlite",
        "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
        "nvprof/cudastream-print-gpu-trace.txt",
        "otf2/ping-pong-otf2-papi",
        "xplane/jax08_gemm.xplane.pb",
    ],
)
def test_what_is_exported_and_read_again_is_equal(public_folder: Path, name: str, tmp_path: Path) -> None:
    trace = strobe.open(public_folder / name)
    assert_equal(trace, exported(trace, tmp_path / "again.pftrace"))
    assert trace.span_count > 40


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_trace_may_hold_is_equal(tmp_path: Path, seed: int) -> None:
    trace = anything(tmp_path / "t.strobe", seed)
    again = exported(trace, tmp_path / "again.pftrace")
    assert_equal(trace, again)
    assert_equal(trace, exported(again, tmp_path / "twice.pftrace"))


def test_a_trace_of_our_own_is_equal_too(tmp_path: Path) -> None:
    command = [STROBE, "run", "--quiet", "--keep", "all", "-o", str(tmp_path / "own.strobe"), str(PROGRAM)]
    subprocess.run(command, check=True)
    trace = strobe.open(tmp_path / "own.strobe")
    assert len(trace.metrics()) > 0
    assert_equal(trace, exported(trace, tmp_path / "own.pftrace"))


def test_rows_with_a_time_are_instants_with_annotations(tmp_path: Path) -> None:
    pb: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = anything(tmp_path / "t.strobe", seed=1)
    trace.export(tmp_path / "t.pftrace", "perfetto")
    read = pb.Trace()
    read.ParseFromString((tmp_path / "t.pftrace").read_bytes())
    names: dict[int, str] = {}
    texts: dict[int, str] = {}
    stacks: Counter[str | None] = Counter()
    for packet in read.packet:
        if packet.trusted_packet_sequence_id != 1:
            continue
        names.update({each.iid: each.name for each in packet.interned_data.debug_annotation_names})
        interned = packet.interned_data.debug_annotation_string_values
        texts.update({each.iid: each.str.decode() for each in interned})
        told = {names[each.name_iid]: each for each in packet.track_event.debug_annotations if each.name_iid}
        if any(name.startswith("samples.") for name in told):
            stack = told.get("samples.call_stack")
            stacks[stack and (texts[stack.string_value_iid] if stack.string_value_iid else stack.string_value)] += 1
    assert stacks == Counter(
        str(s) if s is not None else None for s in trace.side_table("samples").column("call_stack")
    )
    assert stacks.total() > 100
    assert texts
