"""What is written as Chrome's JSON and read again is equal; and it is what Kineto would have written."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import strobe
from strobe.cli.main import main
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES
from tests.formats import round_trip
from tests.formats.round_trip import REAL, anything
from tests.public import KINETO

ROOT = Path(__file__).parents[2]
STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM = ROOT / "tests" / "ui" / "program.py"


def tables(trace: strobe.Trace) -> dict[str, pa.Table]:
    """Every table but `quality`, which is about the files, with call paths as the names of their regions."""
    regions = [tuple(row.values())[1:] for row in trace.regions.to_pylist()]
    chains: list[tuple[object, ...]] = []
    for row in trace.call_paths.to_pylist():
        above = () if row["parent"] is None else chains[int(str(row["parent"]))]
        chains.append((*above, regions[int(str(row["region"]))]))
    spans = trace.spans().to_arrow()
    found = {
        "chains": pa.table({"chain": sorted(map(str, chains))}),
        "spans": spans.drop_columns("call_path"),
        "chains of spans": pa.table({"chain": [str(chains[i]) for i in spans.column("call_path").to_pylist()]}),
        **{name: getattr(trace, name).to_arrow() for name in ("processes", "locations", "regions")},
        "steps": trace.ask("steps").to_arrow(),
        "loops": trace.ask("loops").to_arrow(),
        "metrics": trace.metrics().to_arrow(),
    }
    for name in (*SPAN_TABLES, *EVENT_TABLES):
        table = trace.side_table(name).to_arrow()
        # Rows with a time of their own are written as the import meets them: their order says nothing.
        found[name] = table.sort_by([(column, "ascending") for column in table.column_names])
    return found


def assert_equal(before: strobe.Trace, after: strobe.Trace) -> None:
    expected, got = tables(before), tables(after)
    different = [name for name, table in expected.items() if not table.equals(got[name])]
    assert different == []


@pytest.mark.parametrize("name", [*(name for name in KINETO if "two_ranks" not in name), "kineto/two_ranks"])
def test_what_is_exported_and_read_again_is_equal(public_folder: Path, name: str, tmp_path: Path) -> None:
    trace = strobe.open(public_folder / name)
    assert trace.export(tmp_path / "again.json.gz") == []
    again = strobe.open(tmp_path / "again.json.gz")
    assert_equal(trace, again)
    if not (public_folder / name).is_dir():
        told = [json.loads(json.dumps(each.job.imported))["files"][0]["properties"] for each in (trace, again)]
        assert {key: told[1].get(key) for key in told[0]} == told[0]


# Other files have no argument, and no type of one, that these lack.
@pytest.mark.parametrize("name", ["alexnet_critical_path", "nccl_data", "ns_resolution"])
def test_every_event_is_the_one_that_kineto_wrote(public_folder: Path, name: str, tmp_path: Path) -> None:
    source = public_folder / "kineto" / f"{name}.json.gz"
    strobe.open(source).export(tmp_path / "again.json")

    def number(value: object) -> object:
        plain = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
        return str(Decimal(str(value)).normalize()) if plain else value

    def events(text: bytes) -> Counter[str]:
        found = json.loads(text, parse_float=Decimal)["traceEvents"]
        keys = ("cat", "name", "pid", "tid", "ts", "dur")
        spans = [each for each in found if each["ph"] == "X"]
        return Counter(
            json.dumps(
                [*(number(each.get(key)) for key in keys), {k: number(v) for k, v in each.get("args", {}).items()}],
                default=str,
                sort_keys=True,
            )
            for each in spans
        )

    expected = events(gzip.decompress(source.read_bytes()))
    assert events((tmp_path / "again.json").read_bytes()) == expected
    assert expected.total() > 100


def record(path: Path, *options: str) -> strobe.Trace:
    subprocess.run([STROBE, "run", "--quiet", *options, "-o", str(path), str(PROGRAM)], check=True)
    return strobe.open(path)


def test_a_trace_of_our_own_is_equal_too(tmp_path: Path) -> None:
    trace = record(tmp_path / "own.strobe", "--keep", "all")
    assert len(trace.metrics()) > 0
    assert trace.export(tmp_path / "own.json") == []
    assert_equal(trace, strobe.open(tmp_path / "own.json"))


def write(path: Path, events: object, **beside: object) -> strobe.Trace:
    path.write_text(json.dumps({"traceEvents": events, **beside}))
    return strobe.open(path)


def span(name: str, ts: object, dur: object, **more: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": 1, **more}


EVENTS = [
    span(
        "a", 1.001, 20.002, cat="cpu_op", args={"External id": 3, "Input Dims": [[1, 2], []], "odd": {"x": ["é", None]}}
    ),
    span('quote " \\ \n', 2, 1, cat="python_function", args={"Python id": 1}),
    span("c", 15, 10),  # overlaps: a lane
    span("k", 3, 2, cat="kernel", pid=0, tid=7, args={"grid": [1, 2, 3], "block": [4, 5, 6], "correlation": 9}),
    {"ph": "C", "name": "memory", "ts": 2, "pid": 7, "args": {"used": 5, "free": 7.5}},
    {"ph": "i", "s": "t", "name": "hello", "cat": "note", "ts": 3, "pid": 7, "tid": 1, "args": {"why": ["é", 1]}},
    {"ph": "i", "s": "t", "name": "[memory]", "ts": 4, "pid": 7, "tid": 1, "args": {"Addr": 2**64 - 1, "Bytes": -5}},
    {"ph": "s", "id": 4, "cat": "ac2g", "name": "ac2g", "ts": 1, "pid": 7, "tid": 1},
    {"ph": "f", "id": "x", "cat": "ac2g", "name": "ac2g", "ts": 4, "pid": 0, "tid": 7, "bp": "e"},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "worker"}},
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "server"}},
]


def test_times_are_written_as_exact_decimals(tmp_path: Path) -> None:
    events = [span("a", 0, 0), {**span("b", 0, 0), "ts": "9007199254740.993", "dur": "0.001"}]
    write(tmp_path / "t.json", events).export(tmp_path / "again.json")
    text = (tmp_path / "again.json").read_text()
    assert '"ts": 9007199254740.993, "dur": 0.001' in text
    assert_equal(strobe.open(tmp_path / "t.json"), strobe.open(tmp_path / "again.json"))


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst"])
def test_whatever_chrome_knows_is_equal(tmp_path: Path, suffix: str) -> None:
    trace = write(tmp_path / "t.json", EVENTS, distributedInfo={"rank": 3, "world_size": 8})
    trace.export(tmp_path / f"again{suffix}")
    again = strobe.open(tmp_path / f"again{suffix}")
    assert_equal(trace, again)
    assert again.processes.to_pylist()[0]["rank"] == 3
    assert len(again.locations) == 3


def test_without_our_metadata_it_is_still_kinetos(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.json", EVENTS)
    trace.export(tmp_path / "again.json")
    body = json.loads((tmp_path / "again.json").read_text())
    body["traceEvents"] = [each for each in body["traceEvents"] if not each["name"].startswith("strobe_")]
    (tmp_path / "stripped.json").write_text(json.dumps(body))
    question = "select name, paradigm, role, start_ns, duration_ns from spans order by all"
    assert strobe.open(tmp_path / "stripped.json").sql(question).rows() == trace.sql(question).rows()


def test_metadata_that_somebody_has_broken_does_no_harm(tmp_path: Path) -> None:
    write(tmp_path / "t.json", EVENTS).export(tmp_path / "again.json")
    body = json.loads((tmp_path / "again.json").read_text())
    for each in body["traceEvents"]:
        if each["name"].startswith("strobe_"):
            each["args"] = {key: -(2**62) if isinstance(value, int) else value for key, value in each["args"].items()}
        each["reg"], each["met"] = 10**15, "no number"
    (tmp_path / "broken.json").write_text(json.dumps(body))
    assert strobe.open(tmp_path / "broken.json").span_count == 4


def test_a_part_is_exported_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [span(f"ProfilerStep#{i}", 100 * i, 90, cat="user_annotation") for i in range(10)]
    events += [span("f", 100 * i + 10, 5) for i in range(10)]
    write(tmp_path / "t.json", [*events, span("main", 0, 1000)])
    target = tmp_path / "part.json"
    assert main(["export", str(tmp_path / "t.json"), "--steps", "3-4", "-o", str(target)]) == 0
    out, talk = capsys.readouterr()
    assert out == f"{target}\n"
    assert "1 spans that were cut off" in talk
    part = strobe.open(target)
    rows = part.sql("select name, count(*), sum(duration_ns) from spans group by 1 order by 1").rows()
    assert [(name, count) for name, count, _ in rows] == [
        ("ProfilerStep#3", 1),
        ("ProfilerStep#4", 1),
        ("f", 2),
        ("main", 1),
    ]
    assert main(["export", str(tmp_path / "t.json"), "--steps", "30", "-o", str(target)]) == 2
    assert main(["export", str(tmp_path / "t.json"), "--time", "5-4", "-o", str(target)]) == 2
    assert main(["export", str(tmp_path / "t.json"), "--time", "115us-120us", "-o", str(target)]) == 0
    rows = strobe.open(target).sql("select name, start_ns, duration_ns from spans order by all").rows()
    assert rows == [("ProfilerStep#1", 115_000, 5000), ("main", 115_000, 5000)], "times stay those of the run"


@pytest.mark.parametrize("name", [each for each in REAL if not each.startswith("kineto")])
def test_traces_of_other_formats_are_equal_too(public_folder: Path, name: str, tmp_path: Path) -> None:
    trace = strobe.open(public_folder / name)
    assert trace.export(tmp_path / "again.json") == []
    round_trip.assert_equal(trace, strobe.open(tmp_path / "again.json"))
    json.loads((tmp_path / "again.json").read_bytes(), parse_constant=pytest.fail)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_trace_may_hold_is_equal(tmp_path: Path, seed: int) -> None:
    trace = anything(tmp_path / "t.strobe", seed)
    assert trace.export(tmp_path / "again.json") == []
    again = strobe.open(tmp_path / "again.json")
    round_trip.assert_equal(trace, again)
    again.export(tmp_path / "twice.json")
    round_trip.assert_equal(trace, strobe.open(tmp_path / "twice.json"))


def test_samples_are_those_of_the_trace_event_format(tmp_path: Path) -> None:
    trace = anything(tmp_path / "t.strobe", seed=1)
    trace.export(tmp_path / "again.json")
    body = json.loads((tmp_path / "again.json").read_text())
    frames = body["stackFrames"]

    def stack(number: object) -> list[str]:
        frame = frames[str(number)]
        return [*(stack(frame["parent"]) if "parent" in frame else []), frame["name"]]

    found = Counter(
        (each["ts"], "\n".join(stack(each["sf"])) if "sf" in each else None)
        for each in body["traceEvents"]
        if each["ph"] == "P"
    )
    rows = trace.side_table("samples").to_pylist()
    assert found == Counter((int(str(row["time_ns"])) / 1000, row["call_stack"]) for row in rows)
    assert len(rows) > 100


def test_frames_may_be_more_than_a_single_value_may_be_long(tmp_path: Path) -> None:
    write(tmp_path / "t.json", EVENTS).export(tmp_path / "again.json")
    text = (tmp_path / "again.json").read_text().rstrip().removesuffix("}")
    frame = json.dumps({"category": "samples", "name": "f" * 1000})
    frames = ",\n".join(f'"{number}": {frame}' for number in range(1, 20_000))
    (tmp_path / "again.json").write_text(f'{text}, "stackFrames": {{\n{frames}\n}}\n}}\n')
    again = strobe.open(tmp_path / "again.json")
    assert again.span_count == 4
    assert again.sql("select what from quality where what in ('damaged', 'truncated')").rows() == []
