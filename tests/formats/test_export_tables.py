"""Parquet, Arrow and CSV hold every table, and other tools read them as we do."""

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import UsageError
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> strobe.Trace:
    """Two threads of 40 000 spans, with attributes, counters, marks; a name with everything that CSV stumbles over."""
    events: list[dict[str, object]] = []
    for i in range(80_000):
        args = {"External id": i, "Input Dims": [[i % 7]], "odd": 'a "b", c\n'} if i % 3 == 0 else {}
        tid = 1 + i % 2
        events.append(
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": f'aten::op "{i % 5}",\n',
                "ts": i,
                "dur": 1.5,
                "pid": 7,
                "tid": tid,
                "args": args,
            }
        )
    events += [{"ph": "C", "name": "load", "ts": i, "pid": 7, "args": {"value": i / 3}} for i in range(100)]
    events += [{"ph": "i", "s": "t", "name": "", "ts": i, "pid": 7, "tid": 1} for i in range(10)]
    path = tmp_path_factory.mktemp("tables") / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return strobe.open(path)


def expected(trace: strobe.Trace, name: str) -> pa.Table:
    if name == "spans":
        return trace.spans().to_arrow()
    if name in SPAN_TABLES or name in EVENT_TABLES:
        # By location, as the file has them.
        return pa.concat_tables([trace.side_table(name).to_arrow()]).sort_by([("location", "ascending")])
    if name in ("processes", "locations", "regions", "call_paths", "quality"):
        table: pa.Table = getattr(trace, name).to_arrow()
        return table
    return trace.metrics().to_arrow() if name == "metrics" else trace.ask(name).to_arrow()


@pytest.mark.parametrize("small", [False, True])
def test_parquet_is_read_back_equal(trace: strobe.Trace, tmp_path: Path, small: bool) -> None:
    trace.export(tmp_path / "t.parquet", small=small)
    assert {each.stem for each in (tmp_path / "t.parquet").iterdir()} == set(TABLES)
    for name in TABLES:
        found = pq.read_table(tmp_path / "t.parquet" / f"{name}.parquet")
        assert found.equals(expected(trace, name)), name
        with duckdb.connect() as connection:
            # What another engine reads, in Arrow's types again.
            read = connection.sql(f"from '{tmp_path}/t.parquet/{name}.parquet'").to_arrow_table()
        assert read.to_pylist() == expected(trace, name).to_pylist(), name
    spans = pq.ParquetFile(tmp_path / "t.parquet" / "spans.parquet").metadata
    assert [spans.row_group(i).num_rows for i in range(spans.num_row_groups)] == [65_536, 80_000 - 65_536]
    encodings = {
        spans.row_group(0).column(i).path_in_schema: spans.row_group(0).column(i) for i in range(spans.num_columns)
    }
    assert "DELTA_BINARY_PACKED" in encodings["start_ns"].encodings
    assert ("BYTE_STREAM_SPLIT" if small else "DELTA_BINARY_PACKED") in encodings["duration_ns"].encodings
    assert encodings["start_ns"].compression == "ZSTD"


def test_arrow_is_read_back_equal(trace: strobe.Trace, tmp_path: Path) -> None:
    trace.export(tmp_path / "t.arrow")
    for name in TABLES:
        with pa.memory_map(str(tmp_path / "t.arrow" / f"{name}.arrow")) as source:
            assert pa.ipc.open_file(source).read_all().equals(expected(trace, name)), name


def test_csv_is_read_back_equal(trace: strobe.Trace, tmp_path: Path) -> None:
    trace.export(tmp_path / "t.csv")
    for name in TABLES:
        table = expected(trace, name)
        lists = [field.name for field in table.schema if pa.types.is_list(field.type)]
        kept = table.drop_columns(lists)
        convert = pa_csv.ConvertOptions(
            column_types={field.name: field.type for field in kept.schema},
            include_columns=kept.column_names,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        path = tmp_path / "t.csv" / f"{name}.csv"
        assert pa_csv.read_csv(path, convert_options=convert, parse_options=parse).to_pylist() == kept.to_pylist(), name


def test_what_is_in_the_way_stays(trace: strobe.Trace, tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        trace.export(target)
    assert (target / "notes.txt").read_text() == "mine"
    (target / "notes.txt").unlink()
    trace.export(target)
    trace.export(target)


def test_the_command_line_says_what_there_is(
    trace: strobe.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(trace.path)
    assert main(["export", path, "--to", "word", "-o", str(tmp_path / "x")]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in ("arrow", "chrome", "csv", "html", "parquet"))
    assert main(["export", path, "-o", str(tmp_path / "x.doc")]) == 2
    assert main(["export", path, "--to", "csv", "--small", "-o", str(tmp_path / "x")]) == 2
    assert "csv has no option 'small'" in capsys.readouterr().err
    assert main(["export", path, "--to", "parquet", "--small", "-o", str(tmp_path / "x")]) == 0
    assert (tmp_path / "x" / "spans.parquet").exists()
