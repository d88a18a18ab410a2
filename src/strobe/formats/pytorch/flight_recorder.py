"""Dumps of PyTorch's flight recorder (`TORCH_FR_BUFFER_SIZE`): the last collectives and messages of a rank, as pickle
or JSON. Versions 2.0 and later (PyTorch 2.4).

An entry is a span without duration when the rank called the operation: the dump has no end of the call. Completion is
`pending_ns` after that, when PyTorch noticed it. A row of the timeline is a process group. Shapes, types and Python
stack are those of `operator_spans`; `arguments` have the entry's state and whatever has no column. The rank is the
number at the end of the file's name, as in PyTorch's own analyser. Not kept: the state of NCCL's communicators.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from strobe.formats.reading.import_process import Cells, ImportProcess
from strobe.formats.reading.plain_pickle import plain_values
from strobe.formats.reading.profile_import import clean, read_whole
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.ranks.collective_kernels import FROM_DUMP

_LARGEST = 1 << 62
_MOST_FIELDS, _MOST_DIMENSIONS = 64, 64  # of an entry; of a tensor
_RANK = re.compile(r"(\d{1,9})(?:\.(?:json|pickle|pkl|pt|bin|gz|zst))*$")
_PEERS = re.compile(r"(send|recv) (\d{1,9})(->|<-)(\d{1,9})")
# What has a column, or is written in another form.
_COLUMNS = {
    *("process_group", "profiling_name", "time_created_ns", "collective_seq_id", "p2p_seq_id", "is_p2p", "frames"),
    *("input_sizes", "input_dtypes"),
}
_ELEMENT_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e5m2", "Float8_e4m3fn", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
    **dict.fromkeys(("Short", "Half", "BFloat16", "UInt16"), 2),
    **dict.fromkeys(("Int", "Float", "UInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Long", "Double", "UInt64", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}

Entry = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Return whether it is a pickle or JSON of a dictionary with groups, or entries with what FlightRecorder.cpp has
    in each."""
    known = b"pg_config" in head or (b"profiling_name" in head and b"collective_seq_id" in head)
    pickled = head[:1] == b"\x80" and b"}" in head[:32] and b"version" in head[:256]
    return known and (
        pickled or re.match(rb'\s*\{\s*"(?:comm_lib_version|entries|nccl_|pg_|version)', head) is not None
    )


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the dump of a rank. Raises ValueError if it has no entries, or more than plain values."""
    data = read_whole(source)
    body = plain_values(data) if data[:1] == b"\x80" else _json(data)
    entries = body.get("entries") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(entries, list):
        raise ValueError("it has no entries: it was written without collectives")
    groups = _groups(body.get("pg_config"))
    known = {rank for ranks in groups.values() for rank in ranks}
    named = _RANK.search(Path(source.name).name)
    rank = int(named[1]) if named and (not known or int(named[1]) in known) else None
    process = ImportProcess(target, 0)
    sound = list(_sound(entries, process))
    base_ns = min((each["time_created_ns"] for each in sound), default=0)
    _Writer(process, base_ns, rank, groups).write(sound)
    status = body.get("pg_status")
    facts = {key: body[key] for key in ("version", "comm_lib_version") if isinstance(body.get(key), str)}
    whole = len(known) or None
    process.finish(source.name, source.name, main=True, rank=rank, ranks=whole)
    return Imported(
        processes=1,
        first_ns=process.first_ns if process.used else 0,
        last_ns=process.last_ns if process.used else 0,
        base_ns=base_ns,
        rank=rank,
        ranks=whole,
        properties={**facts, "pg_status": _plain(status)} if isinstance(status, dict) else facts,
    )


def _json(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _groups(config: object) -> dict[str, list[int]]:
    """Return the ranks of each group by its name, as far as they are known."""
    found = {}
    for name, each in config.items() if isinstance(config, dict) else ():
        text = each.get("ranks") if isinstance(each, dict) else None
        try:
            ranks = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError):
            continue
        if isinstance(ranks, list) and ranks and all(_is_size(rank) for rank in ranks):
            found[str(name)] = ranks
    return found


def _sound(entries: list[object], process: ImportProcess) -> Iterator[Entry]:
    """Yield the entries that have a name, a group and a time; the others are counted."""
    for each in entries:
        if not isinstance(each, dict) or not isinstance(each.get("profiling_name"), str):
            process.left_out("damaged_records")
            continue
        group = each.get("process_group")
        if not isinstance(group, (tuple, list)) or len(group) != 2 or not all(isinstance(name, str) for name in group):
            process.left_out("damaged_records")
        elif not _is_size(each.get("time_created_ns")):
            process.left_out("events_without_time")
        else:
            process.taken()
            yield each


class _Writer:
    """Writes the entries of a rank; times count from the first of them."""

    def __init__(self, process: ImportProcess, base_ns: int, rank: int | None, groups: Mapping[str, list[int]]) -> None:
        self._process, self._base_ns, self._rank, self._groups = process, base_ns, rank, groups

    def write(self, entries: list[Entry]) -> None:
        """Write spans with their attributes, and messages. Spans of a table of arguments have as many rows each."""
        process = self._process
        process.count("calls_without_end", len(entries))
        start = np.array([each["time_created_ns"] - self._base_ns for each in entries], dtype=np.int64)
        places = np.array([self._location(each) for each in entries], dtype=np.uint32)
        regions = np.array([self._region(each) for each in entries], dtype=np.uint32)
        operators = self._cells([self._operator(each) for each in entries])
        collectives = self._cells([self._collective(each) for each in entries])
        keys = {key for each in entries for key in each if isinstance(key, str)} - _COLUMNS
        if len(keys) > _MOST_FIELDS:
            raise ValueError(f"its entries have more than {_MOST_FIELDS} kinds of fields")
        arguments = [(clean(key), self._texts([_field(each, key) for each in entries])) for key in sorted(keys)]
        tables = {"operator_spans": operators, "collective_spans": collectives}
        process.spans(places, start, start, regions, tables, arguments)
        self._messages(entries, places)

    def _location(self, entry: Entry) -> int:
        name, description = _group(entry)
        return self._process.location((name, description), _shown(name, description), 0, "task")

    def _region(self, entry: Entry) -> int:
        name = entry["profiling_name"].partition(" ")[0]
        return self._process.region(clean(name), "torch", "p2p" if _is_message(entry) else "collective", FROM_DUMP)

    def _operator(self, entry: Entry) -> dict[str, object]:
        return {
            "shapes": _field(entry, "input_sizes"),
            "types": _text(entry.get("input_dtypes")),
            "call_stack": _stack(entry.get("frames")),
        }

    def _collective(self, entry: Entry) -> dict[str, object]:
        (name, description), peers = _group(entry), _PEERS.search(entry["profiling_name"])
        ranks = self._groups.get(name)
        completed, created = entry.get("time_discovered_completed_ns"), entry["time_created_ns"]
        types = entry.get("input_dtypes") or entry.get("output_dtypes")
        sequence = entry.get("p2p_seq_id" if _is_message(entry) else "collective_seq_id")
        return {
            "collective": entry["profiling_name"].partition(":")[2].partition(" ")[0] or entry["profiling_name"],
            "dtype": types[0] if isinstance(types, list) and types and isinstance(types[0], str) else None,
            "in_elements": _elements(entry.get("input_sizes")),
            "out_elements": _elements(entry.get("output_sizes")),
            "group": name,
            "group_description": description,
            "group_ranks": None if ranks is None else json.dumps(ranks),
            "group_size": None if ranks is None else len(ranks),
            "rank": ranks.index(self._rank) if ranks and self._rank in ranks else None,
            "sequence": sequence if _is_size(sequence) else None,
            "source_rank": int(peers[2 if peers[1] == "send" else 4]) if peers else None,
            "destination_rank": int(peers[4 if peers[1] == "send" else 2]) if peers else None,
            "pending_ns": completed - created if _is_size(completed) and completed >= created else None,
        }

    def _messages(self, entries: list[Entry], places: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        """Write the sends, and the receives that were complete, with the ranks of both in the job."""
        rows, at = [], []
        for number, each in enumerate(entries):
            if (peers := _PEERS.search(each["profiling_name"])) is None:
                continue
            cells, sends = self._collective(each), peers[1] == "send"
            if not sends and cells["pending_ns"] is None:
                continue
            (name, _), own = _group(each), int(peers[4])
            ranks = sorted(self._groups.get(name, []))
            pending, created = cells["pending_ns"], each["time_created_ns"] - self._base_ns
            elements = cells["in_elements" if sends else "out_elements"]
            size = _ELEMENT_BYTES.get(str(cells["dtype"]))
            rows.append(
                {
                    "time_ns": created if sends or not isinstance(pending, int) else created + pending,
                    "direction": "send" if sends else "receive",
                    "communicator_rank": own,
                    "peer_rank": ranks[own] if own < len(ranks) else None,
                    "communicator": name,
                    "size_bytes": elements * size if size and isinstance(elements, int) else None,
                    "pending_ns": pending,
                }
            )
            at.append(number)
        if rows:
            self._process.rows("messages", places[at], self._cells(rows))

    def _cells(self, rows: list[dict[str, object]]) -> dict[str, Cells]:
        """Return rows as columns; texts become numbers, and cells that are None stay empty."""
        found = {}
        for name in rows[0] if rows else ():
            cells = [row[name] for row in rows]
            if any(isinstance(cell, str) for cell in cells):
                found[name] = self._texts(cells)
            else:
                values = [cell if isinstance(cell, int) else 0 for cell in cells]
                valid = np.array([isinstance(cell, int) for cell in cells], dtype=np.uint8)
                found[name] = np.array(values, dtype=np.int64), valid
        return found

    def _texts(self, cells: list[Any]) -> Cells:
        numbers = [0 if cell is None else self._process.text(clean(str(cell))) for cell in cells]
        return np.array(numbers, dtype=np.int64), np.array([cell is not None for cell in cells], dtype=np.uint8)


def _group(entry: Entry) -> tuple[str, str]:
    """Return the name of the entry's group, and what it is for ("" where it has no description)."""
    name, description = (clean(str(each)) for each in entry["process_group"])
    return name, "" if description == "undefined" else description


def _shown(name: str, description: str) -> str:
    return f"group {name}" if description in ("", name) else f"group {name} ({description})"


def _is_message(entry: Entry) -> bool:
    return entry.get("is_p2p") is True or _PEERS.search(entry["profiling_name"]) is not None


def _stack(frames: object) -> str | None:
    """Return frames, innermost first, as a text with the outermost one in its first line."""
    if not isinstance(frames, list):
        return None
    lines = []
    for each in frames:
        if isinstance(each, dict):
            lines.append(f"{each.get('name')} ({each.get('filename')}:{each.get('line')})".replace("\n", " "))
    return "\n".join(reversed(lines)) or None


def _elements(sizes: object) -> int | None:
    """Return the number of elements of tensors, None if it is not known."""
    if not _are_shapes(sizes):
        return None
    total = sum(math.prod(shape) for shape in sizes)
    return total if total < _LARGEST else None


def _are_shapes(sizes: object) -> TypeGuard[list[list[int]]]:
    shapes: list[Any] = sizes if isinstance(sizes, list) else [None]
    lists = all(isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS for shape in shapes)
    return lists and all(_is_size(each) for shape in shapes for each in shape)


def _field(entry: Entry, key: str) -> str | None:
    """Return a field as JSON; None where it is missing, or a shape that is none."""
    value = entry.get(key)
    return None if key in ("input_sizes", "output_sizes") and not _are_shapes(value) else _text(value)


def _text(value: object) -> str | None:
    """Return a value as JSON, None if there is none or it cannot be written."""
    try:
        return None if value is None else json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(status: Mapping[object, object]) -> dict[str, object]:
    return {str(key): value for key, value in status.items() if _text(value) is not None}


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


FORMAT = Format(
    "flight_recorder",
    "PyTorch flight recorder dump (TORCH_FR_BUFFER_SIZE, nccl_trace_rank_N)",
    suffixes=(".pickle", ".json"),
    sniff=sniff,
    read=read,
)
