"""XPlane files, against what a generic walker of protobuf finds in them, and against files that it can put together."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError, TraceError
from strobe.formats import perfetto, xplane
from tests.public import FOLDER, needs_public_traces

ROOT = Path(__file__).parents[2]
REAL = FOLDER / "xplane/jax08_gemm.xplane.pb"


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def walk(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            yield key >> 3, value
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size


def several(data: bytes, field: int) -> list[bytes]:
    return [value for number, value in walk(data) if number == field and isinstance(value, bytes)]


def one(data: bytes, field: int) -> int:
    return next((value for number, value in walk(data) if number == field and isinstance(value, int)), 0)


def name(data: bytes) -> str:
    return (several(data, 2) or [b""])[0].decode()


def truth(data: bytes) -> list[tuple[str, str, str, int, int]]:
    """(plane, line, event, start, duration) of every event, in nanoseconds from whole picoseconds."""
    found = []
    for plane in several(data, 1):
        names = {one(entry, 1): name(several(entry, 2)[0]) for entry in several(plane, 4)}
        plane_name = name(plane)
        for line in several(plane, 3):
            line_name, zero = name(line), one(line, 3)
            for event in several(line, 4):
                offset, duration = one(event, 2), one(event, 3)
                start = zero + offset // 1000
                end = zero + (offset + duration) // 1000
                found.append((plane_name, line_name, names[one(event, 1)], start, end - start))
    return found


@needs_public_traces
def test_every_sum_of_a_real_file_is_the_one_of_the_file(tmp_path: Path) -> None:
    data = REAL.read_bytes()
    expected = truth(data)
    trace = strobe.open(shutil.copy(REAL, tmp_path / "renamed"))
    assert trace.span_count == len(expected) == 3782
    first = min(start for _, _, _, start, _ in expected)
    rows = trace.sql("select start_ns, duration_ns from spans").rows()
    assert sorted(rows) == sorted((start - first, duration) for _, _, _, start, duration in expected)
    kernels = [each for each in expected if each[0].startswith("/device:GPU")]
    sums = Counter[str]()
    for _, _, kernel, _, duration in kernels:
        sums[kernel] += duration
    found = trace.sql("select name, sum(duration_ns)::bigint from spans where role = 'kernel' group by 1").rows()
    assert dict(found) == dict(sums)  # type: ignore[arg-type]
    assert sum(sums.values()) == 3_475_484
    assert trace.info.host == "tw003"
    # The plane "Task Environment" says when the profile began.
    assert trace.info.started_unix_ns == 1771595650217823548 + first


@needs_public_traces
def test_details_of_a_real_file_are_in_the_side_tables(tmp_path: Path) -> None:
    trace = strobe.open(shutil.copy(REAL, tmp_path / "x.xplane.pb"))
    kernel = trace.sql(
        "select grid_x, grid_y, grid_z, block_x, shared_memory_bytes, correlation, stream, device, duration_ns "
        "from kernel_spans where correlation = 754"
    ).rows()
    assert kernel == [(16, 128, 1, 256, 8704, 754, 16, 0, 183801)]
    arguments = trace.sql("select key, value from arguments where duration_ns = 183801 order by key").rows()
    assert dict(arguments)["hlo_op"] == '"custom-call.1"'  # type: ignore[arg-type]
    assert dict(arguments)["hlo_module"] == '"jit_dot"'  # type: ignore[arg-type]
    launch = trace.sql("select name, paradigm from call_spans where correlation = 754").rows()
    assert launch == [("hipExtModuleLaunchKernel", "hip")]
    streams = trace.sql("select name, kind, device, span_count from locations where kind = 'stream' order by 1").rows()
    assert streams == [("GPU:0 Stream #16(Kernel)", "stream", 0, 42), ("GPU:0 Stream #17(Kernel)", "stream", 0, 12)]
    python = trace.sql("select paradigm, file, line from regions where name = 'run_gemms'").rows()
    assert python == [("python", "generate_gemm_trace.py", 31)]
    allocations = sum(each[2] in ("MemoryAllocation", "MemoryDeallocation") for each in truth(REAL.read_bytes()))
    assert len(trace.side_table("allocations")) == allocations > 100


def places_of_operations(data: bytes) -> dict[tuple[int, str], str]:
    """(program, operation) -> file:line, by the messages of xla/service/hlo.proto."""
    found = {}
    for plane in several(data, 1):
        for entry in several(plane, 4) if name(plane) == "/host:metadata" else ():
            (stat,) = several(several(entry, 2)[0], 5)
            (module,) = several(several(stat, 6)[0], 1)
            for computation in several(module, 3):
                for instruction in several(computation, 2):
                    for metadata in several(instruction, 7):
                        if several(metadata, 3):
                            key = one(entry, 1), several(instruction, 1)[0].decode()
                            found[key] = f"{several(metadata, 3)[0].decode()}:{one(metadata, 4)}"
    return found


@needs_public_traces
def test_kernels_of_jax_have_the_lines_of_the_program(tmp_path: Path) -> None:
    data = REAL.read_bytes()
    places = places_of_operations(data)
    by_line, by_name = Counter[str | None](), Counter[str]()
    for plane in several(data, 1):
        stats = {one(entry, 1): name(several(entry, 2)[0]) for entry in several(plane, 5)}
        for each in (event for line in several(plane, 3) for event in several(line, 4)):
            of = {stats[one(stat, 1)]: stat for stat in several(each, 4)}
            if name(plane).startswith("/device:") and "hlo_op" in of:
                text = stats.get(one(of["hlo_op"], 7)) or several(of["hlo_op"], 5)[0].decode()
                module = stats.get(one(of["hlo_module"], 7)) or several(of["hlo_module"], 5)[0].decode()
                duration = (one(each, 2) + one(each, 3)) // 1000 - one(each, 2) // 1000
                by_line[places.get((one(of["program_id"], 4) or one(of["program_id"], 3), text))] += duration
                by_name[f"{module}/{text}"] += duration
    trace = strobe.open(shutil.copy(REAL, tmp_path / "x.xplane.pb"))
    rows = trace.operators(by="line", step="all").to_pylist()
    assert {row["line"]: row["device_self_ns"] for row in rows} == dict(by_line)
    assert {row["function"] for row in rows if row["line"]} == {"run_gemms"}
    assert sum(row["kernels"] for row in rows) == 42
    rows = trace.operators(step="all").to_pylist()
    assert {row["name"]: row["device_total_ns"] for row in rows} == dict(by_name)
    assert {row["type"] for row in rows} == {"custom-call", "copy", "wrapped_broadcast", "gemm_fusion_dot_general"}
    assert {row["self_ns"] for row in rows} == {None}


# --- files made here -------------------------------------------------------------------------------------------------


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    out = b""
    for field, value in fields:
        if isinstance(value, int):
            out += number(field << 3) + number(value)
        else:
            body = value.encode() if isinstance(value, str) else value
            out += number(field << 3 | 2) + number(len(body)) + body
    return out


def event(metadata: int, offset_ps: int, duration_ps: int, *stats: bytes) -> bytes:
    return message((1, metadata), (2, offset_ps), (3, duration_ps), *((4, stat) for stat in stats))


def plane(title: str, lines: list[bytes], events: dict[int, str], stats: dict[int, str]) -> bytes:
    return message(
        (2, title),
        *((3, line) for line in lines),
        *((4, message((1, i), (2, message((1, i), (2, text))))) for i, text in events.items()),
        *((5, message((1, i), (2, message((1, i), (2, text))))) for i, text in stats.items()),
    )


def line(identity: int, title: str, start_ns: int, *events: bytes) -> bytes:
    return message((1, identity), (2, title), (3, start_ns), *((4, each) for each in events))


EVENTS = {1: "outer", 2: "inner", 3: "MemcpyH2D"}
STATS = {1: "kernel_details", 2: "memcpy_details", 3: "correlation_id", 4: "_p", 5: "_c", 6: "flops"}


def space(*planes: bytes, path: Path) -> Path:
    path.write_bytes(message(*((1, each) for each in planes), (4, "machine")))
    return path


def quality(trace: strobe.Trace) -> dict[str, int]:
    return {str(row["what"]): int(str(row["value"])) for row in trace.quality.to_pylist() if row["value"]}


def test_lines_of_operations_come_from_the_frames_of_their_module(tmp_path: Path) -> None:
    def instruction(title: str, *metadata: tuple[int, int | str | bytes]) -> tuple[int, bytes]:
        return 2, message((1, title), (7, message(*metadata)))

    frames = message(
        *((1, file) for file in ("/a/model.py", "/a/main.py")),
        *((2, function) for function in ("attention", "main")),
        *((3, message((1, 2 - i), (2, 2 - i), (3, 10 + i))) for i in (0, 1)),
        *((4, message((1, location))) for location in (1, 2)),
    )
    operations = [
        instruction("fusion.2", (2, "jit(f)/dot"), (15, 2)),
        instruction("fusion.3", (3, "/b/x.py"), (4, 7)),
        instruction("fusion.4", (15, 9), (2, "no such frame")),
    ]
    module = message((1, "jit_f"), (3, message((1, "main"), *operations)), (17, frames))
    hlo = message((1, 1), (6, message((1, module))))
    modules = message((2, "/host:metadata"), (4, message((1, 5), (2, message((1, 5), (2, "jit_f(5)"), (5, hlo))))))
    stats = {1: "hlo_op", 2: "hlo_module", 3: "program_id", 4: "kernel_details"}

    def kernel(at: int, operation: str, program: int) -> bytes:
        texts = [message((1, 1), (5, operation)), message((1, 2), (5, "jit_f")), message((1, 4), (5, "grid:1,1,1"))]
        return event(1, at * 10_000, 5_000, *texts, message((1, 3), (4, program)))

    kernels = [kernel(i, f"fusion.{2 + i % 3}", 5) for i in range(6)] + [kernel(6, "fusion.2", 6)]
    gpu = plane("/device:GPU:0", [line(1, "Stream #1(Compute)", 0, *kernels)], EVENTS, stats)
    trace = strobe.open(space(gpu, modules, path=tmp_path / "x"))  # in this order
    rows = trace.operators(by="line").to_pylist()
    found = {(row["line"], row["function"]): row["kernels"] for row in rows}
    assert found == {("/a/model.py:11", "attention"): 2, ("/b/x.py:7", None): 2, (None, None): 3}
    assert [row["kernels"] for row in trace.operators(by="module").to_pylist()] == [7]
    assert [row["type"] for row in trace.operators(by="type").to_pylist()] == ["fusion"]


def test_picoseconds_go_down_at_both_ends_so_that_nesting_stays(tmp_path: Path) -> None:
    lines = [line(1, "main", 1000, event(1, 0, 3_999), event(2, 1_999, 2_000), event(2, 5_000, 1_000))]
    trace = strobe.open(space(plane("/host:CPU", lines, EVENTS, STATS), path=tmp_path / "x"))
    rows = trace.sql("select name, start_ns, duration_ns, depth from spans order by start_ns, depth").rows()
    assert rows == [("outer", 0, 3, 0), ("inner", 1, 2, 1), ("inner", 5, 1, 0)]
    assert quality(trace)["times_rounded"] == 2


def test_cuda_kernels_copies_and_flows(tmp_path: Path) -> None:
    kernel = message((1, 1), (5, "regs:32 static_shared:1024 dynamic_shared:512 grid:4,2,1 block:128,1,1 occ_pct:50"))
    copy = message((1, 2), (5, "kind_src:pageable kind_dst:device size:4096 dest:0 async:1"))
    shared = [message((1, 6), (3, 7))]
    gpu = [
        line(7, "Stream #7(Compute,MemcpyH2D)", 0, event(1, 10_000, 5_000, kernel, message((1, 3), (3, 9)))),
        line(8, "XLA Modules", 0, event(2, 10_000, 5_000)),
    ]
    gpu[0] += message((4, event(3, 1_000, 2_000, copy)))
    host = [line(1, "main", 0, event(1, 0, 1_000, message((1, 4), (3, 77)), *shared), event(2, 2_000, 0))]
    host[0] += message((4, event(2, 3_000, 1_000, message((1, 5), (3, 77)))))
    both = plane("/device:GPU:3", gpu, EVENTS, STATS), plane("/host:CPU", host, EVENTS, STATS)
    trace = strobe.open(space(*both, path=tmp_path / "x"))
    kernels = trace.sql(
        "select grid_x, grid_y, block_x, registers_per_thread, shared_memory_bytes, occupancy_percent, device, stream, "
        "correlation from kernel_spans"
    ).rows()
    assert kernels == [(4, 2, 128, 32, 1536, 50.0, 3, 7, 9)]
    assert trace.sql("select size_bytes, duration_ns, role from copy_spans").rows() == [(4096, 2, "copy")]
    flows = trace.sql("select phase, flow, time_ns from flows order by time_ns").rows()
    assert flows == [("s", 77, 0), ("f", 77, 3)]
    assert trace.sql("select value from arguments where key = 'flops'").rows() == [("7",)]
    kinds = {row["name"]: row["kind"] for row in trace.locations.to_pylist()}
    assert kinds["GPU:3 XLA Modules"] == "task"
    assert kinds["main"] == "thread"


def test_a_torn_file_opens_with_the_planes_that_are_whole(tmp_path: Path) -> None:
    one_plane = plane("/host:CPU", [line(1, "main", 0, event(1, 0, 1_000))], EVENTS, STATS)
    whole = space(one_plane, one_plane, path=tmp_path / "whole").read_bytes()
    torn = tmp_path / "torn"
    torn.write_bytes(whole[: len(one_plane) + 40])
    trace = strobe.open(torn)
    assert trace.span_count == 1
    assert quality(trace)["truncated"] == 1
    assert quality(trace)["bytes_lost"] > 30


def test_every_damage_is_survived(tmp_path: Path) -> None:
    kernel = message((1, 1), (5, "regs:32 grid:4,2,1 block:128,1,1"))
    lines = [line(1, "Stream #1", 5, event(1, 10, 2**63, kernel), event(9, 0, 5, message((1, 99), (7, 99))))]
    whole = space(plane("/device:GPU:0", lines, EVENTS, STATS), path=tmp_path / "whole").read_bytes()
    opened, places = 0, range(0, len(whole), 4)  # all kinds of bytes; test_damage.py changes others
    for at in places:
        path = tmp_path / "damaged"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            opened += strobe.open(path).span_count >= 0
        except TraceError:
            continue
    assert opened > len(places) // 2


def test_only_xspace_is_recognised(tmp_path: Path) -> None:
    good = space(plane("/host:CPU", [], EVENTS, STATS), path=tmp_path / "x").read_bytes()
    assert xplane.sniff(good)
    assert not perfetto.sniff(good)
    for bad in (b"", b"\n", b"\nhello", b"\n\x05hello", b"{}", bytes(100), good[1:], b"\x0a\x02\x08\x01"):
        assert not xplane.sniff(bad)
    path = tmp_path / "y"
    path.write_bytes(b"\nno trace at all\n")
    with pytest.raises(FormatError, match="not in a known format"):
        strobe.open(path)


def test_kernels_of_xla_belong_to_the_operation_that_they_name(tmp_path: Path) -> None:
    names = {1: "fusion_kernel", 2: "gemm"}
    stats = {1: "kernel_details", 2: "hlo_op", 3: "hlo_module", 4: "correlation_id"}

    def kernel(name: int, start: int, operation: str, module: str) -> bytes:
        texts = [message((1, 1), (5, "regs:8")), message((1, 2), (5, operation)), message((1, 3), (5, module))]
        return event(name, start * 1000, 500_000, *(each for each in texts if not each.endswith(b"\x00")))

    stream = line(
        7,
        "Stream #7(Compute)",
        1000,
        kernel(1, 0, "fusion.1", "jit_step"),
        kernel(2, 1000, "dot.2", "jit_step"),
        kernel(1, 2000, "fusion.1", "jit_loss"),
        kernel(1, 3000, "fusion.1", "jit_step"),
        kernel(2, 4000, "dot.9", ""),
        kernel(2, 5000, "", ""),
    )
    trace = strobe.open(space(plane("/device:GPU:0", [stream], names, stats), path=tmp_path / "t.xplane.pb"))
    table = trace.kernels(by="operator")
    assert "operator" not in table.note
    found = {(row["operator"], row["name"]): (row["calls"], row["total_ns"]) for row in table.to_pylist()}
    assert found == {
        ("jit_step/fusion.1", "fusion_kernel"): (2, 1000),
        ("jit_step/dot.2", "gemm"): (1, 500),
        ("jit_loss/fusion.1", "fusion_kernel"): (1, 500),
        ("dot.9", "gemm"): (1, 500),
        (None, "gemm"): (1, 500),
    }


@needs_public_traces
def test_kernels_of_a_real_file_belong_to_operations(tmp_path: Path) -> None:
    trace = strobe.open(shutil.copy(REAL, tmp_path / "x.xplane.pb"))
    rows = trace.kernels(by="operator").to_pylist()
    assert sum(int(row["total_ns"]) for row in rows) == 3_475_484
    arguments = trace.sql(
        "select key, value, row, location from arguments join kernel_spans using (location, row)"
        " where key in ('hlo_op', 'hlo_module')"
    ).rows()
    of_kernel: dict[tuple[object, object], dict[object, str]] = {}
    for key, value, row, location in arguments:
        of_kernel.setdefault((location, row), {})[key] = json.loads(str(value))
    expected: Counter[object] = Counter(f"{each['hlo_module']}/{each['hlo_op']}" for each in of_kernel.values())
    expected[None] = len(trace.side_table("kernel_spans")) - len(of_kernel)
    found = Counter[object]()
    for row in rows:
        found[row["operator"]] += int(row["calls"])
    assert found == expected
    assert len(found) > 4
