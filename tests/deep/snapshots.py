"""Snapshots of PyTorch's CUDA allocator without a GPU: a small allocator that keeps lists of blocks, as the real one.

It rounds, splits and merges as c10/cuda/CUDACachingAllocator.cpp does, and writes what
`torch.cuda.memory._dump_snapshot` of PyTorch 2.13 writes. What it holds at every moment is the truth of the tests.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import strobe

MB, START_US = 1 << 20, 1_700_000_000_000_000
_SMALL, _SMALL_SEGMENT, _LARGE_SEGMENT, _OWN_SEGMENT = MB, 2 * MB, 20 * MB, 10 * MB


def frames(*names: str) -> list[dict[str, Any]]:
    """Frames, innermost first, of `name@file:line` given from the outermost on; without a file, of C++."""
    found = []
    for each in reversed(names):
        name, _, place = each.partition("@")
        file, _, line = place.rpartition(":")
        found.append({"name": name, "filename": file or "??", "line": int(line or 0)})
    return found


@dataclass
class Block:
    """A piece of a segment: bytes that it takes, bytes that were asked for, who did; free if nobody."""

    address: int
    size: int
    asked: int = 0
    stack: Any = None


@dataclass
class Allocator:
    """A GPU of `capacity` bytes. `truth`: (event, allocated, reserved, largest free block) after each event."""

    capacity: int
    segments: list[list[Block]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    truth: list[tuple[str, int, int, int]] = field(default_factory=list)
    now_us: int = START_US
    _next: int = 0x7F0000000000

    def alloc(self, size: int, stack: Any, category: str | None = None) -> int:
        """Allocate, and return the address. Raises MemoryError after an event `oom`."""
        rounded = -(-size // 512) * 512
        small = size <= _SMALL
        free = [(b.size, b.address, s, i) for s in self.segments for i, b in enumerate(s) if b.stack is None]
        fitting = sorted(
            (each for each in free if each[0] >= rounded and (self._whole(each[2]) <= _SMALL_SEGMENT) == small),
            key=lambda each: each[:2],
        )
        if not fitting:
            whole = (
                _SMALL_SEGMENT if small else _LARGE_SEGMENT if size < _OWN_SEGMENT else -(-size // (2 * MB)) * 2 * MB
            )
            if self.reserved + whole > self.capacity:
                self._happen("oom", size=size, device_free=self.capacity - self.reserved, frames=stack)
                raise MemoryError
            segment = [Block(self._next, whole)]
            self._next += whole  # adjacent: blocks must not be merged across segments
            self.segments.append(segment)
            self._happen("segment_alloc", addr=segment[0].address, size=whole, frames=stack)
            fitting = [(whole, segment[0].address, segment, 0)]
        _, address, segment, at = fitting[0]
        block = segment[at]
        left = block.size - rounded
        if left >= 512 if small else left > _SMALL:
            segment.insert(at + 1, Block(address + rounded, left))
            block.size = rounded
        block.asked, block.stack = size, stack
        self._happen("alloc", addr=address, size=size, frames=stack, **({"category": category} if category else {}))
        return address

    def free(self, address: int) -> None:
        """Free a block, and merge it with free neighbours."""
        segment, at = next((s, i) for s in self.segments for i, b in enumerate(s) if b.address == address)
        block = segment[at]
        asked, block.stack = block.asked, None
        block.asked = 0
        self._happen("free_requested", quiet=True, addr=address, size=asked, frames=[])
        merged: list[Block] = []
        for each in segment:
            if merged and merged[-1].stack is None and each.stack is None:
                merged[-1].size += each.size
            else:
                merged.append(each)
        segment[:] = merged
        self._happen("free_completed", addr=address, size=asked, frames=[])

    def annotate(self, name: str, stage: str) -> None:
        """Write that an annotation of `torch.profiler` begins (START) or ends (END)."""
        self.now_us += 10
        self.annotations.append({"device": 0, "time_us": self.now_us, "name": name, "stage": stage})

    @property
    def reserved(self) -> int:
        """Bytes of all segments."""
        return sum(map(self._whole, self.segments))

    @property
    def allocated(self) -> int:
        """Bytes that were asked for, and are in use."""
        return sum(b.asked for s in self.segments for b in s)

    def dump(self, path: Path, last: int | None = None) -> strobe.Trace:
        """Write a snapshot of the last events, or of all, and open it."""
        segments = [
            {
                "device": 0, "address": s[0].address, "total_size": self._whole(s), "stream": 0,
                "segment_pool_id": (0, 0), "is_expandable": False,
                "segment_type": "small" if self._whole(s) <= _SMALL_SEGMENT else "large",
                "allocated_size": sum(b.size for b in s if b.stack is not None), "active_size": 0,
                "requested_size": sum(b.asked for b in s), "frames": [],
                "blocks": [
                    {
                        "address": b.address, "size": b.size, "requested_size": b.asked, "frames": b.stack or [],
                        "state": "inactive" if b.stack is None else "active_allocated",
                    }
                    for b in s
                ],
            }
            for s in self.segments
        ]  # fmt: skip
        body = {
            "segments": segments,
            "device_traces": [self.events[-last:] if last else self.events],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": self.annotations,
        }
        path.write_bytes(pickle.dumps(body, protocol=4))
        return strobe.open(path)

    def _happen(self, action: str, *, quiet: bool = False, **facts: Any) -> None:
        self.now_us += 10
        self.events.append({"action": action, "time_us": self.now_us, "stream": 0, "pool_id": (0, 0), **facts})
        largest = max((b.size for s in self.segments for b in s if b.stack is None), default=0)
        if not quiet:
            self.truth.append((action, self.allocated, self.reserved, largest))

    @staticmethod
    def _whole(segment: list[Block]) -> int:
        return sum(each.size for each in segment)
