"""Perfetto's protobuf: files written with the classes of the project's own package, and read with them."""

import json
import random
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api import imports
from strobe.errors import FormatError, TraceError
from strobe.formats import perfetto, xplane

pb: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
BOOT, MONOTONIC, REALTIME = 6, 3, 1


class Writer:
    """Packets of one sequence after the other."""

    def __init__(self) -> None:
        self.trace = pb.Trace()

    def packet(self, sequence: int = 1, **fields: object) -> Any:
        packet = self.trace.packet.add(trusted_packet_sequence_id=sequence)
        for name, value in fields.items():
            setattr(packet, name, value)
        return packet

    def process(self, uuid: int, pid: int, name: str = "") -> None:
        track = self.packet().track_descriptor
        track.uuid, track.process.pid, track.process.process_name = uuid, pid, name

    def thread(self, uuid: int, pid: int, tid: int, name: str = "") -> None:
        track = self.packet().track_descriptor
        track.uuid, track.thread.pid, track.thread.tid, track.thread.thread_name = uuid, pid, tid, name

    def track(self, uuid: int, name: str, parent: int = 0) -> Any:
        track = self.packet().track_descriptor
        track.uuid, track.name = uuid, name
        if parent:
            track.parent_uuid = parent
        return track

    def event(self, kind: int, track: int, ns: int, name: str = "", sequence: int = 1, **packet: object) -> Any:
        made = self.packet(sequence, timestamp=ns, **packet).track_event
        made.type, made.track_uuid = kind, track
        if name:
            made.name = name
        return made

    def save(self, path: Path) -> Path:
        path.write_bytes(self.trace.SerializeToString())
        return path


def spans_of(trace: strobe.Trace) -> list[tuple[object, ...]]:
    return trace.sql("select name, start_ns, duration_ns, depth, thread from spans order by start_ns, depth").rows()


def quality(trace: strobe.Trace) -> dict[str, int]:
    return {str(row["what"]): int(str(row["value"])) for row in trace.quality.to_pylist() if row["value"]}


def test_slices_of_threads_and_tracks(tmp_path: Path) -> None:
    w = Writer()
    w.process(1, 77, "server")
    w.thread(2, 77, 78, "worker")
    w.track(3, "requests", parent=1)
    w.event(BEGIN, 2, 1000, "outer").categories.append("net")
    w.event(BEGIN, 2, 1100, "inner")
    w.event(BEGIN, 3, 1150, "get")
    w.event(END, 2, 1200)
    w.event(END, 2, 1300)
    w.event(END, 3, 1350)
    trace = strobe.open(w.save(tmp_path / "t"))
    assert spans_of(trace) == [
        ("outer", 0, 300, 0, "worker"),
        ("inner", 100, 100, 1, "worker"),
        ("get", 150, 200, 0, "requests"),
    ]
    assert trace.processes.to_pylist()[0]["pid"] == 77
    assert trace.processes.to_pylist()[0]["argv"] == "server"
    rows = trace.sql("select name, kind, thread_id from locations order by name").rows()
    assert rows == [("requests", "task", 0), ("worker", "thread", 78)]
    assert trace.sql("select module from regions where name = 'outer'").rows() == [("net",)]


def test_interned_names_belong_to_a_sequence_and_end_with_its_state(tmp_path: Path) -> None:
    w = Writer()
    w.thread(2, 1, 2)
    for sequence, name in ((5, "five"), (6, "six")):
        first = w.packet(sequence, sequence_flags=1)
        first.interned_data.event_names.add(iid=1, name=name)
        first.interned_data.event_categories.add(iid=1, name=f"of {name}")
        first.interned_data.source_locations.add(iid=1, file_name=f"{name}.cc", line_number=sequence)
    for at, sequence in enumerate((5, 6)):
        made = w.event(BEGIN, 2, 100 * at, sequence=sequence, sequence_flags=2)
        made.name_iid, made.source_location_iid = 1, 1
        made.category_iids.append(1)
        w.event(END, 2, 100 * at + 50, sequence=sequence)
    anew = w.packet(5, sequence_flags=1)
    anew.interned_data.event_names.add(iid=1, name="other")
    w.event(BEGIN, 2, 300, sequence=5, sequence_flags=2).name_iid = 1
    w.event(END, 2, 350, sequence=5)
    w.packet(6, previous_packet_dropped=1)
    w.event(BEGIN, 2, 400, sequence=6, sequence_flags=2).name_iid = 1
    trace = strobe.open(w.save(tmp_path / "t"))
    assert [row[0] for row in spans_of(trace)] == ["five", "six", "other"]
    rows = trace.sql("select name, file, line, module from regions where line > 0 order by line").rows()
    assert rows == [("five", "five.cc", 5, "of five"), ("six", "six.cc", 6, "of six")]
    assert quality(trace)["packets_without_state"] == 1
    assert quality(trace)["packets_dropped"] == 1


def test_clocks_are_translated_by_snapshots(tmp_path: Path) -> None:
    w = Writer()
    w.thread(2, 1, 2)
    first = w.packet().clock_snapshot
    for clock, ns in ((BOOT, 10_000), (MONOTONIC, 4_000), (REALTIME, 1_700_000_000_000_000_000)):
        first.clocks.add(clock_id=clock, timestamp=ns)
    own = w.packet(9, sequence_flags=1)
    own.trace_packet_defaults.timestamp_clock_id = 64
    own.trace_packet_defaults.track_event_defaults.track_uuid = 2
    own.clock_snapshot.clocks.add(clock_id=64, timestamp=5, is_incremental=True, unit_multiplier_ns=1000)
    own.clock_snapshot.clocks.add(clock_id=BOOT, timestamp=20_000)
    w.event(BEGIN, 2, 10_500, "boot")
    w.event(END, 2, 4_700, timestamp_clock_id=MONOTONIC)  # 10 700
    for delta, kind in ((1, BEGIN), (2, END)):  # 21 000, 23 000
        made = w.packet(9, timestamp=delta, sequence_flags=2).track_event
        made.type = kind
        if kind == BEGIN:
            made.name = "incremental"
    w.event(BEGIN, 2, 5, "nowhere", timestamp_clock_id=70)
    later = w.packet().clock_snapshot  # MONOTONIC has drifted by 100 ns
    later.clocks.add(clock_id=BOOT, timestamp=30_000)
    later.clocks.add(clock_id=MONOTONIC, timestamp=24_100)
    w.event(BEGIN, 2, 24_200, "drifted", timestamp_clock_id=MONOTONIC)  # 30 100
    w.event(END, 2, 30_200)
    trace = strobe.open(w.save(tmp_path / "t"))
    assert [row[:3] for row in spans_of(trace)] == [
        ("boot", 0, 200),
        ("incremental", 10_500, 2_000),
        ("drifted", 19_600, 100),
    ]
    assert trace.info.started_unix_ns == 1_700_000_000_000_000_000 + 500
    assert quality(trace)["events_without_clock"] == 1


def test_annotations_are_arguments(tmp_path: Path) -> None:
    w = Writer()
    w.thread(2, 1, 2)
    state = w.packet(1, sequence_flags=1).interned_data
    state.debug_annotation_names.add(iid=4, name="interned")
    state.debug_annotation_string_values.add(iid=3, str=b'a "text"')
    begin = w.event(BEGIN, 2, 10, "f", sequence_flags=2)
    begin.debug_annotations.add(name_iid=4, string_value_iid=3)
    begin.debug_annotations.add(name="i", int_value=-5)
    begin.debug_annotations.add(name="u", uint_value=2**64 - 1)
    begin.debug_annotations.add(name="d", double_value=0.1)
    begin.debug_annotations.add(name="b", bool_value=True)
    begin.debug_annotations.add(name="json", legacy_json_value='{"x": [1]}')
    tree = begin.debug_annotations.add(name="tree")
    tree.dict_entries.add(name="k", string_value="v")
    inner = tree.dict_entries.add(name="list")
    inner.array_values.add(int_value=1)
    inner.array_values.add(string_value="two")
    w.event(END, 2, 20).debug_annotations.add(name="at the end", int_value=7)
    mark = w.event(INSTANT, 2, 15, "hello")
    mark.categories.append("note")
    mark.debug_annotations.add(name="why", string_value="é")
    trace = strobe.open(w.save(tmp_path / "t"))
    assert dict(trace.sql("select key, value from arguments").rows()) == {  # type: ignore[arg-type]
        "interned": '"a \\"text\\""',
        "i": "-5",
        "u": "18446744073709551615",
        "d": "0.1",
        "b": "true",
        "json": '{"x": [1]}',
        "tree": '{"k":"v","list":[1,"two"]}',
        "at the end": "7",
    }
    marks = trace.sql("select time_ns, name, category, arguments from marks").rows()
    assert marks == [(5, "hello", "note", '{"why":"é"}')]


def test_counters_and_flows(tmp_path: Path) -> None:
    w = Writer()
    w.process(1, 7)
    w.thread(2, 7, 8, "main")
    counter = w.track(3, "memory", parent=1)
    counter.counter.unit, counter.counter.unit_multiplier = 3, 1024
    counter = w.track(4, "cycles", parent=2)
    counter.counter.is_incremental, counter.counter.unit_name = True, "cycles"
    defaults = w.packet(1, sequence_flags=1).trace_packet_defaults.track_event_defaults
    defaults.extra_counter_track_uuids.append(4)
    w.event(COUNTER, 3, 10).counter_value = 2
    w.event(COUNTER, 3, 20).double_counter_value = 0.5
    begin = w.event(BEGIN, 2, 10, "f")
    begin.extra_counter_values.append(100)
    begin.flow_ids.append(99)
    w.event(END, 2, 20).extra_counter_values.append(50)
    w.event(INSTANT, 2, 15, "through").flow_ids.append(99)
    w.event(BEGIN, 2, 30, "g").terminating_flow_ids.append(99)
    w.event(END, 2, 40)
    trace = strobe.open(w.save(tmp_path / "t"))
    metrics = trace.sql("select metric, time_ns, value, unit, location from metrics order by metric, time_ns").rows()
    main = trace.sql("select location from locations where name = 'main'").rows()[0][0]
    assert metrics == [
        ("cycles", 0, 100.0, "cycles", main),
        ("cycles", 10, 150.0, "cycles", main),
        ("memory", 0, 2048.0, "bytes", None),
        ("memory", 10, 512.0, "bytes", None),
    ]
    flows = trace.sql("select time_ns, flow, phase, name from flows order by time_ns").rows()
    assert flows == [(0, 99, "s", "f"), (5, 99, "t", "through"), (20, 99, "f", "g")]


def test_what_is_not_paired_is_cut_and_counted(tmp_path: Path) -> None:
    w = Writer()
    w.thread(2, 7, 8)
    w.event(END, 2, 5)
    w.event(BEGIN, 2, 10, "a")
    w.event(BEGIN, 2, 20, "cut")
    w.event(BEGIN, 2, 25, "b")
    w.event(END, 2, 30)
    trace = strobe.open(w.save(tmp_path / "t"))
    assert [row[:3] for row in spans_of(trace)] == [("a", 0, 20), ("cut", 10, 10), ("b", 15, 5)]
    assert (quality(trace)["spans_cut"], quality(trace)["unmatched_leaves"]) == (2, 1)


def test_sequences_of_one_track_may_lie_in_any_order(tmp_path: Path) -> None:
    """A track that two threads write to: the packets of one may come before those of the other."""
    w = Writer()
    w.track(2, "shared")
    w.event(END, 2, 50, sequence=3)
    w.event(END, 2, 150, sequence=3)
    w.event(BEGIN, 2, 10, "first", sequence=4)
    w.event(BEGIN, 2, 110, "second", sequence=4)
    trace = strobe.open(w.save(tmp_path / "t"))
    assert [row[:3] for row in spans_of(trace)] == [("first", 0, 40), ("second", 100, 40)]
    assert "spans_cut" not in quality(trace)


def test_other_kinds_are_counted(tmp_path: Path) -> None:
    w = Writer()
    w.thread(2, 7, 8)
    w.event(BEGIN, 2, 10, "a")
    w.event(END, 2, 20)
    bundle = w.packet().ftrace_events
    bundle.compact_sched.switch_timestamp.extend([1, 2, 3])
    bundle.event.add(timestamp=4, pid=1)
    w.packet(timestamp=5).gpu_render_stage_event.duration = 7
    w.packet().trace_config.buffers.add(size_kb=1)
    tree = w.packet().process_tree
    tree.processes.add(pid=7, cmdline=["python", "train.py"])
    tree.threads.add(tid=8, tgid=7, name="from proc")
    trace = strobe.open(w.save(tmp_path / "t"))
    assert quality(trace)["events_of_other_kinds"] == 5
    assert trace.processes.to_pylist()[0]["argv"] == "python train.py"
    assert trace.locations.to_pylist()[0]["name"] == "from proc"


def test_compressed_packets_are_unpacked_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Writer()
    inner.thread(2, 7, 8)
    inner.event(BEGIN, 2, 10, "a" * 10_000)
    inner.event(END, 2, 20)
    w = Writer()
    w.packet().compressed_packets = zlib.compress(inner.trace.SerializeToString())
    trace = strobe.open(w.save(tmp_path / "t"))
    assert [row[:3] for row in spans_of(trace)] == [("a" * 10_000, 0, 10)]
    w.packet().compressed_packets = b"no zlib"
    nested = Writer()
    nested.packet().compressed_packets = zlib.compress(inner.trace.SerializeToString())
    w.packet().compressed_packets = zlib.compress(nested.trace.SerializeToString())
    trace = strobe.open(w.save(tmp_path / "u"))
    assert quality(trace)["unreadable_packets"] == 2
    monkeypatch.setattr(perfetto, "_MOST_UNPACKED", 5_000)
    trace = strobe.open(w.save(tmp_path / "v"))
    assert trace.span_count == 0


def test_events_of_old_writers(tmp_path: Path) -> None:
    w = Writer()
    described = w.packet(3, sequence_flags=1).thread_descriptor
    described.pid, described.tid, described.thread_name, described.reference_timestamp_us = 7, 8, "old", 1000
    complete = w.packet(3).track_event
    complete.timestamp_delta_us, complete.name = 5, "complete"
    complete.legacy_event.phase, complete.legacy_event.duration_us = ord("X"), 20
    begin = w.packet(3).track_event
    begin.timestamp_delta_us, begin.name, begin.legacy_event.phase = 1, "begin", ord("B")
    end = w.packet(3).track_event
    end.timestamp_absolute_us, end.legacy_event.phase = 1008, ord("E")
    other = w.packet(3).track_event
    other.timestamp_absolute_us, other.legacy_event.phase = 1008, ord("b")
    trace = strobe.open(w.save(tmp_path / "t"))
    assert spans_of(trace) == [("complete", 0, 20_000, 0, "old"), ("begin", 1_000, 2_000, 1, "old")]
    assert quality(trace)["events_of_other_kinds"] == 1


def example(count: int = 400) -> Writer:
    w = Writer()
    w.process(1, 7, "p")
    w.thread(2, 7, 8, "main")
    chance = random.Random(5)
    for i in range(count):
        made = w.event(BEGIN, 2, 1000 + 10 * i, f"f{chance.randrange(9)}")
        made.debug_annotations.add(name="i", int_value=i)
        w.event(END, 2, 1000 + 10 * i + chance.randrange(1, 9))
    return w


def test_pieces_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = example().save(tmp_path / "t")
    expected = spans_of(strobe.open(path))
    assert len(expected) == 400
    for size in (1, 7, 4096):
        monkeypatch.setattr("strobe.formats.reading.inputs._PIECE", size)
        monkeypatch.setattr(imports, "_BUFFER_BYTES", 1000)
        assert spans_of(strobe.open(shutil.copy(path, tmp_path / f"t{size}"))) == expected


def test_a_torn_or_damaged_file_opens_up_to_there(tmp_path: Path) -> None:
    whole = example().save(tmp_path / "t").read_bytes()
    path = tmp_path / "torn"
    path.write_bytes(whole[: len(whole) // 2])
    trace = strobe.open(path)
    assert 150 < trace.span_count < 250
    assert quality(trace)["truncated"] == 1
    path.write_bytes(whole + b"\xff" * 100)
    trace = strobe.open(path)
    assert trace.span_count == 400
    assert (quality(trace)["damaged"], quality(trace)["bytes_lost"]) == (1, 100)


def test_every_damage_is_survived(tmp_path: Path) -> None:
    whole = example(3).save(tmp_path / "t").read_bytes()
    opened = 0
    for at in range(len(whole)):
        path = tmp_path / "damaged"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            opened += strobe.open(path).span_count >= 0
        except TraceError:
            continue
    assert opened > len(whole) // 2


def test_only_packets_are_recognised(tmp_path: Path) -> None:
    good = example(3).trace.SerializeToString()
    assert perfetto.sniff(good)
    assert perfetto.sniff(good[:50])
    assert not xplane.sniff(good)
    for bad in (b"", b"\n", b"\nhello", b"\n\x05hello", b"{}", bytes(100), good[1:], json.dumps({"a": 1}).encode()):
        assert not perfetto.sniff(bad)
    chance = random.Random(1)
    assert not any(perfetto.sniff(b"\n" + chance.randbytes(200)) for _ in range(2000))
    path = tmp_path / "t"
    path.write_bytes(b"\n\x02\x40")
    with pytest.raises(FormatError):
        strobe.open(path)


# --- export ----------------------------------------------------------------------------------------------------------

TABLES = {
    "spans": "name, paradigm, role, file, line, module, thread, start_ns, duration_ns, depth",
    "locations": "name, thread_id, kind, device, span_count, first_ns, last_ns",
    "processes": "pid, argv, host, rank",
    "metrics": "metric, time_ns, value, unit",
    "marks": "time_ns, name, category, arguments",
    "flows": "time_ns, flow, flow_name, phase, name, category",
    "allocations": "time_ns, address, size_bytes, total_allocated_bytes, device_type",
    "arguments": "start_ns, thread, name, key, value",
    "kernel_spans": "start_ns, thread, correlation, stream, grid_x, block_z, queued_ns, occupancy_percent, priority",
    "copy_spans": "start_ns, thread, correlation, size_bytes, bandwidth_gb_s",
    "call_spans": "start_ns, thread, correlation, callback_id",
    "operator_spans": "start_ns, thread, external_id, sequence_number, shapes, types, concrete_inputs, call_stack",
    "python_spans": "start_ns, thread, python_id, python_parent_id",
    "collective_spans": "start_ns, thread, collective, dtype, group_ranks, sequence",
    "sync_spans": "start_ns, thread, sync_kind, wait_on_stream",
}


def contents(trace: strobe.Trace) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    for table, columns in TABLES.items():
        joined = "spans join regions using (region)" if table == "spans" else table
        named = columns.replace("name, paradigm, role,", "spans.name, spans.paradigm, spans.role,", table == "spans")
        where = " where span_count > 0" if table == "locations" else ""
        found[table] = trace.sql(f"select {named} from {joined}{where} order by all").rows()
    return found


def everything() -> list[dict[str, object]]:
    """Events of Chrome's format with all that a trace may hold."""
    base: dict[str, object] = {"pid": 7, "tid": 1}
    kernel = {"correlation": 5, "stream": 7, "device": 0, "grid": [4, 1, 1], "block": [8, 2, 1], "queued": 0}
    events: list[dict[str, object]] = [
        {**base, "ph": "X", "name": "outer", "cat": "cpu_op", "ts": 10, "dur": 50, "args": {"Input Dims": [[2, 3]]}},
        {**base, "ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": 12, "dur": 3, "args": kernel},
        {**base, "ph": "X", "name": "own é", "cat": "mine, of course", "ts": 20, "dur": 40, "args": {"x": [1, "y"]}},
        {**base, "ph": "X", "name": "own é", "cat": "mine, of course", "ts": 30, "dur": 45, "args": {"big": 2**70}},
        {**base, "ph": "X", "name": "f.py(3): f", "cat": "python_function", "ts": 21, "dur": 0.5, "tid": 2},
        {
            **base,
            "ph": "X",
            "name": "k<int>",
            "cat": "kernel",
            "ts": 70,
            "dur": 3.25,
            "pid": 0,
            "tid": 7,
            "args": kernel,
        },
        {**base, "ph": "i", "name": "mark", "cat": "note", "ts": 33, "args": {"why": ["é", 1], "n": -5, "t": "a\nb"}},
        {**base, "ph": "i", "name": "bare", "ts": 9},
        {**base, "ph": "C", "name": "memory", "ts": 15, "args": {"used": 5.5}},
        {**base, "ph": "s", "id": 5, "cat": "ac2g", "name": "ac2g", "ts": 12},
        {**base, "ph": "f", "id": 5, "cat": "ac2g", "name": "ac2g", "ts": 70, "pid": 0, "tid": 7},
        {**base, "ph": "t", "id": "word", "cat": "other", "name": "o", "ts": 13},
        {**base, "ph": "i", "name": "[memory]", "ts": 14, "args": {"Addr": 2**40, "Bytes": -8, "Device Type": 1}},
        {**base, "ph": "M", "name": "thread_name", "args": {"name": "main"}},
        {**base, "ph": "M", "name": "process_name", "args": {"name": "train.py"}},
    ]
    return events


def decoded(path: Path) -> list[tuple[str, int, int]]:
    """Slices by the project's own classes: names and times, ends paired as its documentation says."""
    trace = pb.Trace()
    trace.ParseFromString(path.read_bytes())
    names: dict[tuple[int, int], str] = {}
    clock: dict[int, int] = {}
    tracks: dict[int, int] = {}
    stacks: dict[int, list[tuple[str, int]]] = {}
    slices = []
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        for name in packet.interned_data.event_names:
            names[sequence, name.iid] = name.name
        for each in packet.clock_snapshot.clocks:
            if each.clock_id == 64:
                assert each.is_incremental
                clock[sequence] = each.timestamp
        if packet.HasField("trace_packet_defaults"):
            assert packet.trace_packet_defaults.timestamp_clock_id == 64
            tracks[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        event = packet.track_event
        if event.type not in (BEGIN, END):
            continue
        clock[sequence] += packet.timestamp
        stack = stacks.setdefault(tracks[sequence], [])
        if event.type == BEGIN:
            stack.append((names[sequence, event.name_iid], clock[sequence]))
        else:
            name, start = stack.pop()
            slices.append((name, start, clock[sequence] - start))
    assert not any(stacks.values())
    return slices


def test_what_is_exported_is_read_again_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "t.json"
    source.write_text(json.dumps({"traceEvents": everything()}))
    trace = strobe.open(source)
    assert trace.export(tmp_path / "t.pftrace", "perfetto") == []
    again = strobe.open(tmp_path / "t.pftrace")
    before, after = contents(trace), contents(again)
    for table, rows in before.items():
        assert after[table] == rows, table
        assert rows or table in ("copy_spans", "python_spans", "collective_spans", "sync_spans")
    assert "spans_cut" not in quality(again)


def test_an_export_is_what_perfettos_own_classes_read(tmp_path: Path) -> None:
    source = tmp_path / "t.json"
    source.write_text(json.dumps({"traceEvents": everything()}))
    trace = strobe.open(source)
    trace.export(tmp_path / "t.pftrace", "perfetto")
    slices = decoded(tmp_path / "t.pftrace")
    zero = min(start for _, start, _ in slices)
    rows = trace.sql("select name, start_ns, duration_ns from spans").rows()
    first = min(int(str(row[1])) for row in rows)
    assert sorted((name, start - zero + first, duration) for name, start, duration in slices) == sorted(rows)


def test_a_recorded_run_keeps_its_zero(tmp_path: Path) -> None:
    w = example(50)
    trace = strobe.open(w.save(tmp_path / "t"))
    trace.export(tmp_path / "u.pftrace", "perfetto")
    assert contents(strobe.open(tmp_path / "u.pftrace")) == contents(trace)


def test_a_real_trace_is_the_same_after_a_round_trip(public_folder: Path, tmp_path: Path) -> None:
    real = public_folder / "kineto/alexnet_critical_path.json.gz"
    trace = strobe.open(shutil.copy(real, tmp_path / "t.json.gz"))
    trace.export(tmp_path / "t.pftrace", "perfetto")
    before, after = contents(trace), contents(strobe.open(tmp_path / "t.pftrace"))
    for table, rows in before.items():
        assert after[table] == rows, table
