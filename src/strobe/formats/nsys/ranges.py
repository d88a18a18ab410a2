"""NVTX in Nsight Systems exports: ranges with their domains, categories and payloads."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from strobe.formats.nsys.export import Export
from strobe.formats.nsys.tables import (
    NVTX_CATEGORIES,
    NVTX_DOMAIN,
    NVTX_PUSH_POP,
    NVTX_START_END,
    NVTX_THREADS,
    PAYLOADS,
)
from strobe.formats.reading.database_tables import Region, as_json_text, there
from strobe.formats.reading.import_process import Cells, ImportProcess, present
from strobe.formats.reading.sqlite_input import NONE, Batch, combinations, factor
from strobe.model.emit_nvtx import of_emit_nvtx
from strobe.model.kinds import mpi_role


class Ranges:
    """The table NVTX_EVENTS. Made before other tables are read, because it names threads, too."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._domains: dict[tuple[int, int], str] = {}
        self._categories: dict[tuple[int, int, int], str] = {}
        self._read_definitions()

    def _read_definitions(self) -> None:
        """Read the definitions that ranges refer to: domains, categories, names of threads."""
        table = self._export.tables.database.tables.get("NVTX_EVENTS")
        if table is None or "eventType" not in table.columns or "globalTid" not in table.columns:
            return
        columns = [
            each if each in table.columns else "NULL"
            for each in ("eventType", "globalTid", "domainId", "category", "text", "textId")
        ]
        kinds = ", ".join(map(str, (*NVTX_CATEGORIES, *NVTX_THREADS, NVTX_DOMAIN)))
        query = f"SELECT {', '.join(columns)} FROM NVTX_EVENTS WHERE eventType IN ({kinds})"
        for kind, thread, domain, category, text, text_id in self._export.tables.database.query(query):
            if text is None and isinstance(text_id, int):
                text = self._export.tables.texts.of([text_id])[text_id]
            if not isinstance(thread, int) or text is None:
                continue
            process, within = thread >> 24, domain if isinstance(domain, int) else 0
            if kind == NVTX_DOMAIN:
                self._domains[process, within] = str(text)
            elif kind in NVTX_THREADS:
                self._export.thread_names[thread] = str(text)
            elif isinstance(category, int):
                self._categories[process, within, category] = str(text)
            else:
                continue
            self._export.tables.taken["NVTX_EVENTS"] += 1

    def read(self) -> None:
        """Import all ranges and marks."""
        for batch in self._export.tables.batches("NVTX_EVENTS"):
            event = batch.integers("eventType")
            if event is None:
                self._export.tables.counters["events_without_time"] += batch.count
                continue
            push_pop, start_end = np.isin(event, NVTX_PUSH_POP), np.isin(event, NVTX_START_END)
            defines = np.isin(event, (*NVTX_CATEGORIES, *NVTX_THREADS, NVTX_DOMAIN))
            # Start/end ranges need not nest, nor end on the thread that began them.
            for chosen, row in ((push_pop, ""), (start_end, "ranges")):
                if chosen.any():
                    for process, part in self._export.tables.by_process(batch if chosen.all() else batch.where(chosen)):
                        self._ranges(process, part, row)
            rest = ~(push_pop | start_end | defines)
            if rest.any():
                for process, part in self._export.tables.by_process(batch.where(rest)):
                    self._export.tables.instants(process, part, "NVTX_EVENTS", "start", ("text", "textId"), "nvtx")

    def _ranges(self, process: ImportProcess, part: Batch, row: str) -> None:
        text = part.coded.get("text", np.full(part.count, NONE, dtype=np.int64))
        text_id, thread, category = map(part.integers_or, ("textId", "globalTid", "category"))
        domain = part.integers_or("domainId")
        domain = np.where(domain == NONE, 0, domain)
        first, codes = combinations([text, text_id, domain, thread >> 24])
        by_number = self._export.tables.texts.of({int(text_id[i]) for i in first if text_id[i] != NONE})
        regions, operators = [], []
        for i in first:
            title = by_number.get(int(text_id[i])) if text[i] == NONE else str(part.words["text"][int(text[i])])
            within = self._domains.get((int(thread[i]) >> 24, int(domain[i])), "")
            name, operator = of_emit_nvtx(title or "<unnamed range>")
            regions.append(process.region(*_range_region(name, within, operator)))
            operators.append(operator)
        tables: dict[str, dict[str, Cells]] = {}
        side: dict[str, Cells] = {}
        # Categories are numbers of a domain of a process.
        if (category != NONE).any():
            first_of, places = combinations([thread >> 24, domain, category])
            names = {
                place: self._categories.get(
                    (int(thread[i]) >> 24, int(domain[i]), int(category[i])), str(int(category[i]))
                )
                for place, i in enumerate(first_of)
                if category[i] != NONE
            }
            side["category"] = process.words(places, names)
        for column, to in (("color", "color"), ("rangeId", "range_id")):
            values = part.integers_or(column)
            if (values != NONE).any():
                side[to] = present(values)
        ended_by = part.integers_or("endGlobalTid")
        other = np.where((ended_by == thread) | (ended_by == NONE), NONE, ended_by & 0xFFFFFF)
        if (other != NONE).any():
            side["end_thread_id"] = present(other)
        side.update(self._payloads(process, part))
        for column in ("jsonText", "jsonTextId"):
            if (part.cells(column) != NONE).any():
                texts = self._export.tables.texts_of(process, part, "NVTX_EVENTS", column)
                side["json"] = _either(side["json"], texts) if "json" in side else texts
        if side:
            tables["range_spans"] = side
        if any(operators):
            tables["operator_spans"] = _operator_cells(process, operators, codes)
        arguments: list[tuple[str, Cells]] = []
        known = {"start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId", "category"}
        known |= {"color", "rangeId", "jsonText", "jsonTextId", *PAYLOADS}
        for column in part.columns:
            codes_of = part.cells(column)
            if column not in known and (codes_of != NONE).any():
                meanings = self._export.tables.meanings("NVTX_EVENTS", part, column, codes_of)
                arguments.append((column, process.words(codes_of, meanings, as_json_text)))
        self._export.tables.taken["NVTX_EVENTS"] += process.spans(
            self._export.tables.locations(process, part, row),
            part.integers_or("start"),
            part.integers_or("end"),
            np.array(regions, dtype=np.uint32)[codes],
            tables,
            arguments,
        )

    def _payloads(self, process: ImportProcess, part: Batch) -> dict[str, Cells]:
        """Return the numbers that ranges carry as decimal texts, and their types."""
        numbers = np.zeros(part.count, dtype=np.int64)
        types = np.zeros(part.count, dtype=np.int64)
        valid_cells = np.zeros(part.count, dtype=np.uint8)
        for column in PAYLOADS:
            codes = part.cells(column)
            if not (codes != NONE).any():
                continue
            mask = 2**64 - 1 if column == "uint64Value" else -1
            texts = {
                int(code): str(part.words[column][int(code)] if column in part.coded else int(code) & mask)
                for code in factor(codes)[0]
                if code != NONE
            }
            values, valid = process.words(codes, texts)
            has = np.ones(part.count, dtype=bool) if valid is None else valid.astype(bool)
            numbers, types = np.where(has, values, numbers), np.where(has, process.text(column[:-5]), types)
            valid_cells = valid_cells | has.astype(np.uint8)
        return {"payload": (numbers, valid_cells), "payload_type": (types, valid_cells)} if valid_cells.any() else {}


def _operator_cells(
    process: ImportProcess, operators: list[dict[str, str]], codes: npt.NDArray[np.int64]
) -> dict[str, Cells]:
    cells: dict[str, Cells] = {}
    for column in ("sequence_number", "record_function_id"):
        values = np.array([int(each.get(column, NONE)) for each in operators], dtype=np.int64)
        cells[column] = present(values[codes])
    for column, key in (("shapes", "shapes"), ("concrete_inputs", "inputs")):
        cells[column] = process.words(codes, {place: each.get(key) for place, each in enumerate(operators)})
    return cells


def _range_region(name: str, domain: str, operator: dict[str, str]) -> Region:
    if domain == "MPI" and name.startswith("MPI_"):
        return name, "mpi", mpi_role(name), domain
    if domain == "NCCL" and name.startswith("nccl"):
        return name, "nvtx", "collective" if not re.match(r"nccl(Group|Comm)", name) else "range", domain
    if operator:
        return name, "torch", "operator" if "::" in name else "range", domain
    return name, "nvtx", "range", domain


def _either(one: Cells, other: Cells) -> Cells:
    """Return the cells of one column, or else of the other."""
    has = there(one).astype(bool)
    return np.where(has, one[0], other[0]), (there(one) | there(other)).astype(np.uint8)
