"""No record of a file is lost in silence: each was taken, left out for a reason, or is of a kind that nobody knows.

Counted again here, by the few lines that each format needs, and compared with the quality table.
"""

import cProfile
import json
import pickle
import pstats
import sqlite3
import struct
import tarfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.cli.main import main
from strobe.model.losses import LEFT_OUT, LOSSES, NOT_READ, UNKNOWN
from strobe.model.units import format_count
from strobe.present.summary import summarise
from tests.formats import test_ncu, test_nvprof, test_rocm
from tests.formats.sources import READERS, counted, differences, events_of, fields, format_of, parts, records, sums
from tests.formats.test_chrome import span, write
from tests.formats.test_converted_profiles import JFR, PERF
from tests.formats.test_profiles import message, pprof
from tests.formats.test_profiles_cube import cubex
from tests.formats.test_sampled_profiles import firefox, ruby, v8
from tests.formats.test_tau import FLAT, tau
from tests.public import BYTES, KINETO

_WITHOUT_MEANING = ("process_sort_index", "thread_sort_index", "process_labels")


def of_kinds(trace: strobe.Trace, prefix: str) -> dict[str, int]:
    return {what.removeprefix(prefix): n for what, n in counted(trace).items() if what.startswith(prefix)}


def check(trace: strobe.Trace, number: int) -> None:
    assert sum(records(trace)) == number
    summary = summarise(trace)
    total = counted(trace)
    assert summary.quality.complete == (not any(total[what] for what in LOSSES))
    assert summary.quality.records.startswith(f"{format_count(number)} record")


# Chrome's JSON


@pytest.mark.parametrize("name", KINETO)
def test_every_event_of_kineto_is_accounted_for(public_folder: Path, name: str) -> None:
    trace = strobe.open(public_folder / name)
    events = events_of(public_folder / name)
    check(trace, len(events))
    names = Counter(event["name"] for event in events if event["ph"] == "M")
    assert of_kinds(trace, LEFT_OUT) == {kind: names[kind] for kind in _WITHOUT_MEANING if names[kind]}
    assert records(trace)[1] == sum(names[kind] for kind in _WITHOUT_MEANING)
    assert of_kinds(trace, UNKNOWN) == {}
    # Python functions are named differently: by file and line.
    spans = [event for event in events if event["ph"] == "X" and event.get("cat") != "python_function"]
    assert sums(
        (str(row[0]), int(str(row[1])))
        for row in trace.sql("select name, duration_ns from spans where paradigm <> 'python'").rows()
    ) == sums((str(event["name"]), round(Decimal(event["dur"]) * 1000)) for event in spans)
    flows = Counter(event["ph"] for event in events if event["ph"] in "stf")
    assert Counter(trace.side_table("flows").texts("phase")) == flows


def test_a_kind_that_nobody_knows_is_named_with_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        span("a", 0, 1),
        {"ph": "M", "name": "process_sort_index", "pid": 7, "args": {"sort_index": 1}},
        *({"ph": "Q", "name": "new", "pid": 7, "tid": 1, "ts": 1} for _ in range(3)),
        {"ph": "N", "name": "object", "pid": 7, "tid": 1, "ts": 1, "id": 1},
        {"ph": "M", "name": "clock_drift", "pid": 7, "args": {}},
        {"ph": "X", "name": "without a time", "pid": 7, "tid": 1},
        {"ph": "E", "name": "of nothing", "pid": 7, "tid": 1, "ts": 5},
        {"ph": "C", "name": "counter", "pid": 7, "ts": 1, "args": {"value": "much"}},
        "no event",
    ]
    path = write(tmp_path / "t.json", events)
    trace = strobe.open(path)
    check(trace, len(events))
    assert records(trace) == (1, 6, 4)
    assert of_kinds(trace, UNKNOWN) == {"phase Q": 3, "metadata clock_drift": 1}
    assert of_kinds(trace, LEFT_OUT) == {"process_sort_index": 1, "phase N": 1, "counter without a number": 1}
    words = {str(row["what"]): row["text"] for row in trace.quality.to_pylist()}
    assert words["unknown: phase Q"] == "3 records of an unknown kind: phase Q"
    assert not summarise(trace).quality.complete
    assert main(["summary", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "11 records, 6 left out (counter without a number, phase N, process_sort_index)" in shown
    assert "4 of unknown kinds (phase Q, metadata clock_drift)" in shown


def test_what_only_arranges_rows_does_not_make_a_file_incomplete(tmp_path: Path) -> None:
    events = [span("a", 0, 1), {"ph": "M", "name": "process_sort_index", "pid": 7, "args": {"sort_index": 1}}]
    quality = summarise(strobe.open(write(tmp_path / "t.json", events))).quality
    assert quality.complete
    assert quality.records == "2 records, 1 left out (process_sort_index)"


def test_kinds_beyond_number_take_no_memory(tmp_path: Path) -> None:
    events = [span("a", 0, 1), *({"ph": "M", "name": f"kind {i}", "pid": 7} for i in range(1000))]
    trace = strobe.open(write(tmp_path / "t.json", events))
    check(trace, len(events))
    kinds = of_kinds(trace, UNKNOWN)
    assert sum(kinds.values()) == 1000
    assert len(kinds) < 70


def test_spans_that_found_no_lane_are_left_out(tmp_path: Path) -> None:
    # Each begins inside of all before it and ends after them.
    trace = strobe.open(write(tmp_path / "t.json", [span(f"s{i}", i, 5000) for i in range(1030)]))
    check(trace, 1030)
    assert records(trace) == (trace.span_count, counted(trace)["spans_not_kept"], 0)
    assert counted(trace)["spans_not_kept"] == 1030 - 1024


# Databases


@pytest.mark.parametrize("name", [name for name in BYTES if name.endswith((".sqlite", ".nvvp"))])
def test_every_row_with_a_time_is_accounted_for(public_folder: Path, name: str) -> None:
    path = public_folder / name
    trace = strobe.open(path)
    database = sqlite3.connect(path)
    tables = [table for (table,) in database.execute("select name from sqlite_master where type = 'table'")]
    number = 0
    for table in tables:
        columns = {column[1] for column in database.execute(f'pragma table_info("{table}")')}
        if columns & {"start", "timestamp"}:
            number += database.execute(f'select count(*) from "{table}"').fetchone()[0]
    check(trace, number)
    assert records(trace)[1:] == (0, 0)
    if "CUPTI_ACTIVITY_KIND_KERNEL" in tables and "StringIds" in tables:
        kernels = database.execute(
            "select value, end - start from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = demangledName"
        )
        assert sums(
            (str(row[0]), int(str(row[1])))
            for row in trace.sql("select name, duration_ns from spans where role = 'kernel'").rows()
        ) == sums(iter(kernels.fetchall()))


def test_a_table_that_nobody_knows_is_kept_and_named(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    database = sqlite3.connect(path)
    database.execute("create table StringIds (id integer primary key, value text)")
    database.execute("create table QUANTUM_EVENTS (start integer, end integer, qubit integer)")
    database.execute("create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, nameId integer)")
    database.executemany("insert into QUANTUM_EVENTS values (?, ?, 5)", [(10, 20), (None, 30), (40, 50)])
    database.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1, 2, 3)")
    database.commit()
    database.close()
    trace = strobe.open(path)
    check(trace, 4)
    assert records(trace) == (1, 1, 2)
    assert of_kinds(trace, UNKNOWN) == {"QUANTUM_EVENTS": 2}
    assert of_kinds(trace, LEFT_OUT) == {"QUANTUM_EVENTS": 1}
    assert trace.span_count == 3


def test_columns_that_nobody_reads_are_named_once(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    database = sqlite3.connect(path)
    database.executescript("""
        create table StringIds (id integer primary key, value text);
        create table ENUM_KIND (id integer primary key, name text, label text);
        insert into ENUM_KIND values (1, 'one', 'One');
        create table GPU_METRICS (timestamp integer, rawTimestamp integer, typeId integer, metricId integer,
            value integer, empty integer);
        insert into GPU_METRICS values (10, 7, 1, 2, 50, null), (20, 8, 1, 2, 60, null);
        create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, nameId integer, unheardOf integer);
        insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1, 2, 3, 4);
    """)
    database.close()
    trace = strobe.open(path)
    check(trace, 3)
    assert of_kinds(trace, NOT_READ) == {"GPU_METRICS.rawTimestamp": 1}
    words = {str(row["what"]): row["text"] for row in trace.quality.to_pylist()}
    assert words[NOT_READ + "GPU_METRICS.rawTimestamp"] == "column not read: GPU_METRICS.rawTimestamp"
    # Unknown columns of known tables are arguments.
    assert trace.sql("select value from arguments where key = 'unheardOf'").rows() == [("4",)]


# Protobuf


@pytest.mark.parametrize("name", [name for name in BYTES if name.endswith(".xplane.pb")])
def test_every_event_of_xplane_is_accounted_for(public_folder: Path, name: str) -> None:
    planes = parts((public_folder / name).read_bytes(), 1)
    events = [event for plane in planes for line in parts(plane, 3) for event in parts(line, 4)]
    trace = strobe.open(public_folder / name)
    check(trace, len(events))
    summed_up = sum(any(field == 5 for field, _ in fields(event)) for event in events)
    assert trace.span_count == len(events) - summed_up


@pytest.mark.parametrize("name", ["kineto/alexnet_critical_path.json.gz", "kineto/simple_add_critical_path.json.gz"])
def test_every_packet_of_perfetto_is_accounted_for(public_folder: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.pftrace"
    assert main(["export", str(public_folder / name), "--to", "perfetto", "-o", str(path)]) == 0
    trace = strobe.open(path)
    check(trace, len(parts(path.read_bytes(), 1)))
    assert records(trace)[1:] == (0, 0)


def test_packets_of_other_kinds_are_named_by_their_field(public_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    source = public_folder / "kineto/simple_add_critical_path.json.gz"
    assert main(["export", str(source), "--to", "perfetto", "-o", str(path)]) == 0
    packet = b"\x9a\x07\x02\x08\x01"  # field 115, two bytes
    trace_config = b"\x8a\x02\x02\x08\x01"  # field 33
    with path.open("ab") as out:
        out.write((b"\n\x05" + packet) * 2 + b"\n\x05" + trace_config)
    trace = strobe.open(path)
    check(trace, len(parts(path.read_bytes(), 1)))
    assert of_kinds(trace, UNKNOWN) == {"packets of field 115": 2}
    assert of_kinds(trace, LEFT_OUT) == {"trace_config": 1}


# OTF2


@pytest.mark.parametrize("name", ["otf2/ping-pong-otf2", "otf2/ping-pong-otf2-papi"])
def test_every_event_of_otf2_is_accounted_for(public_folder: Path, name: str) -> None:
    pytest.importorskip(
        "otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)"
    )
    from tests.formats.otf2_archives import oracle

    anchor = public_folder / name / "traces.otf2"
    trace = strobe.open(anchor)
    told = oracle(anchor)
    check(trace, told.events)
    assert records(trace)[1:] == (0, 0)
    assert sums(
        (str(row[0]), int(str(row[1]))) for row in trace.sql("select name, duration_ns from spans").rows()
    ) == sums((region, duration_ns) for _, region, _, duration_ns in told.spans)


# Profiles


def test_every_line_of_collapsed_stacks_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("# a comment\na;b 3\na;c 4\n\n17\na;b 5\nno number\na 1\na;d 2\na;e 2\na;f 2\na;g 2\na;h 1\n")
    trace = strobe.open(path)
    check(trace, sum(bool(line) and not line.startswith("#") for line in path.read_text().splitlines()))
    assert records(trace) == (9, 2, 0)


def test_every_sample_and_event_of_speedscope_is_accounted_for(tmp_path: Path) -> None:
    opened = [
        {"type": "O", "at": 0, "frame": 0},
        {"type": "O", "at": 1, "frame": 1},
        {"type": "C", "at": 2, "frame": 1},
    ]
    broken = [{"type": "C", "at": 2, "frame": 1}, {"type": "O", "at": "soon", "frame": 1}, 5]
    profiles = [
        {"type": "evented", "unit": "milliseconds", "events": [*opened, *broken, {"type": "C", "at": 3, "frame": 0}]},
        {"type": "evented", "unit": "bytes", "events": [*opened, *broken, {"type": "C", "at": 3, "frame": 0}]},
        {
            "type": "sampled",
            "unit": "none",
            "samples": [[0], [0, 1], [], [0, "x"], ["x"], 7],
            "weights": [1, 2, 3, 4, 5],
        },
    ]
    body = {"shared": {"frames": [{"name": "a"}, {"name": "b"}]}, "profiles": profiles}
    path = tmp_path / "t.speedscope.json"
    path.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", **body}))
    trace = strobe.open(path)
    check(trace, 7 + 7 + 6)
    assert records(trace) == (4 + 4 + 3, 3 + 3 + 3, 0)


def test_every_sample_of_pprof_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "t.pb"
    short = message((2, message((2, 5))))  # one value of two
    path.write_bytes(pprof() + short)
    trace = strobe.open(path)
    check(trace, len(parts(path.read_bytes(), 2)))
    assert counted(trace)["samples_not_understood"] == 1


def test_every_function_and_caller_of_cprofile_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "t.prof"
    profile = cProfile.Profile()
    profile.runcall(json.dumps, {"a": [1, {"b": 2}]}, indent=1)
    profile.dump_stats(path)
    stats: Any = pstats.Stats(str(path))
    check(strobe.open(path), sum(1 + len(callers) for *_, callers in stats.stats.values()))


def test_every_line_of_line_profiler_is_accounted_for(tmp_path: Path) -> None:
    timings = {("a.py", 1, "a"): [(1, 2, 3), (2, 2, 5), (3, "x", 1)], ("a.py", 9, "b"): [(9, 1, 1)]}
    state = pickle.dumps({"timings": timings, "unit": 1e-9}, protocol=2)
    path = tmp_path / "t.lprof"
    path.write_bytes(b"\x80\x02cline_profiler.line_profiler\nLineStats\n)\x81" + state[2:-1] + b"b.")
    trace = strobe.open(path)
    check(trace, 4)
    assert records(trace) == (3, 1, 0)


@pytest.mark.parametrize("name", ["callgrind.out", "callgrind_parts.out", "cachegrind.out"])
def test_every_line_of_callgrind_is_accounted_for(name: str) -> None:
    path = Path(__file__).parents[1] / "samples/callgrind" / name
    lines = [line.strip() for line in path.read_bytes().split(b"\n")]
    check(strobe.open(path), sum(bool(line) and not line.startswith(b"#") for line in lines))


def test_every_cell_of_cube_is_accounted_for(tmp_path: Path) -> None:
    path = cubex(tmp_path / "t.cubex", packed=False)
    cells = 0
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.endswith(".index"):
                content = archive.extractfile(member)
                assert content is not None
                cells += struct.unpack_from("<I", content.read(), 18)[0]  # rows, of one cell a location
    trace = strobe.open(path)
    check(trace, sum(records(trace)))
    assert records(trace)[0] == cells * len(trace.locations)
    assert counted(trace)["records_left_out"] == counted(trace)["metrics_not_kept"]


@pytest.mark.parametrize("name", [name for name in BYTES if name.startswith("nvprof/") and "." in name[-4:]])
def test_every_row_that_nvprof_printed_is_accounted_for(public_folder: Path, name: str) -> None:
    path = public_folder / name
    if not name.endswith((".csv", ".txt")):
        pytest.skip("a database")
    # Rows begin with a time, behind the head of their table; the units of a CSV are words.
    rows = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()[:1].isdigit()]
    trace = strobe.open(path)
    check(trace, len(rows))
    assert records(trace)[1:] == (0, 0)


# What perf wrote before 3.10, and simpleperf: nameless frames, tabs, no empty line at the end.
OLD_PERF = """\
glxgears  1326 48625.215946: cycles:
\tffffffff81071f61 do_raw_spin_lock ([kernel.kallsyms])
\t    7f4198ace577  ()

glxgears  1326 48625.215948: cycles:
\tffffffff81071f61 do_raw_spin_lock ([kernel.kallsyms])
\t    7f4198ace577  ()

glxgears  1326 48625.215950: cycles:

"""
SIMPLEPERF = """\
Gecko\t25122 [007] 115539.936601:\t\t1000000 task-clock:u:
        b3cea6c4\tLock::unlock() (/system/lib/libc.so)
        b3cea535\tshould_trace() (/system/lib/libc.so)

Gecko\t25122 [007] 115539.937601:\t\t1000000 task-clock:u:
        b3cea6c4\tLock::unlock() (/system/lib/libc.so)
        b3cea535\tshould_trace() (/system/lib/libc.so)
"""
MARKERS = {"length": 2, "name": [0, 1], "startTime": [0, 1], "data": [None, None]}
# A thread of Firefox before 49 that is the profile of another process, as text.
NESTED = json.dumps({"meta": {"interval": 0.5}, "threads": firefox({"stack": [2, 2]}, 48)["threads"]})


def threads(*more: object) -> dict[str, Any]:
    body: dict[str, Any] = firefox({"stack": [0, 2, None, 2]}, 48)
    (thread,) = body["threads"]
    return body | {"threads": [thread | {"markers": MARKERS, "jsAllocations": {"time": [1, 2, 3]}}, *more]}


FILES: dict[str, tuple[str, object, int]] = {
    "perf": ("x.txt", PERF + PERF, 10),
    "perf of 2011": ("x.txt", OLD_PERF, 3),
    "perf of Android": ("x.txt", SIMPLEPERF, 2),
    "firefox": ("x.json", threads(NESTED), 4 + 2 + 3 + 2),
    "cpuprofile": ("x.cpuprofile", v8(), 6),
    "stackprof": ("x.json", ruby(), 6),
    "stackprof without raw samples": ("x.json", {key: cell for key, cell in ruby().items() if key[:3] != "raw"}, 3),
    "jfr": ("x.json", {"recording": {"events": JFR}}, 7),
    "tau": ("profile.0.0.0", tau(*FLAT), 5),
    "ncu": ("x.csv", test_ncu.RAW, 3),
    "ncu details": ("x.csv", test_ncu.DETAILS, 3),
    "nvprof_text": ("x.txt", test_nvprof.TOP_DOWN, 6),
}


@pytest.mark.parametrize("name", FILES)
def test_a_profile_is_what_a_few_plain_lines_find_in_it(tmp_path: Path, name: str) -> None:
    title, body, number = FILES[name]
    path = tmp_path / title
    path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    trace = strobe.open(path)
    source = READERS[format_of(trace)](path)
    assert source.records == number
    assert differences(trace, source) == []


def test_tables_that_are_derived_from_those_of_a_file_take_their_rows(tmp_path: Path) -> None:
    path = test_rocm.as_json(tmp_path / "x_results.json")
    trace = strobe.open(path)
    assert differences(trace, READERS["rocm"](path)) == []
    assert records(trace)[1:] == (0, 0)
