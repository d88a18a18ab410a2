"""What golden traces are asked, through the public interface only: `strobe.open`, methods, SQL, the command line.

Every answer is a text in two parts. What is frozen: columns, types, units, values, order. What may be worded anew:
sentences of notes, errors, the quality table, reasons, summaries.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib.metadata
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import strobe

# Columns that hold sentences; where all columns are `what` and `value` (info), values do, too.
SENTENCES = ("text", "reason", "verdict", "advice")
MOST_ROWS = 120  # of an answer that is kept as text; of longer ones a checksum of each column is
TABLES = (
    "processes", "locations", "regions", "call_paths", "spans", "metrics", "steps", "loops", "statistics",
    "kernel_spans", "copy_spans", "call_spans", "operator_spans", "sync_spans", "collective_spans", "range_spans",
    "python_spans", "arguments", "allocations", "samples", "sample_totals", "messages", "message_totals", "marks",
    "flows", "lines", "call_edges", "path_metrics", "quality", "totals", "links",
)  # fmt: skip
# Each analysis, and the options that change what it computes.
ANALYSES: dict[str, tuple[dict[str, object], ...]] = {
    "breakdown": ({}, {"by": "class"}, {"by": "step"}),
    "calls": ({}, {"by": "thread"}),
    "collectives": ({}, {"rank": 0}),
    "compare": ({"steps": "1..3,4..6"}, {"steps": "1..3,4..6", "by": "place"}, {"ranks": "0,1"}),
    "copies": ({}, {"by": "time"}, {"by": "time", "points": 0}),
    "critical_path": (
        {},
        {"by": "region"},
        {"by": "segment"},
        {"rank": "each"},
        {"rank": "0"},
        {"step": "2"},
        {"step": "all"},
        {"what_if": "nccl*=0.5,launch=0"},
    ),
    "data_pipeline": ({}, {"form": "stages"}),
    "devices": ({},),
    "gemm": ({}, {"peak_gflops": 19500.0, "bandwidth_gb_s": 1555.0}),
    "gemm_merging": ({}, {"peak_gflops": 19500.0, "bandwidth_gb_s": 1555.0}),
    "gpu_trace": ({}, {"limit": 7}, {"limit": 0}),
    "idle": ({}, {"by": "stream"}, {"kernel_gap_ns": 500}),
    "info": ({},),
    "kernels": tuple({"by": by} for by in ("name", "shape", "stream", "operator", "function", "collective")),
    "launches": ({}, {"by": "stream"}, {"long_call_us": 5}, {"full_queue": 2}, {"late_us": 10}),
    "lines": ({}, {"whole": True}, {"function": "o"}),
    "loops": ({},),
    "memory": ({}, {"by": "step"}, {"by": "time"}, {"by": "time", "points": 0}),
    "operators": (
        *({"by": by} for by in ("name", "type", "shape", "module", "line")),
        *({"by": by, "step": "all"} for by in ("name", "type", "shape", "module", "line")),
        {"per": "rank"},
        {"per": "step", "step": "all"},
        {"search": "add"},
        {"step": "2"},
        {"step": "1..3"},
        {"step": "steady"},
    ),
    "overlap": ({}, {"by": "step"}),
    "profile": (
        {},
        {"form": "tree"},
        {"form": "inverted"},
        {"step": "all"},
        {"step": "steady"},
        {"step": "1..3"},
        {"min_share": 0.05},
        {"form": "tree", "step": "all"},
    ),
    "ranges": ({},),
    "samples": ({}, {"by": "line"}, {"by": "thread"}),
    "sequences": ({}, {"least": 1}, {"operator": "a"}),
    "statistics": ({},),
    "step_time": ({}, {"by": "class"}, {"by": "step"}),
    "step_trace": ({}, {"by": "class"}, {"by": "step"}, {"by": "collective"}),
    "steps": (
        {},
        {"only": "outliers"},
        {"step_class": "step"},
        {"step_class": "train"},
        {"step_level": "+1"},
        {"step_level": "-1"},
    ),
    "stragglers": ({}, {"by": "kind"}, {"by": "collective"}),
    "streams": ({},),
    "structure": ({}, {"stream": "calls"}, {"stream": "operators"}, {"stream": "kernels"}, {"stream": "mpi"}),
    "utilisation": ({},),
    "what_if": (
        {},
        {"by": "stretch"},
        *({"change": change} for change in ("fuse=*", "half", "host=0.5", "overlap", "ranks=2x", "workers=2")),
    ),
}  # fmt: skip
QUERIES = {
    "spans by step": """select step, paradigm, role, "group", count(*)::bigint as spans, sum(self_ns)::bigint as self_ns
        from spans group by all order by all""",
    "an analysis in a query": "select name, calls, total_ns from operators where calls > 1 order by name, total_ns",
}
# Formats whose files say nothing of the moment and the machine that wrote them.
EXPORTS = ("chrome", "collapsed", "csv", "line_profiler", "otf2", "perfetto", "pprof", "speedscope")
WORDED = ("quality", "loops")  # files of tables with sentences
COMMANDS = (
    ("summary", "--json"),
    ("summary",),
    ("summary", "--step-level", "+1"),
    ("summary", "--format", "nvprof"),
    ("snapshot", "--json"),
    ("snapshot",),
    ("structure",),
    ("gpu_trace", "--format", "nvprof"),
)


@dataclass(frozen=True)
class Answer:
    """What a question was answered: what is frozen, and the sentences in it."""

    frozen: str
    sentences: str = ""


def ask_all(path: Path, scratch: Path) -> Iterator[tuple[str, Answer]]:
    """Ask a trace everything; yield each question and its answer. `scratch` is an empty folder for exports.

    The trace is asked from its own folder: what an answer has of its path is its name.
    """
    with contextlib.chdir(path.parent), strobe.open(path.name) as trace:
        for question, ask in _questions(trace, path.name, scratch):
            yield question, _answer(ask, path.parent)


def _questions(trace: strobe.Trace, path: str, scratch: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    for name in TABLES:
        yield f"sql {name}", lambda name=name: trace.sql(f"select * from {name}")
    for name, query in QUERIES.items():
        yield f"sql: {name}", lambda query=query: trace.sql(query)
    for name, variants in ANALYSES.items():
        for options in variants:
            shown = ", ".join(f"{option}={value!r}" for option, value in options.items())
            yield f"{name}({shown})", lambda name=name, options=options: trace.ask(name, **options)
    for name in ("processes", "locations", "regions", "call_paths", "quality"):
        yield f"trace.{name}", lambda name=name: getattr(trace, name)
    yield "trace.spans()", trace.spans
    yield "trace.metrics()", trace.metrics
    yield "trace.stack()", lambda: Json(trace.stack().to_json())
    yield "trace.stack('gap')", lambda: Json(trace.stack("gap").to_json())
    yield "trace.stack().outliers()", lambda: trace.stack().outliers()
    yield "trace.structure()", lambda: Json(trace.structure().to_json())
    yield "trace.structure().to_dot()", lambda: trace.structure().to_dot()
    yield "trace.structure().to_svg()", lambda: trace.structure().to_svg()
    yield "trace.op_analyse('add')", lambda: Json(trace.op_analyse("add"))
    yield "steps 1 to 3: profile()", lambda: trace.part(steps=(1, 3)).profile(step="all")
    yield "steps 1 to 3: spans", lambda: trace.part(steps=(1, 3)).spans()
    yield "1 to 20 ms: kernels()", lambda: trace.part(time_ns=(1_000_000, 20_000_000)).kernels()
    yield "1 to 20 ms: spans", lambda: trace.part(time_ns=(1_000_000, 20_000_000)).spans()
    yield "rank 1: collectives()", lambda: trace.part(ranks=(1, 1)).collectives()
    for words in COMMANDS:
        yield f"strobe {' '.join(words)}", lambda words=words: command(words[0], path, *words[1:])
    for format_name in EXPORTS:
        yield f"export to {format_name}", lambda name=format_name: exported(trace, name, scratch / f"{name}.out")


@dataclass(frozen=True)
class Json:
    """An answer that is JSON."""

    text: str


@dataclass(frozen=True)
class Printed:
    """What a command printed."""

    out: str
    err: str
    code: int
    is_data: bool


@dataclass(frozen=True)
class Exported:
    """Files that were written, and what the format cannot hold."""

    files: dict[str, str]
    notes: list[str]


def command(*words: str) -> Printed:
    """Run the `strobe` command as its entry point does, in this process."""
    (point,) = importlib.metadata.entry_points(group="console_scripts", name="strobe")
    out, err = io.StringIO(), io.StringIO()
    code = 0
    meta_path = list(sys.meta_path)
    argv = mock.patch.object(sys, "argv", ["strobe", *words])
    with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            point.load()()
        except SystemExit as end:
            code = int(end.code or 0)
    sys.meta_path[:] = meta_path
    return Printed(out.getvalue(), err.getvalue(), code, "nvprof" in words)


def exported(trace: strobe.Trace, name: str, path: Path) -> Exported:
    """Export a trace, and return checksums of what was written."""
    notes = trace.export(path, name)
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.stem not in WORDED)
    files = [each for each in files if each.is_file()]
    return Exported({each.relative_to(path.parent).as_posix(): _checksum(_bytes(each)) for each in files}, notes)


def _bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _checksum(content: bytes) -> str:
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}"


def _answer(ask: Callable[[], object], folder: Path) -> Answer:
    try:
        answer = _written(ask())
    except strobe.StrobeError as error:
        answer = Answer(f"{type(error).__name__}\n", f"{error}\n")
    parts = (part.replace(f"{folder}/", "") for part in (answer.frozen, answer.sentences))
    return Answer(*(f"{part}\n" if part and not part.endswith("\n") else part for part in parts))


def _written(answer: object) -> Answer:
    if isinstance(answer, strobe.Table):
        return _of_table(answer)
    if isinstance(answer, Json):
        return _of_json(answer.text)
    if isinstance(answer, Printed):
        ended = f"exit code {answer.code}\n"
        if answer.out.startswith("{"):
            body = _of_json(answer.out)
        else:
            body = Answer(*(_shortened(answer.out), "") if answer.is_data else ("", answer.out))
        return Answer(ended + body.frozen, body.sentences + answer.err)
    if isinstance(answer, Exported):
        files = "".join(f"{name}: {content}\n" for name, content in answer.files.items())
        return Answer(files, "".join(f"{note}\n" for note in answer.notes))
    return Answer(_shortened(str(answer)))


def _of_table(table: strobe.Table) -> Answer:
    arrow = table.to_arrow()
    units = table.units
    extra = set(table.extra)
    columns = [
        f"{field.name}: {field.type} [{units.get(field.name, '')}]{', extra' * (field.name in extra)}"
        for field in arrow.schema
    ]
    head = [f"table {table.name}, {len(table)} rows, from {table.source or '-'}, shows {table.shows}", *columns]
    values = {name: list(map(_cell, arrow.column(name).to_pylist())) for name in arrow.column_names}
    sentences = [f"{what}: {text}" for what, text in (("about", table.about), ("note", table.note)) if text]
    in_words = ("value",) if table.columns == ["what", "value"] else SENTENCES
    for name in filter(in_words.__contains__, table.columns):
        sentences += [f"{name}: {json.loads(cell)}" for cell in values[name] if " " in cell]
        values[name] = ["(sentence)" if " " in cell else cell for cell in values[name]]
    if table.name == "sql":  # without `order by` no order is promised
        rows = sorted(zip(*values.values(), strict=True))
        values = {name: [row[at] for row in rows] for at, name in enumerate(values)}
    if len(table) > MOST_ROWS:
        head += [
            f"sha256 of {name}: {hashlib.sha256(chr(10).join(cells).encode()).hexdigest()}"
            for name, cells in values.items()
        ]
        values = {name: cells[:3] for name, cells in values.items()}
    lines = [" | ".join(row) for row in zip(*values.values(), strict=True)]
    return Answer("\n".join([*head, *lines, ""]), "".join(f"{sentence}\n" for sentence in sentences))


_encoded = json.JSONEncoder(ensure_ascii=False).encode


def _cell(value: object) -> str:
    """Write a value so that equal texts are equal values: floats have all their digits."""
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return "null" if value is None else repr(value)


def _of_json(text: str) -> Answer:
    """Divide JSON: in what is frozen, a string with two spaces or more is a sentence, unless it has a name's signs."""
    sentences: list[str] = []

    def divided(value: object, place: str) -> object:
        if isinstance(value, dict):
            return {key: divided(each, f"{place}.{key}") for key, each in value.items()}
        if isinstance(value, list):
            return [divided(each, f"{place}[{number}]") for number, each in enumerate(value)]
        if isinstance(value, str) and value.count(" ") >= 2 and not re.search(r"::|\(.*\*|<.*>", value):
            sentences.append(f"{place}: {value}\n")
            return "(sentence)"
        return value

    body = json.dumps(divided(json.loads(text), ""), indent=1, ensure_ascii=False) + "\n"
    return Answer(_shortened(body), "".join(sentences))


def _shortened(text: str) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) <= 6 * MOST_ROWS:
        return text
    return f"{_checksum(text.encode())}, which begins:\n" + "".join(lines[:60])
