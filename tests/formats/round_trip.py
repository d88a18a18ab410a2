"""What tests of exports share: all that is in a trace, files to export, and traces with whatever a trace may hold."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np

import strobe
from strobe import native
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.trace.archive import FORMAT_VERSION

REAL = [
    "kineto/alexnet_critical_path.json.gz",
    "kineto/nccl_data.json.gz",
    "kineto/two_ranks",
    "nsys/perlmutter-cloverleaf-cuda.sqlite",
    "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
    "nvprof/cudastream-print-gpu-trace.txt",
    "otf2/ping-pong-otf2",
    "otf2/ping-pong-otf2-papi",
    "xplane/jax08_gemm.xplane.pb",
]

_CELLS = {"int64": 0, "uint32": 0, "float64": 1, "string": 2}  # types of columns, as the block files number them
_SPANS = "start_ns, duration_ns, depth, parent, complete"
_REGION = "r.name, r.paradigm, r.role, r.file, r.line, r.module"
QUESTIONS = {
    # Regions have other numbers, so they are compared by all that is said about them.
    "spans": f"select location, row, {_SPANS}, {_REGION} from spans s join regions r using (region)",
    "locations": "select location, process, name, thread_id, kind, device, span_count from locations",
    "times of locations": "select location, first_ns, last_ns from locations where span_count > 0",
    "processes": "select * from processes",
    "metrics": "select * from metrics",
    "regions": "select name, paradigm, role, file, line, module from regions",
    "totals": "select name, sum(count)::bigint, sum(total_ns)::bigint from totals group by 1",
}


def contents(trace: strobe.Trace) -> dict[str, Counter[tuple[object, ...]]]:
    """Everything in a trace but how its rows are numbered: every column of every side table, too."""
    found = {name: Counter(trace.sql(query).rows()) for name, query in QUESTIONS.items()}
    for name in (*SPAN_TABLES, *EVENT_TABLES):
        columns = [column.name for column in TABLES[name]]
        rows = trace.side_table(name).to_arrow()
        found[name] = Counter(zip(*(rows.column(column).to_pylist() for column in columns), strict=True))
    return found


def assert_equal(before: strobe.Trace, after: strobe.Trace) -> None:
    expected, got = contents(before), contents(after)
    for name, rows in expected.items():
        assert rows - got[name] == Counter(), name
        assert got[name] - rows == Counter(), name


_TEXTS = (
    *("", "a", "a\nb\n", '"', "\\", "é\u2028", "[memory]", "5", "-1e3", "null", "nan", "stream", "s", "f"),
    *('{"a": 1}', '{"a":1}', '{"a":"\\n"}', '{"marks.name":1}', '{"a":1,"a":2}', "[1,[2,3]]", '"x"', "1.50", "{", "]"),
    *(
        "[" * 80 + "]" * 80,
        '{"strobe.arguments":1}',
        '{"strobe.flow":[1]}',
        "main\nf (a.py:1)\n[g]",
        " ",
        "NaN",
        "true",
    ),
)
_KEYS = (
    *("", "stream", "Correlation", "arguments", "kernel_spans.stream", "call_spans.", "arguments.key", "Rank", "grid"),
    *("a.b", "marks.name", "strobe.flow", "strobe.cut", "strobe.arguments", "strobe.argument", "strobe.row", "é"),
)
_WHOLE = (0, 1, -1, 7, 2**31, -(2**40), 2**63 - 1, -(2**63), 10**18)
_REAL = (0.0, 0.1, -1.5, 1e-300, 1e300, float("inf"), float("-inf"), 3.0)
# For which formats of events have no place; nor do they have one for numbers of call paths.
_LEFT_OUT = (
    *("lines", "call_edges", "path_metrics", "message_totals", "io_totals", "sample_totals", "folded_collectives"),
    *("thread_waits", "compilations", "compiled_kernels", "requests", "request_parts"),
)
_LOCATIONS = (
    ("main", 5, 0, -1),
    ("", 6, 0, -1),
    ("again", 5, 0, -1),
    ("on a device", 9, 0, 1),
    ("GPU 0 stream 7", 7, 1, 0),
    ("stream of no device", 7, 1, -1),
    ("task", 2**32 - 1, 2, 0),
    (" ", 0, 2, -1),
    ("nothing happened", 8, 0, -1),
)


def anything(folder: Path, seed: int) -> strobe.Trace:
    """A trace of two processes whose spans and rows have any cells, none, and several rows of one table."""
    chance = random.Random(seed)
    folder.mkdir()
    for process in (1, 2):
        _process(chance, folder / f"process-{process}.blocks", process)
    job = {"format_version": FORMAT_VERSION, "command": ["x"], "host": "h", "zero_ns": 0, "started_unix_ns": 10**18}
    (folder / "job.json").write_text(json.dumps(job))
    return strobe.open(folder)


def _process(chance: random.Random, path: Path, number: int) -> None:
    out = native.ImportedProcess(str(path), 1 << 20)
    tables = {}
    for name in (*SPAN_TABLES, *EVENT_TABLES):
        columns = [(each.name, _CELLS[each.type]) for each in TABLES[name] if each.name not in ("location", "row")]
        tables[name] = (out.table(name, columns, name in SPAN_TABLES), columns)
    locations = [out.location(*each) for each in _LOCATIONS]
    regions = [
        out.region(
            f"r{paradigm} {role}", paradigm, role, *chance.choice((("", 0), ("f.py", 3))), chance.choice(("", "m"))
        )
        for paradigm in (0, 1, 2, 4, 5, 6, 7, 13, 16)
        for role in (1, 2, 3, 6, 7, 10)
    ]

    def cells(name: str, **fixed: int) -> list[tuple[int, object, None]]:
        found = []
        for i, (column, kind) in enumerate(tables[name][1]):
            if column == "call_path":
                continue
            if column in fixed:
                found.append((i, np.array([fixed[column]]), None))
            elif name == "arguments" or chance.random() < 0.6:
                texts = _KEYS if (name, column) == ("arguments", "key") else _TEXTS
                cell = (
                    chance.choice(_WHOLE)
                    if kind == 0
                    else np.array([chance.choice(_REAL)]).view(np.int64)[0]
                    if kind == 1
                    else out.text(chance.choice(texts))
                )
                found.append((i, np.array([cell], dtype=np.int64), None))
        return found

    ids = [np.array([each], dtype=np.uint32) for each in locations[:-1]]
    for i in range(120):
        rows = [(tables[name][0], cells(name)) for name in SPAN_TABLES for _ in range(chance.choice((0, 0, 0, 1, 2)))]
        region = np.array([chance.choice(regions)], dtype=np.uint32)
        start, length = np.array([chance.randrange(1000) * 100]), np.array([chance.randrange(300)])
        out.spans(ids[i % len(ids)], start, length, region, rows)
    for name in EVENT_TABLES:
        for _ in range(0 if name in _LEFT_OUT else 60):
            out.rows(tables[name][0], chance.choice(ids), cells(name, time_ns=chance.randrange(10**5)))
    metric = out.metric("m", "bytes", locations[0])
    out.samples(metric, np.array([5, 7, 9]), np.array([0.5, -1e300, float("inf")]))
    out.finish(40 + number, 1, json.dumps({"argv": ["a b", "c"], "main": True, "python": "3.11", "host": "h"}))
