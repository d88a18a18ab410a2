"""PyTorch's memory snapshots (`torch.cuda.memory._dump_snapshot`): what its allocator did, and what it holds.

The events of a GPU become `allocations`, with what is allocated and reserved in all: this follows backwards from the
segments, which are the state at the end. Memory counts as freed once that is requested, as in PyTorch's statistics;
when the allocator may use it again (`free_completed`) is not kept. By call stack: bytes allocated, bytes at the end,
and bytes at the peak, which are the weight of the profile. Without events, there are bytes at the end only. Sizes are
those that were asked for, if the file has them. Not kept: streams, and pools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple, TypeGuard

import numpy as np

from strobe.formats.reading.import_process import present
from strobe.formats.reading.plain_pickle import plain_values
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight, clean, read_whole
from strobe.formats.reading.sqlite_input import NONE
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_Record = Mapping[object, object]
_LARGEST = 1 << 62
_MOST_DEVICES = 1024
_RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_CHANGES = ("alloc", "free_requested", *_RESERVES)
_BEFORE = Function("<allocated before the recording>")


def sniff(head: bytes) -> bool:
    """Return whether it is a pickle that begins with a dictionary of segments, or of what the allocator did."""
    return head[:1] == b"\x80" and b"}" in head[:32] and (b"segments" in head[:64] or b"device_traces" in head[:64])


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a snapshot. Raises ValueError if it is none, or has more than numbers, texts, lists and dictionaries."""
    data = read_whole(source)
    body = plain_values(data)
    segments, traces = (body.get(key) for key in ("segments", "device_traces")) if isinstance(body, dict) else (0, 0)
    if not isinstance(body, dict) or not isinstance(segments, list):
        raise ValueError("it has no segments")
    process = ProfileProcess(source, target)
    stacks = _Stacks(process, len(data))
    held: dict[int, dict[int, _Block]] = {}
    reserved: dict[int, int] = {}
    for segment in stacks.records(segments):
        device = segment.get("device", 0)
        if not _is_size(device) or device >= _MOST_DEVICES:
            process.core.count("events_not_understood")
            continue
        reserved[device] = reserved.get(device, 0) + _size(segment.get("total_size"))
        held.setdefault(device, {}).update(_blocks(segment, stacks))
    for device, trace in enumerate(traces if isinstance(traces, list) else ()):
        if device < _MOST_DEVICES and isinstance(trace, list) and trace:
            events = _events(trace, stacks)
            _Device(process, device, held.pop(device, {}), reserved.get(device, 0)).with_events(events, stacks)
    for device, blocks in held.items():
        _Device(process, device, blocks, reserved.get(device, 0)).without_events()
    _annotations(process, body.get("external_annotations"), stacks)
    settings = body.get("allocator_settings")
    plain = (
        {str(key): value for key, value in settings.items() if _is_plain(value)} if isinstance(settings, dict) else {}
    )
    return process.finish({"reserved_bytes": {f"GPU {k}": v for k, v in reserved.items()}, "allocator_settings": plain})


class _Block(NamedTuple):
    size: int
    path: int


class _Event(NamedTuple):
    """Something that the allocator did; time_ns is NONE in files of PyTorch before 2.1."""

    action: str
    address: int
    size: int
    path: int
    time_ns: int
    text: str


class _Stacks:
    """Call paths of lists of frames, each walked once. Ends walks that lead through shared lists for ever."""

    def __init__(self, process: ProfileProcess, most: int) -> None:
        self._process, self._left = process, most
        self._known: dict[int, int] = {}

    def records(self, found: object) -> Iterator[_Record]:
        """Return the dictionaries of a list. Raises ValueError once there were more than the file has bytes."""
        for each in found if isinstance(found, list) else ():
            self._left -= 1
            if self._left < 0:
                raise ValueError("its records are more than it has bytes")
            if isinstance(each, dict):
                yield each
            else:
                self._process.core.count("events_not_understood")

    def path(self, frames: object) -> int:
        """Return the call path of frames, innermost first, or ROOT."""
        if not isinstance(frames, list):
            return ROOT
        if id(frames) not in self._known:
            path = ROOT
            for frame in reversed(list(self.records(frames))):
                name, file, line = (frame.get(key) for key in ("name", "filename", "line"))
                where = file if isinstance(file, str) and file != "??" else ""
                path = self._process.path(
                    path, self._process.region(Function(str(name), where, line if _is_size(line) else 0))
                )
            self._known[id(frames)] = path
        return self._known[id(frames)]

    def before(self) -> int:
        """Return the call path of memory whose allocation was not recorded."""
        return self._process.path(ROOT, self._process.region(_BEFORE))


def _blocks(segment: _Record, stacks: _Stacks) -> Iterator[tuple[int, _Block]]:
    """Return the blocks of a segment that are in use, by their address."""
    at = _size(segment.get("address"))
    for block in stacks.records(segment.get("blocks")):
        history = block.get("history")  # before PyTorch 2.1; else the block has frames and size itself
        latest = history[0] if isinstance(history, list) and history and isinstance(history[0], dict) else {}
        size = _size(block.get("size"))
        if block.get("state") == "active_allocated":
            asked = _size(block.get("requested_size", latest.get("real_size", size)))
            yield _size(block.get("address", at)), _Block(asked, stacks.path(block.get("frames", latest.get("frames"))))
        at += size


def _events(trace: object, stacks: _Stacks) -> list[_Event]:
    found = []
    for each in stacks.records(trace):
        time_us = each.get("time_us")
        time_ns = time_us * 1000 if isinstance(time_us, int) and abs(time_us) < _LARGEST // 1000 else NONE
        text = each.get("user_metadata")
        address = each.get("addr", each.get("device_free"))
        found.append(
            _Event(
                str(each.get("action")),
                address if isinstance(address, int) else 0,
                _size(each.get("size")),
                stacks.path(each.get("frames")),
                time_ns,
                text if isinstance(text, str) else "",
            )
        )
    return found


class _Device:
    """One GPU: the blocks in use at the end by their address, and the bytes of its segments then."""

    def __init__(self, process: ProfileProcess, number: int, held: Mapping[int, _Block], reserved: int) -> None:
        self._process, self._number, self._held, self._reserved = process, number, held, reserved
        self._location = process.core.location(("memory", number), f"GPU {number} memory", 0, "task", number)

    def without_events(self) -> None:
        """Write what is in use at the end, by call stack."""
        tree = CallTree(self._process, self._location, [Weight("at the end", "bytes")])
        for block in self._held.values():
            self._add(tree, block.path, [block.size], 1)
        tree.save()

    def with_events(self, events: list[_Event], stacks: _Stacks) -> None:
        """Write what happened, and by call stack what was allocated, and in use at the peak and at the end."""
        weights = [Weight(name, "bytes") for name in ("allocated", "at the end", "at the peak")]
        tree = CallTree(self._process, self._location, weights)
        live = self._at_the_beginning(events, stacks)
        level = highest = sum(block.size for block in live.values())
        at_peak, peak = dict(live), -1
        levels = []
        for i, each in enumerate(events):
            if each.action == "alloc":
                self._add(tree, each.path, [each.size, 0, 0], 1)
                level += each.size - (live[each.address].size if each.address in live else 0)
                live[each.address] = _Block(each.size, each.path)
            elif each.action == "free_requested":
                freed = live.pop(each.address, None)
                level -= 0 if freed is None else freed.size
            levels.append(level)
            if level > highest:
                highest, peak = level, i
        for each in events[: peak + 1]:
            if each.action == "alloc":
                at_peak[each.address] = _Block(each.size, each.path)
            elif each.action == "free_requested":
                at_peak.pop(each.address, None)
        for blocks, place in ((self._held, 1), (at_peak, 2)):
            for block in blocks.values():
                self._add(tree, block.path, [block.size * (i == place) for i in range(3)], 0)
        tree.save()
        # Events that end before the snapshot do not lead to its state.
        exact = level == sum(block.size for block in self._held.values())
        self._rows(events, levels if exact else [NONE] * len(events))
        # The timeline has no other curve of this.
        times, values = np.array([each.time_ns for each in events], dtype=np.int64), np.array(levels, dtype=np.float64)
        timed = times != NONE
        self._process.core.samples(f"GPU {self._number} allocated memory", "bytes", times[timed], values[timed])
        self._marks([each for each in events if each.action not in (*_CHANGES, "free_completed")])

    def _at_the_beginning(self, events: list[_Event], stacks: _Stacks) -> dict[int, _Block]:
        """Return what was in use before the first event: what is freed first, and what nothing happened to."""
        found: dict[int, _Block] = {}
        seen = set()
        for each in events:
            if each.action in ("alloc", "free_requested") and each.address not in seen:
                seen.add(each.address)
                if each.action == "free_requested":
                    found[each.address] = _Block(each.size, stacks.before())
        return found | {address: block for address, block in self._held.items() if address not in seen}

    def _add(self, tree: CallTree, path: int, sizes: list[int], count: int) -> None:
        if path == ROOT:  # recorded without stacks
            path = self._process.path(ROOT, self._process.region(Function("<no call stack>")))
        tree.add(path, sizes, count)

    def _rows(self, events: list[_Event], levels: list[int]) -> None:
        changes = [_RESERVES.get(each.action, 0) * each.size for each in events]
        # What it was after an event is what it is at the end, without the changes that follow.
        reserved = [self._reserved - later for later in accumulate([0, *changes[:0:-1]])][::-1]
        if min(reserved) < 0:
            reserved = [NONE] * len(events)
        chosen = [i for i, each in enumerate(events) if each.action in _CHANGES and each.time_ns != NONE]
        core = self._process.core
        core.count("events_without_time", sum(each.action in _CHANGES for each in events) - len(chosen))
        if not chosen:
            return
        rows = [events[i] for i in chosen]
        sizes = {"alloc": 1, "free_requested": -1}
        text = np.array([core.text(clean(each.text)) if each.text else 0 for each in rows], dtype=np.int64)
        addresses = [each.address if 0 < each.address < _LARGEST else NONE for each in rows]
        given = [sizes[each.action] * each.size if each.action in sizes else NONE for each in rows]

        def whole(values: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values, dtype=np.int64)

        core.rows(
            "allocations",
            np.full(len(rows), self._location, dtype=np.uint32),
            {
                "time_ns": (whole([each.time_ns for each in rows]), None),
                "address": present(whole(addresses)),
                "size_bytes": present(whole(given)),
                "total_allocated_bytes": present(whole([levels[i] for i in chosen])),
                "total_reserved_bytes": present(whole([reserved[i] for i in chosen])),
                "device_type": (whole([1] * len(rows)), None),
                "device": (whole([self._number] * len(rows)), None),
                "event_index": (whole(chosen), None),
                "name": (text, np.array([bool(each.text) for each in rows], dtype=np.uint8)),
            },
        )

    def _marks(self, events: list[_Event]) -> None:
        for each in events:
            about = {"size_bytes": each.size, **({"free_bytes": each.address} if each.action == "oom" else {})}
            name = "out of memory" if each.action == "oom" else each.action
            _mark(self._process, self._location, each.time_ns, name, about)


def _annotations(process: ProfileProcess, found: object, stacks: _Stacks) -> None:
    for each in stacks.records(found):
        device, time_us, name = each.get("device"), each.get("time_us"), each.get("name")
        number = device if _is_size(device) and device < _MOST_DEVICES else 0
        location = process.core.location(("memory", number), f"GPU {number} memory", 0, "task", number)
        time_ns = time_us * 1000 if isinstance(time_us, int) and abs(time_us) < _LARGEST // 1000 else NONE
        stage = each.get("stage")
        _mark(process, location, time_ns, str(name)[:1000], {"stage": stage} if isinstance(stage, str) else {})


def _mark(process: ProfileProcess, location: int, time_ns: int, name: str, about: Mapping[str, object]) -> None:
    core = process.core
    texts = (core.text(clean(each)) for each in (name, json.dumps(about)))
    place, time, text, arguments = (np.array([each], dtype=np.int64) for each in (location, time_ns, *texts))
    core.marks(place.astype(np.uint32), time, text, "memory", arguments)


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _size(value: object) -> int:
    """Return a number of bytes or an address, 0 for anything else."""
    return value if _is_size(value) else 0


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, bool, float)) or (isinstance(value, int) and abs(value) < _LARGEST)


FORMAT = Format(
    "memory_snapshot",
    "PyTorch memory snapshot (torch.cuda.memory._dump_snapshot)",
    suffixes=(".pickle", ".pkl"),
    sniff=sniff,
    read=read,
)
