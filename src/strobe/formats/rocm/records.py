"""How the tables of `layouts` become spans, marks, allocations, readings and samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from strobe.formats.reading.database_tables import Region, SpanTable, TableImport, named_by
from strobe.formats.reading.import_process import present
from strobe.formats.reading.row_tables import PlainDialect
from strobe.formats.reading.sqlite_input import NONE, SqliteInput, Texts
from strobe.formats.rocm.counters import read_readings, read_samples
from strobe.formats.rocm.layouts import (
    ALLOCATIONS,
    CALLS,
    COPIES,
    KERNELS,
    LAYOUTS,
    MARKS,
    PLACED,
    PROCESS_RANGES,
    RANGES,
    READINGS,
)
from strobe.model.kinds import role_of_cuda_call
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_HOST = -1
_OPERATOR = re.compile(r"(?:aten|c10|c10d|prims|quantized|torch)::[\w.:]+")  # as PyTorch calls the ranges of operators
_DIRECTIONS = {"HOST": "H", "DEVICE": "D"}
_LEVELS = {"VIRTUAL": "Virtual", "SCRATCH": "Scratch"}
_LIBRARIES = {"HIP": "HIP", "HSA": "HSA", "RCCL": "RCCL", "ROCDECODE": "rocDecode", "ROCJPEG": "rocJPEG"}


def _call(values: Mapping[str, object]) -> Region:
    name = str(values.get("name") or "<unnamed call>")
    waits = name.startswith(("hsa_signal_wait", "hsa_amd_signal_wait"))
    library = _LIBRARIES.get(str(values.get("domain") or "").split("_")[0], "")
    return name, "hip", "sync" if waits else role_of_cuda_call(name), library


def _range(values: Mapping[str, object]) -> Region:
    name = str(values.get("name") or "<unnamed range>")
    return (name, "torch", "operator", "roctx") if _OPERATOR.fullmatch(name) else (name, "nvtx", "range", "roctx")


def _copy(values: Mapping[str, object]) -> Region:
    # MEMORY_COPY_HOST_TO_DEVICE; ROCm 7 leaves the beginning out.
    words = str(values.get("direction") or "").removeprefix("MEMORY_COPY_").split("_TO_")
    ends = [_DIRECTIONS.get(word) for word in words]
    kind = f"{ends[0]}to{ends[1]}" if len(ends) == 2 and None not in ends else "Unknown"
    return f"Memcpy {kind}", "hip", "copy", ""


_OF_GPU = {"correlationId": "correlation", "deviceId": "device"}
_KINDS = (
    SpanTable(CALLS, ("name", "domain"), _call, "call_spans", {"correlationId": "correlation"}, pairs=("arguments",)),
    SpanTable(
        PLACED + KERNELS,
        ("name",),
        named_by("name", "hip", "kernel", unnamed="<unnamed kernel>"),
        "kernel_spans",
        {
            **_OF_GPU,
            "streamId": "stream",
            **{f"{what}{axis}": f"{what}_{axis.lower()}" for what in ("grid", "block") for axis in "XYZ"},
            "vgpr": "registers_per_thread",
            "lds": "shared_memory_bytes",
            "scratch": "local_bytes_per_thread",
            "dispatch": "launch",
        },
    ),
    SpanTable(
        PLACED + COPIES,
        ("direction",),
        _copy,
        "copy_spans",
        {
            **_OF_GPU,
            "streamId": "stream",
            "bytes": "size_bytes",
            "kind": "copy_kind",
            "source": "source_device",
            "destination": "destination_device",
        },
    ),
    SpanTable(RANGES, ("name",), _range),
    # They need not nest, nor end on the thread that began them.
    SpanTable(
        PROCESS_RANGES, ("name",), named_by("name", "nvtx", "range", "roctx", unnamed="<unnamed range>"), row="ranges"
    ),
)


class Records:
    """Imports the tables of `LAYOUTS` that a database has. `origins`: by table, those of the file that it was made of,
    where it is not itself one of them."""

    def __init__(
        self,
        source: ImportSource,
        target: ImportTarget,
        database: SqliteInput,
        origins: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._database, self._folder = database, target.folder
        self.tables = TableImport(source, target, database, Texts(database, "", "", ""), PlainDialect())
        for table in LAYOUTS:
            of = (origins or {}).get(table, (table,))
            for made in (table, PLACED + table):
                self.tables.made_of(made, of)

    def read(self, name: str, properties: Mapping[str, object], host: str = "") -> Imported:
        """Import all tables. `name` is the command of the run."""
        self._place()
        self.tables.choose_default_key((CALLS, KERNELS, COPIES, READINGS), ("processId",))
        for kind in _KINDS:
            self.tables.spans(kind)
        self.tables.marks(MARKS, "start", ("name",), "roctx")
        self._read_allocations()
        read_readings(self.tables, self._folder)
        read_samples(self.tables)
        return self.tables.finish(lambda key: name or f"process {key}", properties=properties, host=host)

    def _place(self) -> None:
        """Choose where kernels and copies lie: streams of HIP, if the file has more than the default one."""
        tables = [name for name in (KERNELS, COPIES) if name in self._database.tables]
        streams = any(
            next(self._database.query(f'SELECT 1 FROM "{name}" WHERE streamId <> 0 LIMIT 1'), None) for name in tables
        )
        for name in tables:
            layout = {key: kind for key, kind in LAYOUTS[name].items() if key not in ("streamId", "queue")}
            also = {"streamId": "INTEGER", **({"queue": "INTEGER"} if streams else {})}
            cells = ", ".join(f'"{key}"' for key in layout)
            if name == COPIES:
                cells = cells.replace(
                    '"source", "destination"', f"nullif(source, {_HOST}), nullif(destination, {_HOST})"
                )
                also |= {"deviceId": "INTEGER", "kind": "TEXT"}
                kind = "replace(replace(direction, 'MEMORY_COPY_', ''), '_TO_', 'to')"
                kind = f"replace(replace({kind}, 'HOST', 'H'), 'DEVICE', 'D')"
                of_gpu = f"CASE WHEN destination <> {_HOST} THEN destination WHEN source <> {_HOST} THEN source END"
                cells += f", {'streamId, queue' if streams else 'queue'}, {of_gpu}, {kind}"
            else:
                cells += ", streamId, queue" if streams else ", queue"
            statement = f'SELECT {cells} FROM "{name}"'
            if name == KERNELS and READINGS in self._database.tables:
                # Runs that only count have their dispatches with the counters, as often as there are counters.
                statement += (
                    f' UNION ALL SELECT {cells} FROM "{READINGS}" WHERE "start" IS NOT NULL'
                    f' AND dispatch NOT IN (SELECT ifnull(dispatch, -1) FROM "{KERNELS}" WHERE processId IS NULL)'
                    " AND (ifnull(processId, 0), dispatch) NOT IN"
                    f' (SELECT ifnull(processId, 0), ifnull(dispatch, -1) FROM "{KERNELS}")'
                    " GROUP BY processId, dispatch"
                )
            self._database.derive(PLACED + name, statement, {**layout, **also})
        if ALLOCATIONS in self._database.tables:
            ordered = f'SELECT * FROM "{ALLOCATIONS}" ORDER BY CASE free WHEN 1 THEN "start" ELSE "end" END'
            self._database.derive(PLACED + ALLOCATIONS, ordered, LAYOUTS[ALLOCATIONS])

    def _read_allocations(self) -> None:
        """Add allocations; a record of freed memory has an address alone."""
        live: dict[tuple[int, int], tuple[int, int]] = {}  # process and address -> bytes, device
        for batch in self.tables.batches(PLACED + ALLOCATIONS):
            for process, part in self.tables.by_process(batch):
                keys = zip(part.integers_or("processId").tolist(), part.integers_or("address").tolist(), strict=True)
                free = part.integers_or("free", 0) == 1
                size, device = part.integers_or("bytes", 0), part.integers_or("device", _HOST)
                for i, key in enumerate(keys):
                    if free[i]:
                        size[i], device[i] = live.pop(key, (NONE, NONE))
                    else:
                        live[key] = int(size[i]), int(device[i])
                levels = [
                    _LEVELS.get(str(part.words["level"][code])) if code != NONE else None
                    for code in part.cells("level")
                ]
                kinds = ["Host" if of == _HOST else level or "Device" for of, level in zip(device, levels, strict=True)]
                kind = np.array([process.text(each) for each in kinds], dtype=np.int64)
                known = size != NONE
                self.tables.counters["frees_without_allocation"] += int((~known).sum())
                part, free, size, device, kind = (
                    part.where(known),
                    *(each[known] for each in (free, size, device, kind)),
                )
                self.tables.taken[PLACED + ALLOCATIONS] += process.rows(
                    "allocations",
                    self.tables.locations(process, part),
                    {
                        "time_ns": (np.where(free, part.integers_or("start"), part.integers_or("end")), None),
                        "address": present(part.integers_or("address")),
                        "size_bytes": present(np.where(free, -size, size)),
                        "device_type": (np.where(device == _HOST, 0, 1), None),
                        "device": present(device),
                        "correlation": present(part.integers_or("correlationId")),
                        "memory_kind": (kind, None),
                    },
                )
