"""What is broken in files of other tools is counted, said in words, and kept where it is sound: in every format."""

import cProfile
import json
import pickle
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import FormatError
from strobe.model.losses import LOSSES, REMARKS
from strobe.present.summary import summarise
from tests.formats import (
    test_ascend,
    test_converted_profiles,
    test_memray,
    test_nsys,
    test_profiles,
    test_pytorch_files,
    test_rocm,
    test_sampled_profiles,
    test_tau,
    test_xplane,
)
from tests.formats.test_chrome import quality, span, write
from tests.public import exact_sums

BREAKAGE = (
    "orphan_kernels",
    "orphan_copies",
    "orphan_launches",
    "overlaps_on_streams",
    "missing_steps",
    "duplicate_correlation_ids",
    "duplicate_operator_ids",
    "duplicate_flow_ids",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def breakage(trace: strobe.Trace) -> dict[str, int]:
    return {what: n for what, n in quality(trace).items() if what in BREAKAGE}


def call(name: str, ts: int, dur: int, correlation: int, tid: int = 1, **more: object) -> dict[str, object]:
    return span(name, ts, dur, tid, cat="cuda_runtime", args={"correlation": correlation, **more})


def kernel(name: str, ts: int, dur: int, correlation: int, stream: int = 20, **more: object) -> dict[str, object]:
    args = {"correlation": correlation, "device": 0, "stream": stream, **more}
    return {**span(name, ts, dur, stream, cat="kernel", args=args), "pid": 0}


def copy(ts: int, dur: int, correlation: int, stream: int = 20) -> dict[str, object]:
    args = {"correlation": correlation, "device": 0, "stream": stream, "bytes": 8}
    return {**span("Memcpy HtoD", ts, dur, stream, cat="gpu_memcpy", args=args), "pid": 0}


# --- what lacks its other end, and numbers that two have -------------------------------------------------------------


def test_launches_and_kernels_without_each_other(tmp_path: Path) -> None:
    events = [
        call("cudaLaunchKernel", 0, 1, 1),
        kernel("sound", 5, 1, 1),
        kernel("orphan", 7, 1, 2),
        kernel("of a torn graph", 9, 1, 3),
        kernel("of a torn graph", 11, 1, 3),
        copy(13, 1, 4),
        call("cudaLaunchKernel", 20, 1, 5),
        call("cudaMemsetAsync", 22, 1, 6),  # of no bytes, perhaps: nothing says that it started anything
        call("cudaLaunchHostFunc", 24, 1, 7),
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert breakage(trace) == {"orphan_kernels": 3, "orphan_copies": 1, "orphan_launches": 1}
    assert trace.span_count == len(events)
    assert trace.sql("select count(*) from links where kind = 'launch'").rows() == [(1,)]


def test_what_was_never_recorded_is_not_missing(tmp_path: Path) -> None:
    calls = [call("cudaLaunchKernel", 10 * i, 1, 1 + i) for i in range(3)]
    kernels = [kernel("k", 10 * i, 1, 1 + i) for i in range(3)]
    assert breakage(strobe.open(write(tmp_path / "calls.json", calls))) == {}
    assert breakage(strobe.open(write(tmp_path / "kernels.json", kernels))) == {}


def test_what_is_captured_into_a_graph_does_not_run(tmp_path: Path) -> None:
    events = [
        call("cudaStreamBeginCapture", 0, 1, 1),
        call("cudaLaunchKernel", 2, 1, 2),
        call("cudaLaunchKernel", 3, 1, 3, tid=2),  # a backward pass has a thread of its own
        call("cudaStreamEndCapture", 5, 1, 4),
        call("cudaLaunchKernel", 7, 1, 5),
        call("cudaGraphLaunch", 9, 1, 6),
        kernel("a", 20, 1, 6),
        kernel("b", 22, 1, 6),
    ]
    assert breakage(strobe.open(write(tmp_path / "t.json", events))) == {"orphan_launches": 1}


def test_one_number_of_two_launches_or_of_two_kernels(tmp_path: Path) -> None:
    events = [
        call("cudaLaunchKernel", 0, 5, 1),
        call("cuLaunchKernel", 1, 2, 1),  # the driver's call inside of the runtime's has the same
        kernel("once", 6, 1, 1),
        call("cudaLaunchKernel", 10, 1, 2),
        call("cudaLaunchKernel", 12, 1, 2),
        kernel("of which one", 14, 1, 2),
        call("cudaLaunchKernel", 20, 1, 3),
        kernel("first", 22, 1, 3),
        kernel("second", 24, 1, 3),
        call("cudaLaunchKernel", 30, 1, 4),
        kernel("node", 32, 1, 4, **{"graph id": 7}),
        kernel("other node", 34, 1, 4, **{"graph id": 7}),
    ]
    assert breakage(strobe.open(write(tmp_path / "t.json", events))) == {"duplicate_correlation_ids": 2}


def test_operators_and_flows_with_one_number(tmp_path: Path) -> None:
    def flow(phase: str, ts: int, number: int, category: str) -> dict[str, object]:
        return {"ph": phase, "id": number, "cat": category, "name": category, "ts": ts, "pid": 7, "tid": 1}

    events = [
        span("aten::mm", 0, 5, cat="cpu_op", args={"External id": 1}),
        span("aten::add", 6, 5, cat="cpu_op", args={"External id": 2}),
        span("aten::mul", 12, 5, cat="cpu_op", args={"External id": 2}),
        span("mine", 18, 5, cat="user_annotation", args={"External id": 2}),  # they have numbers of their own
        flow("s", 1, 1, "ac2g"),
        flow("f", 2, 1, "ac2g"),
        flow("s", 3, 1, "fwdbwd"),
        flow("s", 4, 2, "ac2g"),
        flow("s", 5, 2, "ac2g"),
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert breakage(trace) == {"duplicate_operator_ids": 1, "duplicate_flow_ids": 1}
    assert len(trace.side_table("flows")) == 5


def test_definitions_with_one_number(tmp_path: Path) -> None:
    # Appended messages of protobuf are read as one; the texts of the second are those behind the first's.
    (tmp_path / "t.pb").write_bytes(test_profiles.pprof() * 2)
    assert quality(strobe.open(tmp_path / "t.pb"))["duplicate_definition_ids"] == 3 + 4  # functions and locations


def test_definitions_of_an_archive_with_one_number(tmp_path: Path) -> None:
    anchor = of_otf2(tmp_path / "archive")
    assert "duplicate_definition_ids" not in quality(strobe.open(anchor))
    path = anchor.with_suffix(".def")
    data = bytearray(path.read_bytes())
    one, other = (data.index(name + b"\0") - 1 for name in (NAME.encode(), b"MPI_COMM_WORLD"))
    data[other] = data[one]  # the number of a text comes before it
    path.write_bytes(data)
    assert quality(strobe.open(anchor))["duplicate_definition_ids"] == 1


def test_far_more_numbers_than_are_compared_are_counted(tmp_path: Path) -> None:
    # A page of states holds 64 neighbours, and there are 2^18 pages: numbers that lie apart fill them.
    pages, more = 1 << 18, 5
    lines = (f'{{"ph":"s","id":{1000 * i},"cat":"c","name":"n","ts":1,"pid":1,"tid":1}}' for i in range(pages + more))
    path = tmp_path / "t.json"
    path.write_text('[{"ph":"X","name":"a","ts":0,"dur":2,"pid":1,"tid":1},' + ",".join(lines) + "]")
    assert quality(strobe.open(path))["ids_not_compared"] == more


# --- overlaps, steps -------------------------------------------------------------------------------------------------


def test_work_that_overlaps_on_one_stream(tmp_path: Path) -> None:
    events = [
        span("host", 0, 10),
        span("also host", 5, 10),
        kernel("a", 0, 10, 1),
        kernel("inside", 2, 3, 2),
        copy(8, 4, 3),
        kernel("next", 12, 1, 4),
        kernel("elsewhere", 0, 100, 5, stream=21),
    ]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert breakage(trace) == {"overlaps_on_streams": 2}
    assert quality(trace)["overlapping_spans"] == 2  # the copy, and what the host did
    assert sum(int(str(row[0])) for row in trace.sql("select duration_ns from spans").rows()) == 138_000


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ([f"ProfilerStep#{i}" for i in (3, 4, 7)], 2),
        ([f"ProfilerStep#{i}" for i in (9, 7)], 1),
        ([f"iteration {i}" for i in (0, 10, 20, 50)], 2),  # every tenth is marked
        ([f"Step: {i}" for i in (1, 2, 3, 1, 2, 4)], 0),
        ([f"layer {i}" for i in (1, 5, 6)], 0),
    ],
)
def test_steps_that_numbers_leave_out(tmp_path: Path, names: list[str], missing: int) -> None:
    events = [span(name, 10 * i, 10, cat="user_annotation") for i, name in enumerate(names)]
    trace = strobe.open(write(tmp_path / "t.json", events))
    assert breakage(trace).get("missing_steps", 0) == missing


# --- real files against plain counts ---------------------------------------------------------------------------------


def overlaps(rows: list[tuple[object, ...]]) -> int:
    found, until = 0, dict[object, int]()
    for stream, start, end in sorted(
        ((str(s), int(str(b)), int(str(e))) for s, b, e in rows), key=lambda r: (*r[:2], -r[2])
    ):
        found += start < until.get(stream, start)
        until[stream] = max(end, until.get(stream, end))
    return found


@pytest.mark.parametrize("name", ["diff_test", "ns_resolution"])
def test_a_real_profile_has_the_breakage_that_its_events_have(public_folder: Path, name: str) -> None:
    expected = exact_sums(f"kineto/{name}.json.gz")
    trace = strobe.open(public_folder / expected["file"])
    work = trace.sql(
        "select regexp_replace(thread, ' .lane.*', ''), start_ns, start_ns + duration_ns from spans "
        "where role in ('kernel', 'copy')"
    ).rows()
    without_call = trace.sql(
        "select count(*) from copy_spans where correlation not in (select correlation from call_spans)"
    )
    found = breakage(trace)
    assert found.get("orphan_kernels", 0) == int(expected["kernels_without_runtime"])
    assert found.get("orphan_copies", 0) == without_call.rows()[0][0]
    assert found.get("overlaps_on_streams", 0) == overlaps(work)
    assert not {*found} & {"missing_steps", "duplicate_flow_ids", "duplicate_operator_ids", "orphan_launches"}


def test_a_database_without_some_rows_lacks_what_plain_sql_says(public_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "torn.sqlite"
    shutil.copyfile(public_folder / "nsys" / "perlmutter-cloverleaf-cuda.sqlite", path)
    path.chmod(0o600)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId % 7 = 0")
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId % 5 = 0")
        database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" + 50000000 WHERE correlationId % 11 = 0')

        def count(query: str) -> int:
            return int(database.execute(query).fetchone()[0])

        calls = "(SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME)"
        work = " UNION ALL ".join(
            f"SELECT correlationId, deviceId, contextId, streamId, start, end FROM CUPTI_ACTIVITY_KIND_{kind}"
            for kind in ("KERNEL", "MEMCPY")
        )
        expected = {
            "orphan_kernels": count(
                f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId NOT IN {calls}"
            ),
            "orphan_copies": count(
                f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE correlationId NOT IN {calls}"
            ),
            "orphan_launches": count(
                f"""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId
                    WHERE value LIKE '%Launch%' AND correlationId NOT IN (SELECT correlationId FROM ({work}))"""
            ),
            "overlaps_on_streams": count(
                f"""SELECT count(*) FROM (SELECT start, max(end) OVER (PARTITION BY deviceId, contextId, streamId
                    ORDER BY start, end DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy FROM ({work}))
                    WHERE start < busy"""
            ),
        }
    assert all(expected.values())
    assert breakage(strobe.open(path)) == expected


def test_calls_of_other_libraries_launch_nothing(tmp_path: Path) -> None:
    export = test_nsys.Export(tmp_path / "t.sqlite")
    export.table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        export.call("cudaLaunchKernel_v7000", 0, 5, correlationId=1),
        export.call("cudaLaunchKernel_v7000", 6, 9, correlationId=2, returnValue=700),
    )
    export.table("OSRT_API", export.call("poll", 0, 5, correlationId=3, eventClass=27))
    export.table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        export.kernel("k", 10, 20, correlationId=1),
        export.kernel("not of poll", 30, 40, correlationId=3),
    )
    assert breakage(export.open()) == {"orphan_kernels": 1}


# --- spans without an end ---------------------------------------------------------------------------------------------


def begin(name: str, ts: int, tid: int = 1) -> dict[str, object]:
    return {"ph": "B", "name": name, "ts": ts, "pid": 7, "tid": tid, "cat": "user_annotation"}


def unfinished(trace: strobe.Trace) -> list[tuple[object, ...]]:
    question = "select name, start_ns, duration_ns, complete, depth from spans order by thread_id, start_ns, depth"
    return trace.sql(question.replace("thread_id", "thread")).rows()


def of_a_killed_program(path: Path) -> strobe.Trace:
    events = [begin("ProfilerStep#3", 0), span("sound", 5, 10), begin("open", 20), begin("elsewhere", 30, tid=2)]
    return strobe.open(write(path, [*events, span("last", 25, 15)]))


def test_what_has_no_end_is_not_complete(tmp_path: Path) -> None:
    trace = of_a_killed_program(tmp_path / "t.json")
    assert unfinished(trace) == [
        ("ProfilerStep#3", 0, 40_000, False, 0),
        ("sound", 5_000, 10_000, True, 1),
        ("open", 20_000, 20_000, False, 1),
        ("last", 25_000, 15_000, True, 2),
        ("elsewhere", 30_000, 10_000, False, 0),
    ]
    assert (quality(trace)["spans_cut"], quality(trace)["steps_cut"]) == (3, 1)
    assert trace.locations.column("last_ns") == [40_000, 40_000]


@pytest.mark.parametrize("form", ["chrome", "perfetto"])
def test_exports_keep_what_has_no_end(tmp_path: Path, form: str) -> None:
    trace = of_a_killed_program(tmp_path / "t.json")
    assert main(["export", str(tmp_path / "t.json"), "--to", form, "-o", str(tmp_path / "again")]) == 0
    again = strobe.open(tmp_path / "again")
    assert unfinished(again) == unfinished(trace)
    assert quality(again)["spans_cut"] == 3
    part = trace.part(time_ns=(0, 28_000))
    part.export(tmp_path / "part", to=form)
    read = strobe.open(tmp_path / "part")
    assert unfinished(read) == unfinished(part)
    assert [row[3] for row in unfinished(read)] == [False, True, False, False]


def test_a_part_of_its_own_keeps_what_has_no_end(tmp_path: Path) -> None:
    part = of_a_killed_program(tmp_path / "t.json").part(time_ns=(0, 28_000))
    part.cut(tmp_path / "part.strobe")
    kept = strobe.open(tmp_path / "part.strobe")
    assert unfinished(kept) == unfinished(part)
    assert quality(kept)["spans_cut"] == 3


# --- AMD's devices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("device", "paradigm"), [("AMD Instinct MI300X", "hip"), ("NVIDIA H100", "cuda")])
def test_work_of_an_amd_device_is_of_hip(tmp_path: Path, device: str, paradigm: str) -> None:
    prefix = "hip" if paradigm == "hip" else "cuda"
    events = [call(f"{prefix}LaunchKernel", 0, 1, 1), kernel("k", 5, 1, 1), call(f"{prefix}LaunchKernel", 8, 1, 2)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": device}], "traceEvents": events}))
    trace = strobe.open(path)
    assert {*trace.regions.column("paradigm")} == {paradigm}
    assert breakage(trace) == {"orphan_launches": 1}
    trace.export(tmp_path / "again.json")
    assert {*strobe.open(tmp_path / "again.json").regions.column("paradigm")} == {paradigm}


# --- where it is said ------------------------------------------------------------------------------------------------


def test_every_place_says_it_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path / "t.json", [call("cudaLaunchKernel", 0, 1, 1), kernel("k", 5, 1, 1), kernel("orphan", 7, 1, 2)]
    )
    words = "1 kernels without their launch in the trace (kept, not linked)"
    trace = strobe.open(path)
    assert [row["text"] for row in trace.quality.to_pylist() if row["what"] == "orphan_kernels"] == [words]
    assert dict(trace.ask("info").rows())["lost"] == words
    assert words in summarise(trace).quality.losses
    assert main(["info", str(path)]) == 0
    assert words in capsys.readouterr().out


def test_a_part_of_a_trace_has_its_own(tmp_path: Path) -> None:
    events = [call("cudaLaunchKernel", 10 * i, 1, 1 + i) for i in range(4)]
    events += [kernel("k", 10 * i + 25, 1, 1 + i) for i in range(4)]
    path = write(tmp_path / "t.json", [*events, kernel("overlapping", 25, 3, 9)])
    whole = strobe.open(path)
    assert breakage(whole) == {"orphan_kernels": 1, "overlaps_on_streams": 1}
    assert main(["cut", str(path), "-o", str(tmp_path / "part.strobe"), "--time", "0us-30us"]) == 0
    part = strobe.open(tmp_path / "part.strobe")
    # Of the launches at 0, 10 and 20 us only the first has its kernel in the part; the overlap is the whole's.
    assert breakage(part) == {"orphan_kernels": 1, "orphan_launches": 2, "overlaps_on_streams": 1}


def test_every_counter_is_said_once() -> None:
    assert not {*LOSSES} & {*REMARKS}
    assert all(Counter(LOSSES.values())[words] == 1 for words in LOSSES.values())


# --- text that is none, files that end early -------------------------------------------------------------------------

NAME = "ordinary_name"


def of_chrome(path: Path) -> Path:
    return write(path, [span(NAME, 0, 10), span("b", 20, 10)])


def of_nsys(path: Path) -> Path:
    export = test_nsys.Export(path)
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel(NAME, 0, 10), export.kernel("b", 20, 30))
    export.database.commit()
    export.database.close()
    return path


def of_nvprof(path: Path) -> Path:
    head = '==1== NVPROF\n"Start","Duration","Grid X","Device","Context","Stream","Name"\nms,us,,,,,\n'
    path.write_text(head + f'1.0,2.0,1,"T",1,7,"{NAME}"\n5.0,2.0,1,"T",1,7,"b"\n')
    return path


def of_ncu(path: Path) -> Path:
    head = '"ID","Process ID","Kernel Name","Context","Stream","gpu__time_duration.sum"\n"","","","","","ns"\n'
    path.write_text(head + f'"0","1","{NAME}","1","7","20"\n"1","1","b","1","7","30"\n')
    return path


def of_otf2(path: Path) -> Path:
    archives = pytest.importorskip("tests.formats.otf2_archives")

    def fill(archive: object) -> None:
        writer = archive.writer  # type: ignore[attr-defined]
        region = writer.definitions.region(NAME)
        events = writer.event_writer_from_location(archive.threads[0])  # type: ignore[attr-defined]
        events.enter(10, region)
        events.leave(20, region)

    return Path(archives.write(path, fill, ranks=1))


def of_perfetto(path: Path) -> Path:
    writer = pytest.importorskip("tests.formats.test_perfetto").Writer()
    writer.track(1, "row")
    for ns in (0, 20):
        writer.event(1, 1, ns, NAME)
        writer.event(2, 1, ns + 10)
    return Path(writer.save(path))


def of_xplane(path: Path) -> Path:
    lines = [test_xplane.line(1, "thread", 0, test_xplane.event(1, 0, 10_000))]
    return test_xplane.space(test_xplane.plane("/host:CPU", lines, {1: NAME}, {}), path=path)


def of_collapsed(path: Path) -> Path:
    return test_profiles.text_file(path, f"main;{NAME} 4\nmain;b 3\n")


def of_speedscope(path: Path) -> Path:
    profile = {"type": "sampled", "name": "p", "unit": "none", "startValue": 0, "endValue": 1}
    text = test_profiles.scope({**profile, "samples": [[0]], "weights": [1]}, frames=1)
    return test_profiles.text_file(path, text.replace('"f0"', f'"{NAME}"'))


def of_pprof(path: Path) -> Path:
    texts = 6 << 3 | 2  # the tag of a text of the table
    renamed = bytes([texts, len(NAME)]) + NAME.encode()
    path.write_bytes(test_profiles.pprof().replace(bytes([texts, 5]) + b"solve", renamed))
    return path


def ordinary_name() -> None:
    pass


def of_pstats(path: Path) -> Path:
    profiler = cProfile.Profile()
    profiler.runcall(ordinary_name)
    profiler.dump_stats(path)
    return path


def of_callgrind(path: Path) -> Path:
    header = "# callgrind format\ncreator: callgrind-3.19.0\nevents: Ir\n"
    return test_profiles.text_file(path, f"{header}fn=(1) {NAME}\n1 20\nfn=(2) b\n5 7\n\ntotals: 27\n")


def of_line_profiler(path: Path) -> Path:
    stats = pytest.importorskip("line_profiler").line_profiler.LineStats({("f.py", 1, NAME): [(2, 3, 40)]}, 1e-9)
    path.write_bytes(pickle.dumps(stats, protocol=2))
    return path


def of_cpuprofile(path: Path) -> Path:
    return test_sampled_profiles.written(
        path, test_sampled_profiles.v8(nodes=[test_sampled_profiles.node(1, NAME)], samples=[1])
    )


def of_firefox(path: Path) -> Path:
    body = test_sampled_profiles.firefox({"stack": [0]}, 62)
    return test_profiles.text_file(path, json.dumps(body).replace('"main"', f'"{NAME}"'))


def of_perf(path: Path) -> Path:
    return test_profiles.text_file(path, test_converted_profiles.PERF.replace("main", NAME))


def of_pyinstrument(path: Path) -> Path:
    frame = test_sampled_profiles.instrument(NAME, 0.5)
    return test_sampled_profiles.written(path, {"start_time": 1, "duration": 1, "sample_count": 1, "root_frame": frame})


def of_jfr(path: Path) -> Path:
    samples = [test_converted_profiles.java("ExecutionSample", "main", f"a.{NAME}")] * 2
    return test_sampled_profiles.written(path, {"recording": {"events": samples}})


def of_stackprof(path: Path) -> Path:
    body = json.dumps(test_sampled_profiles.ruby())
    return test_profiles.text_file(path, body.replace("Array#map", NAME))


def of_tau(path: Path) -> Path:
    rows = (f"{NAME}|1|0|5|5|T", *test_tau.FLAT)
    return test_profiles.text_file(path, test_tau.tau(*rows).partition("0 aggregates")[0])


def of_rocm(path: Path) -> Path:
    path.write_bytes(
        test_rocm.as_json(path).read_bytes().replace(json.dumps(test_rocm.KERNEL).encode(), f'"{NAME}"'.encode())
    )
    return path


def of_execution_trace(path: Path) -> Path:
    nodes = [{"id": i, "name": NAME if i == 1 else f"b{i}", "ctrl_deps": 0, "attrs": []} for i in range(1, 9)]
    return test_profiles.text_file(path, json.dumps({"schema": "1.1.1", "pid": 5, "nodes": nodes}))


def of_key_averages(path: Path) -> Path:
    return test_profiles.text_file(path, test_pytorch_files.CUDA.replace("    aten::mm", NAME.rjust(12)))


def of_memray(path: Path) -> Path:
    return test_profiles.text_file(path, test_memray.TABLE.replace("spike", NAME))


def of_ascend(path: Path) -> Path:
    return test_profiles.text_file(path, test_ascend.KERNELS.replace("ArgMax,ArgMax", f"{NAME},ArgMax"))


FORMATS = (
    of_chrome,
    of_nsys,
    of_nvprof,
    of_ncu,
    of_otf2,
    of_perfetto,
    of_xplane,
    of_collapsed,
    of_speedscope,
    of_pprof,
    of_pstats,
    of_callgrind,
    of_line_profiler,
    of_cpuprofile,
    of_firefox,
    of_perf,
    of_pyinstrument,
    of_jfr,
    of_stackprof,
    of_tau,
    of_rocm,
    of_execution_trace,
    of_key_averages,
    of_memray,
    of_ascend,
)


# What is one value from begin to end has no part that is sound.
REFUSED_IF_TORN = (
    *(of_speedscope, of_pstats, of_line_profiler),
    *(of_cpuprofile, of_firefox, of_pyinstrument, of_stackprof, of_rocm, of_execution_trace),
)


@pytest.mark.parametrize("make", [each for each in FORMATS if each is not of_line_profiler])  # pickle knows only UTF-8
def test_names_that_are_no_text_are_counted_and_shown(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / "file")
    assert "texts_not_utf8" not in quality(strobe.open(path))
    shown = f"select count(*) from regions where name like '%y_name%' and name != '{NAME}'"
    for each in (path, *path.parent.rglob("*.def")):
        each.write_bytes(each.read_bytes().replace(NAME.encode(), b"\xff" + NAME.encode()[1:]))
    trace = strobe.open(path)
    assert quality(trace)["texts_not_utf8"] >= 1
    assert trace.sql(shown).rows() == [(1,)]


@pytest.mark.parametrize("make", FORMATS)
def test_a_file_that_ends_early_opens_with_a_count_or_is_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / "file")
    torn = next(path.parent.rglob("0.evt"), path)  # of an archive
    data = torn.read_bytes()
    torn.write_bytes(data[: len(data) - len(data) // 10 - 1])
    refused = make in REFUSED_IF_TORN
    with pytest.raises(FormatError) if refused else nullcontext():
        assert {*quality(strobe.open(path))} & {*LOSSES}
