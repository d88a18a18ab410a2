"""PyTorch's memory snapshots (`torch.cuda.memory._dump_snapshot`): what its allocator did, and what it holds.

The events of a GPU become `allocations`, with what is allocated, active, reserved and free in all: this follows
backwards from the segments, which are the state at the end. Memory counts as freed once that is requested, as in
PyTorch's statistics; it is active until the allocator may use it again. Each block is a row of `memory_blocks`. By call
stack: bytes allocated, bytes at the end, and bytes at the peak, which are the weight of the profile. Without events,
there are bytes at the end only. Sizes are those that were asked for, if the file has them. Annotations that begin and
end are spans. Files without times have their events a microsecond apart. Of frames in C++, which
are most of a stack that has them, the operators (`at::_ops::bmm`) and nodes of backward passes are kept; of stacks with
nothing else, all but the allocator's and the interpreter's. Not kept: streams, and pools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeGuard

import numpy as np

from strobe.formats.reading import allocator_events as allocator
from strobe.formats.reading.allocator_events import AllocatorEvents, Held, Segment
from strobe.formats.reading.import_process import present
from strobe.formats.reading.plain_pickle import plain_values
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight, clean, read_whole
from strobe.formats.reading.sqlite_input import NONE
from strobe.gpu.block_lifetimes import BEFORE, NEVER
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.tables.column_arrays import Ints

_Record = Mapping[object, object]
_LARGEST = 1 << 62
_MOST_DEVICES = 1024
_KINDS = {
    "alloc": allocator.ALLOC,
    "free_requested": allocator.FREE,
    "free_completed": allocator.COMPLETED,
    "segment_alloc": allocator.SEGMENT,
    "segment_map": allocator.MAP,
    "segment_free": allocator.RELEASE,
    "segment_unmap": allocator.RELEASE,
}
_WEIGHTS = ("allocated", "at the end", "at the peak")
# Names of C++ functions: operators, nodes of backward passes, and what torch/cuda/_memory_viz.py leaves out, too.
_NATIVE = (
    re.compile(r"(at::_ops::\w+)::(?:call|redispatch)\("),
    re.compile(r"torch::autograd::(?:generated::)?(\w*Backward\d*|AccumulateGrad)::apply\("),
    # What categories of memory are known by (strobe.gpu.memory_categories).
    re.compile(
        r"(torch::autograd::(?:Engine::(?:thread_main|evaluate_function)|THPVariable_(?:to|cuda)|dispatch_to))\b"
    ),
    re.compile(r"([\w:]*(?:CUDABlasHandle|[cC]ublas\w*Workspace\w*|ChosenWorkspaceSize))\b"),
)
_MACHINERY = re.compile(
    r"torch::unwind::|torch::CapturedTraceback::|.*gather_with_cpp|.*CUDACachingAllocator|_start$|__libc_|_?Py[A-Z_]"
)
_BEFORE = Function("<allocated before the recording>")
_NO_STACK = Function("<no call stack>")


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
    held: dict[int, dict[int, Held]] = {}
    reserved: dict[int, list[Segment]] = {}
    for segment in stacks.records(segments):
        device = segment.get("device", 0)
        if not _is_size(device) or device >= _MOST_DEVICES:
            process.core.count("events_not_understood")
            continue
        blocks, free = _blocks(segment, stacks)
        expandable = bool(segment.get("is_expandable"))
        found = Segment(_size(segment.get("address")), _size(segment.get("total_size")), expandable, free)
        reserved.setdefault(device, []).append(found)
        held.setdefault(device, {}).update(blocks)
    for device, trace in enumerate(traces if isinstance(traces, list) else ()):
        if device < _MOST_DEVICES and isinstance(trace, list) and trace:
            found_here = _Device(process, device, held.pop(device, {}), reserved.get(device, []))
            found_here.with_events(_Trace(trace, stacks), stacks)
    for device, left in held.items():
        _Device(process, device, left, reserved.get(device, [])).without_events()
    _annotations(process, body.get("external_annotations"), stacks)
    settings = body.get("allocator_settings")
    plain = (
        {str(key): value for key, value in settings.items() if _is_plain(value)} if isinstance(settings, dict) else {}
    )
    sums = {f"GPU {k}": sum(each.size for each in found) for k, found in reserved.items()}
    return process.finish({"reserved_bytes": sums, "allocator_settings": plain})


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
        """Return the call path of frames, innermost first, or that of memory without frames."""
        if not isinstance(frames, list):
            return self.named(_NO_STACK)
        if id(frames) not in self._known:
            path, before = ROOT, None
            for function in _shown([_function(each) for each in reversed(list(self.records(frames)))]):
                if function != before or not _is_native(function):  # an operator is called, and dispatched again
                    path = self._process.path(path, self._process.region(function))
                before = function
            self._known[id(frames)] = self.named(_NO_STACK) if path == ROOT else path
        return self._known[id(frames)]

    def named(self, function: Function) -> int:
        """Return the call path of memory whose frames are not in the file."""
        return self._process.path(ROOT, self._process.region(function))


def _function(frame: _Record) -> Function:
    name, file, line = (frame.get(key) for key in ("name", "filename", "line"))
    where = file if isinstance(file, str) and file != "??" else ""
    return Function(str(name), where, line if _is_size(line) else 0)


def _is_native(function: Function) -> bool:
    return not (".py" in function.file or function.file.startswith("<"))


def _shown(stack: Sequence[Function]) -> list[Function]:
    """Return the functions of a stack that mean something to the user."""
    shown = list[Function]()
    for each in stack:
        if not _is_native(each):
            shown.append(each)
        elif known := next((found for pattern in _NATIVE if (found := pattern.match(each.name))), None):
            shown.append(Function(known[1]))
    return shown or [each for each in stack if not _MACHINERY.match(each.name)] or list(stack)


def _blocks(segment: _Record, stacks: _Stacks) -> tuple[dict[int, Held], int]:
    """Return the blocks of a segment that are in use, by their address, and the bytes of the largest free one."""
    at, free, found = _size(segment.get("address")), 0, {}
    for block in stacks.records(segment.get("blocks")):
        history = block.get("history")  # before PyTorch 2.1; else the block has frames and size itself
        latest = history[0] if isinstance(history, list) and history and isinstance(history[0], dict) else {}
        size, state = _size(block.get("size")), block.get("state")
        if state == "active_allocated":
            asked = _size(block.get("requested_size", latest.get("real_size", size)))
            path = stacks.path(block.get("frames", latest.get("frames")))
            found[_size(block.get("address", at))] = Held(asked, size, path)
        elif state == "inactive":
            free = max(free, size)
        at += size
    return found, free


class _Trace:
    """The events of a device; texts by the number of the event, and the events that are not about blocks or segments.

    ordered_only: the file has no times, those of `events` have the order.
    """

    def __init__(self, trace: object, stacks: _Stacks) -> None:
        records = list(stacks.records(trace))
        actions = [action if isinstance(action := each.get("action"), str) else None for each in records]
        kind = np.array([_KINDS.get(action or "", allocator.OTHER) for action in actions], dtype=np.int64)
        new = np.flatnonzero(kind == allocator.ALLOC)
        path = np.full(len(records), ROOT, dtype=np.int64)
        path[new] = [stacks.path(records[number].get("frames")) for number in new.tolist()]
        self.categories: dict[int, str] = {
            number: category.replace("_", " ")
            for number in new.tolist()
            if isinstance(category := records[number].get("category"), str)
        }
        self.names: dict[int, str] = {
            number: name
            for number, each in enumerate(records)
            if (name := each.get("user_metadata")) and isinstance(name, str)
        }
        others = np.flatnonzero(kind == allocator.OTHER).tolist()
        self.others = [(number, str(records[number].get("action")), records[number]) for number in others]
        time_us = _numbers(records, "time_us", -_LARGEST // 1000, _LARGEST // 1000, NONE)
        self.ordered_only = bool((time_us == NONE).all())
        ordered = np.arange(len(records), dtype=np.int64)
        time_ns = ordered * 1000 if self.ordered_only else np.where(time_us == NONE, NONE, time_us * 1000)
        address, size = (_numbers(records, key, 0, _LARGEST, 0) for key in ("addr", "size"))
        self.events = AllocatorEvents(kind, address, size, path, time_ns)


def _numbers(records: Sequence[_Record], key: str, least: int, end: int, default: int) -> Ints:
    """Return a column of whole numbers from `least` up to `end`, with the default for anything else."""
    values = [each.get(key) for each in records]
    with suppress(OverflowError):
        if set(map(type, values)) == {int}:
            column = np.array(values, dtype=np.int64)
            return np.where((least <= column) & (column < end), column, default)
    fits = (type(value) is int and least <= value < end for value in values)
    return np.array([value if fit else default for value, fit in zip(values, fits, strict=True)], dtype=np.int64)


class _Device:
    """One GPU: the blocks in use at the end by their address, and its segments then."""

    def __init__(self, process: ProfileProcess, number: int, held: Mapping[int, Held], segments: list[Segment]) -> None:
        self._process, self._number, self._held, self._segments = process, number, held, segments
        self._location = process.core.location(("memory", number), f"GPU {number} memory", 0, "task", number)

    def without_events(self) -> None:
        """Write what is in use at the end, by call stack."""
        tree = CallTree(self._process, self._location, [Weight("at the end", "bytes")])
        for block in self._held.values():
            tree.add(block.path, [block.size], 1)
        tree.save()

    def with_events(self, trace: _Trace, stacks: _Stacks) -> None:
        """Write what happened, and by call stack what was allocated, and in use at the peak and at the end."""
        events, core = trace.events, self._process.core
        core.count("events_in_order_only", len(events.kind) if trace.ordered_only else 0)
        blocks = allocator.blocks_of(events, self._held, stacks.named(_BEFORE))
        levels = allocator.levels_of(events, blocks, self._held, self._segments)
        tree = CallTree(self._process, self._location, [Weight(n, "bytes") for n in _WEIGHTS])
        peak = int(levels.allocated.argmax())
        peak = peak if levels.allocated[peak] > levels.before else BEFORE
        held = np.array([(each.path, each.size) for each in self._held.values()], dtype=np.int64).reshape(-1, 2).T
        new, alive = events.kind == allocator.ALLOC, blocks.alive_after(peak)
        self._add(tree, events.path[new], events.size[new], 0)
        self._add(tree, held[0], held[1], 1)
        self._add(tree, blocks.path[alive], blocks.size[alive], 2)
        tree.save()
        # Events that end before the snapshot do not lead to its state.
        exact = int(levels.allocated[-1]) == int(held[1].sum())
        self._rows(trace, levels, exact)
        self._write_blocks(trace, blocks)
        # The timeline has no other curve of this.
        timed = events.time_ns != NONE
        name = f"GPU {self._number} allocated memory"
        core.samples(name, "bytes", events.time_ns[timed], levels.allocated[timed].astype(np.float64))
        for number, action, each in trace.others:
            about = {"size_bytes": _size(each.get("size"))}
            if action == "oom":
                about |= {"free_bytes": _size(each.get("device_free")), "event_index": number}
            called = "out of memory" if action == "oom" else action
            _mark(self._process, self._location, int(events.time_ns[number]), called, about)

    def _add(self, tree: CallTree, path: Ints, size: Ints, weight: int) -> None:
        paths, group, count = np.unique(path, return_inverse=True, return_counts=True)
        sums = np.zeros(len(paths), dtype=np.int64)
        np.add.at(sums, group, size)
        for of, total, n in zip(paths.tolist(), sums.tolist(), count.tolist(), strict=True):
            given = [total * (i == weight) for i in range(len(_WEIGHTS))]
            tree.add(of, given, n if weight == 0 else 0, records=n if weight == 0 else 0)

    def _rows(self, trace: _Trace, levels: allocator.Levels, exact: bool) -> None:
        events, core = trace.events, self._process.core
        kind, address = events.kind, events.address
        # A free that is completed at once is one event.
        at_once = np.append(False, (kind[:-1] == allocator.FREE) & (address[1:] == address[:-1]))
        wanted = (kind != allocator.OTHER) & ~((kind == allocator.COMPLETED) & at_once)
        chosen = np.flatnonzero(wanted & (events.time_ns != NONE))
        core.count("events_without_time", int(wanted.sum()) - len(chosen))
        if not len(chosen):
            return
        sign = np.array([1, -1, *[0] * 5], dtype=np.int64)[kind[chosen]]
        # The state after a free is that after its completion, where that follows at once.
        after = np.where((sign < 0) & np.append(at_once, False)[chosen + 1], chosen + 1, chosen)
        named = [core.text(clean(trace.names[i])) if i in trace.names else 0 for i in chosen.tolist()]
        text = np.array(named, dtype=np.int64)
        count, largest = len(chosen), levels.largest_free[after]
        core.rows(
            "allocations",
            np.full(count, self._location, dtype=np.uint32),
            {
                "time_ns": (events.time_ns[chosen], None),
                "address": present(np.where(address[chosen] > 0, address[chosen], NONE)),
                "size_bytes": present(np.where(sign != 0, sign * events.size[chosen], NONE)),
                "total_allocated_bytes": present(levels.allocated[chosen] if exact else np.full(count, NONE)),
                "total_reserved_bytes": present(levels.reserved[chosen]),
                "total_active_bytes": present(levels.active[after] if exact else np.full(count, NONE)),
                "largest_free_bytes": present(np.where(largest < 0, NONE, largest)),
                "device_type": (np.ones(count, dtype=np.int64), None),
                "device": (np.full(count, self._number, dtype=np.int64), None),
                "event_index": (chosen, None),
                "name": (text, (text > 0).astype(np.uint8)),
            },
        )

    def _write_blocks(self, trace: _Trace, blocks: allocator.Blocks) -> None:
        core, times = self._process.core, trace.events.time_ns
        count, first = len(blocks.size), int(times[times != NONE].min(initial=NEVER))
        if not count or first == NEVER:
            return
        earlier = blocks.alive_from == BEFORE
        begin = np.where(earlier, first, times[blocks.alive_from])
        freed = blocks.alive_until != NEVER
        end = np.append(times, NONE)[np.where(freed, blocks.alive_until, len(times))]
        known = [trace.categories.get(i) for i in blocks.alive_from.tolist()]
        category = np.array([0 if each is None else core.text(clean(each)) for each in known], dtype=np.int64)
        there = np.array([each is not None for each in known], dtype=np.uint8)
        path = self._process.numbers(blocks.path)
        core.rows(
            "memory_blocks",
            np.full(count, self._location, dtype=np.uint32),
            {
                "time_ns": (begin, None),
                "duration_ns": present(np.where((end == NONE) | (begin == NONE), NONE, end - begin)),
                "event_index": present(np.where(earlier, NONE, blocks.alive_from)),
                "freed_index": present(np.where(freed, blocks.alive_until, NONE)),
                "address": present(np.where(blocks.address > 0, blocks.address, NONE)),
                "size_bytes": (blocks.size, None),
                "device_type": (np.ones(count, dtype=np.int64), None),
                "device": (np.full(count, self._number, dtype=np.int64), None),
                "call_path": (path, None),
                "category": (category, there),
            },
        )


def _annotations(process: ProfileProcess, found: object, stacks: _Stacks) -> None:
    """Write what begins and ends as spans, anything else as marks."""
    core = process.core
    open_ones: dict[tuple[int, str], list[int]] = {}
    spans: list[tuple[int, int, int, int]] = []
    marks: dict[int, tuple[int, int, str, object]] = {}
    for at, each in enumerate(stacks.records(found)):
        device, time_us, name = each.get("device"), each.get("time_us"), str(each.get("name"))[:1000]
        number = device if _is_size(device) and device < _MOST_DEVICES else 0
        time_ns = time_us * 1000 if isinstance(time_us, int) and abs(time_us) < _LARGEST // 1000 else NONE
        stage = each.get("stage")
        begun = open_ones.setdefault((number, name), [])
        if stage == "END" and begun:
            start_ns = marks.pop(begun.pop())[1]
            where = core.location(("annotations", number), f"GPU {number} annotations", 0, "thread")
            spans.append((where, start_ns, time_ns, core.region(clean(name), "torch", "range")))
            continue
        if stage == "START":
            begun.append(at)
        marks[at] = number, time_ns, name, stage
    if spans:
        where, start, end, region = np.array(sorted(spans, key=lambda each: each[1]), dtype=np.int64).T.copy()
        core.spans(where.astype(np.uint32), start, end, region.astype(np.uint32))
    for number, time_ns, name, stage in marks.values():
        location = core.location(("memory", number), f"GPU {number} memory", 0, "task", number)
        _mark(process, location, time_ns, name, {"stage": stage} if isinstance(stage, str) else {})


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
