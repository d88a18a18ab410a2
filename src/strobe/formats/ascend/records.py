"""What ran on NPUs as tables of our own, in which all files of Ascend end up, and how these become spans."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from strobe.formats.reading.database_tables import Region, SpanTable, TableImport, named_by
from strobe.formats.reading.row_tables import PlainDialect
from strobe.formats.reading.sqlite_input import SqliteInput, Texts
from strobe.model.plugins import Imported, ImportSource, ImportTarget

TASKS, COLLECTIVES = "strobe tasks", "strobe collectives"
CALLS, OPERATORS, RANGES, MARKS = "strobe calls", "strobe operators", "strobe ranges", "strobe marks"
STEPS, PLANES, OTHERS, FILLED = "strobe steps", "strobe planes", "strobe others", "strobe filled tasks"
_SPAN = {"processId": "INTEGER", "threadId": "INTEGER", "start": "INTEGER", "end": "INTEGER"}
_ON_NPU = {**_SPAN, **dict.fromkeys(("deviceId", "streamId", "correlationId"), "INTEGER")}
_TASK = {
    **_ON_NPU,
    **dict.fromkeys(("blocks", "task"), "INTEGER"),
    **dict.fromkeys(("name", "kind", "operator", "shapes", "dtypes", "outputs", "state", "more"), "TEXT"),
}
# Columns with their types, by table. kind: CANN's type of a task (AI_CORE, KERNEL_AICPU, MEMCPY_ASYNC, ...). more: what
# else is known, as a JSON list of pairs. Planes: what collectives are made of. Filled: tasks that another file has.
LAYOUTS: Mapping[str, Mapping[str, str]] = {
    TASKS: _TASK,
    FILLED: _TASK,
    COLLECTIVES: {
        **_ON_NPU,
        "elements": "INTEGER",
        **dict.fromkeys(("name", "collective", "team", "dtype", "algorithm", "more"), "TEXT"),
    },
    CALLS: {**_SPAN, "correlationId": "INTEGER", **dict.fromkeys(("name", "layer", "more"), "TEXT")},
    OPERATORS: {
        **_SPAN,
        **dict.fromkeys(("sequence", "forward"), "INTEGER"),
        **dict.fromkeys(("name", "kind", "shapes", "dtypes", "more"), "TEXT"),
    },
    RANGES: {**_SPAN, "name": "TEXT"},
    MARKS: {**_SPAN, "name": "TEXT"},
    STEPS: {**_SPAN, "name": "TEXT"},
    PLANES: {**_ON_NPU, "name": "TEXT", "more": "TEXT"},
    OTHERS: {**_SPAN, **dict.fromkeys(("name", "layer", "more"), "TEXT")},
}
_WAITS = re.compile(r"(EVENT|NOTIFY|CCU|MODEL)_?WAIT|WAIT_VALUE|EVENT_WAIT|STREAM_SYNC", re.IGNORECASE)
# What computes; everything else that CANN puts into a stream serves the order of tasks.
_COMPUTES = re.compile(r"AI_?C(ORE|PU)|AI_?V|MIX|KERNEL|AIC|DSA|DVPP|FFTS|SDMA|HCCL|COMMUNICATION", re.IGNORECASE)


_PLAIN_TASK = re.compile(r"[A-Z0-9_ ]*")  # EVENT_RECORD and the like


def _task(values: Mapping[str, object]) -> Region:
    name, kind = str(values.get("name") or ""), str(values.get("kind") or "")
    known = bool(values.get("operator"))
    if re.search("MEMCPY|MEMSET", kind, re.IGNORECASE):
        role = "copy"
    elif _WAITS.search(kind):
        role = "sync"
    else:
        # Level 0 has no type for what computes, only names.
        computes = known or _COMPUTES.search(kind) or (kind == "Other" and not _PLAIN_TASK.fullmatch(name))
        role = "kernel" if computes else "other"
    return name or kind or "<unnamed task>", "accelerator", role, kind


def _call(values: Mapping[str, object]) -> Region:
    name = str(values.get("name") or "<unnamed call>")
    layer, role = f"CANN {values.get('layer') or ''}".rstrip(), "sync" if "Synchronize" in name else "function"
    return name, "accelerator", role, layer


def _operator(values: Mapping[str, object]) -> Region:
    name, kind = str(values.get("name") or "<unnamed operator>"), values.get("kind")
    is_range = name.startswith("ProfilerStep#") or kind in ("trace", "mstx")
    return name, "torch", "range" if is_range else "operator" if kind in ("op", None) else "function", ""


def _other(values: Mapping[str, object]) -> Region:
    return str(values.get("name") or "<unnamed>"), "accelerator", "other", str(values.get("layer") or "")


_MORE = ("more",)
_OF_GPU = {"correlationId": "correlation", "deviceId": "device", "streamId": "stream"}
_KINDS = (
    SpanTable(OPERATORS, ("name", "kind"), _operator, "operator_spans",
              {"sequence": "sequence_number", "forward": "forward_thread", "shapes": "shapes", "dtypes": "types"},
              pairs=_MORE),
    SpanTable(CALLS, ("name", "layer"), _call, "call_spans", {"correlationId": "correlation"}, pairs=_MORE),
    SpanTable(RANGES, ("name",), named_by("name", "nvtx", "range", "mstx", unnamed="<unnamed range>")),
    SpanTable(STEPS, ("name",), named_by("name", "torch", "range"), row="steps"),
    SpanTable(
        COLLECTIVES, ("name",), named_by("name", "accelerator", "kernel"), "collective_spans",
        {"collective": "collective", "team": "group", "dtype": "dtype", "elements": "in_elements"},
        pairs=_MORE,
    ),
    *(
        SpanTable(
            table, ("name", "kind", "operator"), _task, "kernel_spans",
            {**_OF_GPU, "operator": "short_name", "blocks": "grid_x", "task": "launch"}, pairs=_MORE,
        )
        for table in (TASKS, FILLED)
    ),
    SpanTable(PLANES, ("name",), named_by("name", "accelerator", "other", "HCCL"), row="plane", pairs=_MORE),
    SpanTable(OTHERS, ("name", "layer"), _other, row="other layers", pairs=_MORE),
)  # fmt: skip


class Records:
    """Imports the tables of `LAYOUTS` that a database has. `origins`: by table, that of the file that it was made of,
    where it is not itself one of the file."""

    def __init__(
        self,
        source: ImportSource,
        target: ImportTarget,
        database: SqliteInput,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self.tables = TableImport(source, target, database, Texts(database, "", "", ""), PlainDialect())
        for made, of in (origins or {}).items():
            self.tables.made_of(made, (of,))

    def read(self, properties: Mapping[str, object], *, host: str = "", rank: int | None = None) -> Imported:
        """Import all tables."""
        self.tables.choose_default_key((CALLS, OPERATORS, TASKS), ("processId",))
        for kind in _KINDS:
            self.tables.spans(kind)
        self.tables.marks(MARKS, "start", ("name",), "mstx")
        process = next(iter(self.tables.processes), self.tables.default_key)
        ranks = {} if rank is None else {process: rank}
        return self.tables.finish(
            lambda key: f"process {key}", properties=properties, host=host, base_ns=0, ranks=ranks
        )


def as_json(text: str) -> str:
    """Return shapes (`"81920,4096;8192,512"`) or types (`DT_BF16;DT_BF16`) as JSON."""
    parts = text.strip().strip('"').split(";")
    whole = re.compile(r"\d{1,18}(,\d{1,18})*")
    return json.dumps([[*map(int, part.split(","))] if whole.fullmatch(part) else part for part in parts])
