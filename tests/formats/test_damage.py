"""Files that are damaged or made to do harm: they open, or are refused in one sentence; nothing else happens."""

import bz2
import cProfile
import gc
import gzip
import io
import json
import lzma
import os
import pickle
import sqlite3
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import strobe
from strobe import native
from strobe.errors import FormatError, TraceError
from strobe.formats.reading import inputs
from tests.formats import (
    test_ascend,
    test_converted_profiles,
    test_memory_snapshot,
    test_memray,
    test_nccl_inspector,
    test_ncu,
    test_nsys,
    test_nvprof,
    test_profiles,
    test_profiles_cube,
    test_pytorch_files,
    test_rocm,
    test_sampled_profiles,
    test_tau,
    test_xplane,
)
from tests.formats.mutations import stored_frame
from tests.formats.strategies import damaged, trace_json
from tests.formats.test_chrome import quality, span, write
from tests.ranks import flight_recorder_cases

EVENTS = [
    span("outer", 0, 100),
    span("inner", 10, 5),
    {"ph": "C", "name": "m", "ts": 3, "pid": 7, "args": {"value": 1}},
]
TRACE = json.dumps({"traceEvents": EVENTS, "distributedInfo": {"rank": 0}}).encode()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


# --- one file of each reader, damaged --------------------------------------------------------------------------------


def _chrome(folder: Path) -> bytes:
    return TRACE


def _packed(folder: Path) -> bytes:
    return gzip.compress(TRACE, mtime=0)


def _otf2(folder: Path) -> bytes:
    pytest.importorskip("_otf2")
    from tests.formats import otf2_archives as archives

    archives.write(folder / "a", archives.random_job(3), ranks=1, chunk_bytes=256 * 1024)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder / "a", "")
    return out.getvalue()


def _perfetto(folder: Path) -> bytes:
    pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    from tests.formats.test_perfetto import example

    return example(20).save(folder / "t").read_bytes()


def _xplane(folder: Path) -> bytes:
    x = test_xplane
    line = x.line(1, "python", 1_700_000_000_000_000_000, x.event(1, 0, 9000), x.event(2, 1000, 2000))
    return x.space(x.plane("/host:CPU", [line], x.EVENTS, x.STATS), path=folder / "t").read_bytes()


def _nsys(folder: Path) -> bytes:
    export = test_nsys.Export(folder / "t.sqlite")
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("k", 10, 20), export.kernel("k", 30, 50))
    export.table("CUPTI_ACTIVITY_KIND_RUNTIME", export.call("cudaLaunchKernel", 1, 5))
    export.database.commit()
    return bytes(export.database.serialize())


def _nvprof(folder: Path) -> bytes:
    export = test_nvprof.Export(folder / "t.nvvp")
    call = {"processId": 77, "threadId": 5, "returnValue": 0}
    export.table("CUPTI_ACTIVITY_KIND_RUNTIME", {**call, "cbid": 211, "start": 10, "end": 20, "correlationId": 3})
    export.database.commit()
    return bytes(export.database.serialize())


def _nvprof_text(folder: Path) -> bytes:
    return (
        b"==12== NVPROF is profiling process 12, command: ./a.out 1\n==12== Profiling result:\n"
        b'"Start","Duration","Device","Stream","Name","Correlation_ID"\ns,us,,,,\n'
        b'1.5,3.25,"GPU (0)","7","k(int)",3\n2.5,0.25,"GPU (0)","7","[CUDA memset]",4\n'
    )


def _speedscope(folder: Path) -> bytes:
    evented = {"type": "evented", "name": "t", "unit": "microseconds", "startValue": 0, "endValue": 4}
    return test_profiles.scope({**evented, "events": test_profiles.events("O0@0 O1@1 C1@2 C0@3")}).encode()


def _pprof(folder: Path) -> bytes:
    return test_profiles.pprof()


def _collapsed(folder: Path) -> bytes:
    return b"a;b;c 3\na;b 2\nmain (x.py:3);f 10\n"


def _pstats(folder: Path) -> bytes:
    made = cProfile.Profile()
    made.runcall(test_profiles.work)
    made.dump_stats(folder / "t")
    return (folder / "t").read_bytes()


def _cube4(folder: Path) -> bytes:
    return test_profiles_cube.cubex(folder / "t.cubex", packed=False).read_bytes()


def _sampled(name: str) -> Callable[[Path], bytes]:
    s = test_sampled_profiles
    records = [[["MainThread\0<thread>\0001", "f\0x.py\0003\1cA\1l5"], 0.25]]
    bodies = {
        "cpuprofile": s.v8(),
        "firefox": s.firefox({"stack": [0, 2, None], "weight": [1, 2, 1]}, 62),
        "pyinstrument": {"start_time": 1, "duration": 1, "sample_count": 1, "frame_records": records},
        "jfr": {"recording": {"events": test_converted_profiles.JFR}},
        "stackprof": s.ruby(),
    }
    texts = {"perf": test_converted_profiles.PERF, "tau": test_tau.tau(*test_tau.FLAT)} | {
        each: json.dumps(body) for each, body in bodies.items()
    }

    def made(_: Path) -> bytes:
        return texts[name].encode()

    made.__name__ = f"_{name}"
    return made


def _rocpd(folder: Path) -> bytes:
    return test_rocm.rocpd(folder / "t").read_bytes()


def _rocprof_json(folder: Path) -> bytes:
    return test_rocm.as_json(folder / "t").read_bytes()


def _rocprof_csv(folder: Path) -> bytes:
    return (test_rocm.as_csv(folder / "out") / f"{test_rocm.PID}_kernel_trace.csv").read_bytes()


def _memory_snapshot(folder: Path) -> bytes:
    return pickle.dumps(test_memory_snapshot.SNAPSHOT)


def _flight_recorder(folder: Path) -> bytes:
    return pickle.dumps(flight_recorder_cases.CASES[0].dumps[0], 2)


def _flight_recorder_json(folder: Path) -> bytes:
    return json.dumps(flight_recorder_cases.CASES[0].dumps[0]).encode()


def _nccl_inspector(folder: Path) -> bytes:
    path = test_nccl_inspector.written(folder / "t", *(test_nccl_inspector.line(number=n) for n in range(5)))
    return path.read_bytes()


def _execution_trace(folder: Path) -> bytes:
    nodes = [{"id": i, "name": f"aten::op{i}", "ctrl_deps": i - 1, "attrs": []} for i in range(9)]
    return json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 5, "nodes": nodes}).encode()


def _chakra(folder: Path) -> bytes:
    nodes = (test_pytorch_files.node(i, f"op{i}", 4, [i - 1], 3, rf_id=1, tid=2) for i in range(1, 9))
    return test_pytorch_files.chakra(folder / "t", *nodes).read_bytes()


def _memory_timeline(folder: Path) -> bytes:
    return json.dumps([[1_795_901_941_292_537 + i, 2, 40 * i, i % 8] for i in range(9)]).encode()


def _key_averages(folder: Path) -> bytes:
    return test_pytorch_files.CUDA.encode()


def _memray(folder: Path) -> bytes:
    return test_memray.TABLE.encode()


def _ascend(folder: Path) -> bytes:
    return test_ascend.KERNELS.encode()


def _ascend_database(folder: Path) -> bytes:
    made = test_ascend.Database(folder / "t")
    for i in range(9):
        made.task(i, 10 * i, 10 * i + 5, "KERNEL_AICORE")
    made.connection.commit()
    return bytes(made.connection.serialize())


SOUND = [
    *(_chrome, _packed, _otf2, _perfetto, _xplane, _nsys, _nvprof, _nvprof_text),
    *(_speedscope, _pprof, _collapsed, _pstats, _cube4),
    *map(_sampled, ("cpuprofile", "firefox", "perf", "pyinstrument", "jfr", "stackprof", "tau")),
    *(_rocpd, _rocprof_json, _rocprof_csv, _ascend, _ascend_database, _memray),
    *(_memory_snapshot, _execution_trace, _chakra, _memory_timeline, _key_averages),
    *(_flight_recorder, _flight_recorder_json, _nccl_inspector),
]


def opened(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    refused = ""
    try:
        with strobe.open(path) as trace:
            _ = trace.info, trace.quality, trace.processes, trace.call_paths
            for location in range(len(trace.locations)):
                for _ in trace.span_batches(location):
                    pass
            trace.side_table("arguments")
    except TraceError as error:
        refused = error.what or "\n"
    assert not any(ord(each) < 32 for each in refused), "one sentence, in one line"


@pytest.mark.parametrize("sound", SOUND, ids=lambda made: made.__name__[1:])
def test_damaged_files_open_or_are_refused_in_a_sentence(
    tmp_path: Path, sound: Callable[[Path], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = sound(tmp_path)
    before = {each.name for each in tmp_path.iterdir()} | {"input", "cache"}

    @settings(max_examples=6, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(damaged([data]))
    def check(changed: bytes) -> None:
        opened(tmp_path / "input", changed)

    check()
    assert {each.name for each in tmp_path.iterdir()} <= before, "nothing is left behind"


def test_any_json_with_the_keys_of_events_opens_or_is_refused(tmp_path: Path) -> None:
    @settings(max_examples=20, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(trace_json())
    def check(document: object) -> None:
        opened(tmp_path / "input", json.dumps(document).encode())

    check()


# --- bombs -----------------------------------------------------------------------------------------------------------


def _zeros(n: int = 1 << 23) -> bytes:
    return b'{"traceEvents": [' + b" " * n


def _in_tar(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _in_zip(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def _zstd_of_zeros() -> bytes:
    # One block of one byte repeated (RFC 8878, 3.1.1.2: type 1), as often as it takes.
    start = stored_frame(b'{"traceEvents": [')
    repeated = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b" "
    last = (1 << 17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b" "
    return start + b"\x28\xb5\x2f\xfd\x00\x58" + repeated * 63 + last


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(_zeros()),
    "zstd": _zstd_of_zeros,
    "zip": lambda: _in_zip(("a.json", _zeros())),
    "gzip in zip": lambda: _in_zip(("a.json.gz", gzip.compress(_zeros()))),
    "tar.gz": lambda: gzip.compress(_in_tar("a.json", _zeros())),
    "tar.bz2": lambda: bz2.compress(_in_tar("a.json", _zeros())),
    "tar.xz": lambda: lzma.compress(_in_tar("a.json", _zeros())),
    "gzip in tar": lambda: _in_tar("a.json.gz", gzip.compress(_zeros())),
    "gzip in tar.gz": lambda: gzip.compress(_in_tar("a.json.gz", gzip.compress(_zeros()))),
}


@pytest.mark.parametrize("made", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[], bytes]) -> None:
    monkeypatch.setattr(inputs, "_ALWAYS_BYTES", 1 << 22)
    path = tmp_path / "bomb"
    path.write_bytes(made())
    with pytest.raises(FormatError, match="unpacks to more than"):
        strobe.open(path)
    assert not [each for each in tmp_path.rglob("*") if each.name not in ("bomb", "cache")]


def test_members_of_an_archive_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_ALWAYS_BYTES", 1 << 22)
    path = tmp_path / "bomb.zip"
    sound = TRACE + b" " * 1_800_000  # behind the end: each alone is a trace
    path.write_bytes(_in_zip(*((f"rank{i}.json", sound) for i in range(2))))
    assert len(strobe.open(path).processes) == 2
    path.write_bytes(_in_zip(*((f"rank{i}.json", sound + b" ") for i in range(8))))
    with pytest.raises(FormatError, match="unpacks to more than"):
        strobe.open(path)


@pytest.mark.parametrize("suffix", ["zip", "tar"])
def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(inputs, "_MOST_MEMBERS", 3)
    path = tmp_path / f"many.{suffix}"
    if suffix == "zip":
        path.write_bytes(_in_zip(*((f"{i}.json", TRACE) for i in range(4))))
    else:
        with tarfile.open(path, "w") as archive:
            for i in range(4):
                archive.addfile(tarfile.TarInfo(f"{i}.json"))
    with pytest.raises(FormatError, match="holds more than 3 files"):
        strobe.open(path)


def test_a_packed_tar_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ranks.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for rank in range(5):
            info = tarfile.TarInfo(f"rank{rank}.json")
            info.size = len(TRACE)
            archive.addfile(info, io.BytesIO(TRACE))
    read = 0
    plain = inputs._OPENED["gzip"]

    def counted(at: Path) -> Any:
        stream = plain(at)
        whole = stream.read

        def reading(n: int = -1) -> bytes:
            nonlocal read
            piece = whole(n)
            read += len(piece)
            return piece

        stream.read = reading  # type: ignore[method-assign]
        return stream

    monkeypatch.setitem(inputs._OPENED, "gzip", counted)
    assert len(strobe.open(path).processes) == 5
    assert read < 1.5 * len(gzip.decompress(path.read_bytes()))


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["tar", "zip"])
def test_names_of_members_are_no_paths(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / f"t.{suffix}"
    names = ["../out.json", "/etc/strobe-out.json", "a/../../up.json"]
    if suffix == "zip":
        path.write_bytes(_in_zip(*((name, TRACE) for name in names)))
    else:
        with tarfile.open(path, "w") as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = len(TRACE)
                archive.addfile(info, io.BytesIO(TRACE))
    touched: list[str] = []
    watching = True  # hooks stay as long as Python runs

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.mkdir", "os.rename", "os.symlink", "os.link"):
            touched.append(os.path.abspath(os.fsdecode(arguments[0])) if isinstance(arguments[0], str) else "")

    sys.addaudithook(audit)
    assert len(strobe.open(path).processes) == 3
    watching = False
    assert any(touched)
    for name in ("out.json", "strobe-out.json", "up.json"):
        assert not [each for each in touched if each.endswith(f"/{name}")]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "here"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_not_followed(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(TRACE)
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("a.json")
        info.type, info.linkname = kind, str(secret)
        archive.addfile(info)
    with pytest.raises(FormatError, match="it holds no file"):
        strobe.open(path)


# --- what the fuzzer found -------------------------------------------------------------------------------------------


def test_times_that_cannot_be_subtracted_are_left_out_and_counted(tmp_path: Path) -> None:
    counter = {"ph": "C", "name": "m", "ts": 9e15, "pid": 7, "args": {"v": 1}}
    far = [span("far", 9.2e15, 1), span("before", -9.2e15, 1), counter]
    trace = strobe.open(write(tmp_path / "t.json", [span("near", 5, 2), *far]))
    assert trace.sql("select name, start_ns, duration_ns from spans").rows() == [("near", 0, 2000)]
    assert quality(trace)["times_out_of_range"] == 3


def test_a_base_time_beyond_all_numbers_is_not_used(tmp_path: Path) -> None:
    trace = strobe.open(write(tmp_path / "t.json", [span("a", 5, 2)], baseTimeNanoseconds=2**63 - 5))
    assert trace.sql("select start_ns, duration_ns from spans").rows() == [(0, 2000)]
    assert trace.info.started_unix_ns == 0


def test_lanes_are_bounded(tmp_path: Path) -> None:
    # Each begins within the one before and ends behind it: no two of them can share a lane.
    trace = strobe.open(write(tmp_path / "t.json", [span("a", i, 5000) for i in range(1030)]))
    assert trace.span_count == 1024
    assert quality(trace)["spans_not_kept"] == 6


def test_memory_events_and_counters_without_arguments(tmp_path: Path) -> None:
    events = [{"ph": "i", "name": "[memory]", "ts": 1, "pid": 7, "tid": 1}, {"ph": "C", "name": "m", "ts": 1, "pid": 7}]
    trace = strobe.open(write(tmp_path / "t.json", [span("a", 0, 2), *events]))
    assert trace.span_count == 1
    assert quality(trace)["unreadable_counters"] == 1


def test_many_properties_are_left_out_and_counted(tmp_path: Path) -> None:
    more = {f"p{i}": "x" * (9 << 20) for i in range(2)}
    trace = strobe.open(write(tmp_path / "t.json", [span("a", 0, 2)], **more))
    assert quality(trace)["properties_not_kept"] == 1


def test_an_archive_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.tar"
    path.write_bytes(b"\x01" * 257 + b"ustar" + b"\x01" * 300)
    with pytest.raises(TraceError) as refused:
        strobe.open(path)
    assert "\n" not in refused.value.what


def test_a_member_of_a_zip_without_a_name_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "nameless.zip"
    # A name ends at its first zero, so this one is empty.
    path.write_bytes(_in_zip(("@@@@", b"nothing"), ("a.json", TRACE)).replace(b"@@@@", bytes(4)))
    (tmp_path / "a.json").write_bytes(TRACE)
    assert strobe.open(path).span_count == strobe.open(tmp_path / "a.json").span_count


def test_a_zip_that_asks_for_a_password_is_refused(tmp_path: Path) -> None:
    data = bytearray(_in_zip(("a.json", TRACE)))
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(mark) + offset] |= 1
    path = tmp_path / "t.zip"
    path.write_bytes(data)
    with pytest.raises(TraceError, match="encrypted"):
        strobe.open(path)


JOBS: list[object] = [
    *(
        [],
        "x",
        "deep",
        {"format_version": "x"},
        {"format_version": None},
        {"command": 5},
        {"zero_ns": 2**70},
        {"zero_ns": [1]},
    ),
    *(
        {"imported": 5},
        {"imported": {"files": [{}]}},
        {"imported": {"processes": 5}},
        {"imported": {"processes": {"process-1": 5}}},
    ),
]


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_job_description_that_is_none_is_found_in_the_block_files(tmp_path: Path, job: object) -> None:
    folder = Path(strobe.open(write(tmp_path / "t.json", [span("a", 0, 2)])).info.path)
    info = strobe.open(folder).info
    (folder / "job.json").write_text("[" * 100_000 if job == "deep" else json.dumps(job))
    assert replace(strobe.open(folder).info, size_bytes=info.size_bytes) == info


def test_a_table_whose_name_is_no_text_is_not_read(tmp_path: Path) -> None:
    export = test_nsys.Export(tmp_path / "t.sqlite")
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("k", 10, 20))
    export.table("OTHER", {"a": 1})
    export.database.execute("PRAGMA writable_schema=ON")
    export.database.execute("UPDATE sqlite_master SET name = cast(name AS BLOB) WHERE name = 'OTHER'")
    assert export.open().sql("select name from spans").rows() == [("k",)]


def test_a_comment_with_a_negative_number_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.pprof"
    path.write_bytes(test_profiles.pprof() + test_profiles.message((13, 2**64 - 10**6)))
    assert strobe.open(path).sql("select count(*) from statistics").rows()[0][0] > 0


def test_messages_hold_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("\x1b[31m\udc80.json")
        info.size = 6
        archive.addfile(info, io.BytesIO(b"\x1b[31m{"))
    with pytest.raises(FormatError) as refused:
        strobe.open(path)
    assert str(refused.value).replace("\n", "").isprintable()
    raised = FormatError("a\x1b[31m\udc80b", do="c\x07")
    assert str(raised) == "a\\x1b[31m\\udc80b\n  c\\x07"


def test_half_a_character_in_a_name_is_a_question_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(_speedscope(tmp_path).replace(b'"$schema"', b'"name": "\\udc80", "$schema"'))
    assert strobe.open(path).processes.to_pylist()[0]["argv"] == "?"


def test_a_region_whose_number_is_beyond_memory_is_refused(tmp_path: Path) -> None:
    folder = Path(strobe.open(write(tmp_path / "t.json", [span("a", 0, 9)])).info.path)
    blocks = folder / "process-1.blocks"
    data, kept = blocks.read_bytes(), b""
    while data:  # the sums are right again: docs/format/blocks.md
        size = int.from_bytes(data[8:12], "little")
        head, payload = bytearray(data[:32]), data[32 : 32 + size]
        if head[4] == 2:
            payload = (2**32 - 2).to_bytes(4, "little") + payload[4:]
            head[20:24] = native.core.crc32c(payload).to_bytes(4, "little")
            head[28:32] = native.core.crc32c(bytes(head[:28])).to_bytes(4, "little")
        kept, data = kept + bytes(head) + payload, data[32 + size :]
    blocks.write_bytes(kept)
    with pytest.raises(TraceError, match="numbers a region 4294967294"), strobe.open(folder) as trace:
        _ = trace.regions


@pytest.mark.parametrize("lost", [2, 3, 4, 14], ids=["regions", "locations", "paths", "texts"])
def test_what_refers_to_lost_definitions_is_left_out(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "t.json"
    folder = Path(strobe.open(write(path, [span("a", 0, 9, args={"x": "y"}), span("b", 1, 2)])).info.path)
    blocks = folder / "process-1.blocks"
    data, kept = blocks.read_bytes(), b""
    while data:  # chunks as docs/format/blocks.md has them
        size = 32 + int.from_bytes(data[8:12], "little")
        kept += data[:size] if data[4] != lost else b""
        data = data[size:]
    assert kept != blocks.read_bytes()
    blocks.write_bytes(kept)
    with suppress(TraceError), strobe.open(folder) as trace:
        _ = trace.info, trace.quality, trace.regions, trace.call_paths, trace.folded_count
        assert len(trace.side_table("arguments")) <= 1
        trace.spans()


@pytest.mark.parametrize("offset", [2**62, -(2**62), 2**80, "x", None, 1.5, True])
def test_clocks_are_not_moved_beyond_what_can_be_subtracted(tmp_path: Path, offset: object) -> None:
    folder = Path(strobe.open(write(tmp_path / "t.json", [span("a", 0, 2)])).info.path)
    job = json.loads((folder / "job.json").read_text())
    del job["checksum"]
    job["imported"]["processes"]["process-1"]["clock_offset_ns"] = offset
    (folder / "job.json").write_text(json.dumps(job))
    with suppress(TraceError):
        assert strobe.open(folder).sql("select start_ns, duration_ns from spans").rows() == [(0, 2000)]


def test_copies_of_files_beside_it_in_an_archive_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = test_rocm.as_csv(tmp_path / "out")
    test_rocm.rocpd(folder / f"{test_rocm.PID}_results.db")
    path = tmp_path / "run.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(folder, "")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    gc.disable()  # it would remove them some day
    try:
        assert strobe.open(path).span_count > 0
        assert not list(temporary.iterdir())
    finally:
        gc.enable()


def _long_frame_of_gecko() -> bytes:
    thread = {
        "samples": {"schema": {"stack": 0, "time": 1}, "data": [[0, 0.5]]},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[None, 0]]},
        "frameTable": {"schema": {"location": 0}, "data": [[0]]},
        "stringTable": [" (" * 15_000],
    }
    return json.dumps({"meta": {"version": 24, "interval": 1, "stackwalk": 1}, "threads": [thread]}).encode()


def _long_statement_of_sqlite() -> bytes:
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT" + "\n" * 30_000 + ")")
        return bytes(base.serialize())


def _long_metric_of_nsys() -> bytes:
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, metricId INTEGER, metricName TEXT)")
        base.execute("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (1, 2, ?)", ("[" * 60_000,))
        base.execute("CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER)")
        base.execute("INSERT INTO GPU_METRICS VALUES (5, 1, 2, 7)")
        base.commit()
        return bytes(base.serialize())


LONG: dict[str, Callable[[], bytes]] = {
    "firefox": _long_frame_of_gecko,
    "tau, a row": lambda: (
        (test_tau.tau() + '" 1 1 1 1 1 GROUP="' * 12_000 + "x\n").replace("0 temp", "9 temp").encode()
    ),
    "tau, a name": lambda: test_tau.tau("a" + " " * 150_000 + "b|1|1|1|1|G").encode(),
    "memray": lambda: (test_memray.TABLE + "MALLOC,1,1,1,a," + ";" * 60_000 + "\n").encode(),
    "key_averages": lambda: b"Name " + b"Self CPU CPU total " * 1_500,
    "perf": lambda: (test_converted_profiles.PERF + ("a" + " " * 1_000_000 + "b\n") * 4).encode(),
    "sqlite": _long_statement_of_sqlite,
    "nsys": _long_metric_of_nsys,
}


@pytest.mark.parametrize("made", LONG.values(), ids=LONG)
def test_a_text_that_many_expressions_are_slow_with_is_read_fast(tmp_path: Path, made: Callable[[], bytes]) -> None:
    begun = time.process_time()
    opened(tmp_path / "long", made())
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "table", [test_memray.TABLE, test_ascend.KERNELS, test_ncu.RAW], ids=["memray", "ascend", "ncu"]
)
@pytest.mark.parametrize("row", range(4))
def test_a_cell_that_is_too_long_is_left_out_or_refused(tmp_path: Path, table: str, row: int) -> None:
    lines = table.splitlines(keepends=True)
    lines[row] = lines[row].rstrip("\n") + ',"' + "x" * 140_000 + '"\n'
    opened(tmp_path / "t", "".join(lines).encode())


def _without_keys(path: Path, times: int) -> None:
    """Make the tables of a database anew without keys, with all rows as often."""
    with closing(sqlite3.connect(path)) as base:
        for (view,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            base.execute(f'DROP VIEW "{view}"')
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (table,) in base.execute(tables).fetchall():
            columns = [f'"{name}" {kind}' for _, name, kind, *_ in base.execute(f'PRAGMA table_info("{table}")')]
            rows = base.execute(f'SELECT * FROM "{table}"').fetchall()
            base.execute(f'DROP TABLE "{table}"')
            base.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
            base.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', rows * times)
        base.commit()
        base.execute("VACUUM")


def test_numbers_that_are_there_a_hundred_times_do_not_multiply(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    test_rocm.rocpd(path)
    _without_keys(path, 100)
    begun = time.process_time()
    trace = strobe.open(path)
    assert time.process_time() - begun < 6  # 14 s where each table had its own bound
    assert trace.span_count < path.stat().st_size
    assert quality(trace)["damaged_tables"] > 0


def test_texts_of_a_database_may_be_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    test_rocm.rocpd(path)
    with closing(sqlite3.connect(path)) as base:
        (table,) = base.execute("SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_info_agent_*'").fetchone()
        changed = base.execute(f"UPDATE \"{table}\" SET product_name = x'00ff' WHERE type_index = 0").rowcount
        base.commit()
    (entry,) = json.loads(json.dumps(strobe.open(path).job.imported))["files"]
    assert changed > 0
    assert len(entry["properties"]["agents"]) == len(test_rocm.AGENTS) - changed
