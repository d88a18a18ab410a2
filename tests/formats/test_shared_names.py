"""A long name that very many events share is looked at once, not with each of them: work is counted, not time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strobe import native
from strobe.formats import perfetto
from strobe.formats.reading.protobuf import number, text
from strobe.model.kinds import PARADIGMS, ROLES

LONG, MANY = 20_000, 3_000


def slices(*, interned: bytes, event: bytes, ends: bool = True, many: int = MANY) -> bytes:
    """Packets of one sequence: what it interns, and many events."""
    sequence = number(10, 1)
    packets = [text(1, sequence + number(13, 1) + text(12, interned))]
    for i in range(many):
        packets.append(text(1, number(8, 1000 + i) + sequence + number(13, 2) + text(11, event)))
        if ends:
            packets.append(text(1, number(8, 1000 + i) + sequence + text(11, number(9, 2))))
    return b"".join(packets)


def one(field: int, iid: int = 1) -> bytes:
    return text(field, number(1, iid) + text(2, "x" * LONG))


def annotation(*parts: bytes) -> bytes:
    return text(4, b"".join(parts))


BEGIN, INSTANT = number(9, 1), number(9, 3)
NAMED = number(10, 1)  # by the number of an interned name
PERFETTO: dict[str, bytes] = {
    "name of a slice": slices(interned=one(2), event=BEGIN + NAMED),
    "name, and four categories": slices(
        interned=one(2) + one(1), event=BEGIN + NAMED + b"".join(number(3, 1) for _ in range(4))
    ),
    "name, and a category of its own": slices(interned=one(2), event=BEGIN + NAMED + text(22, "own")),
    "name of an instant": slices(interned=one(2), event=INSTANT + NAMED, ends=False),
    "category of an instant": slices(interned=one(1), event=INSTANT + number(3, 1), ends=False),
    "name of a flow": slices(interned=one(2), event=BEGIN + NAMED + number(36, 5)),
    "name of an argument": slices(interned=one(3), event=BEGIN + annotation(number(1, 1), number(4, 7))),
    "value of an argument": slices(interned=one(29), event=BEGIN + annotation(text(10, "key"), number(17, 1))),
}


@pytest.mark.parametrize("what", PERFETTO)
def test_perfetto_looks_at_a_shared_text_once(tmp_path: Path, what: str) -> None:
    inflate: Callable[[int, bytes], bytes] = perfetto._inflated
    reader = native.perfetto_reader(str(tmp_path), 1, 1 << 20, PARADIGMS, ROLES, inflate)
    reader.feed(PERFETTO[what])
    report: dict[str, Any] = json.loads(reader.finish("t"))
    events = report["processes"][0]["spans"] or MANY
    assert events == MANY
    assert 0 < report["looked_up_bytes"] < 2 * len(PERFETTO[what])


def test_perfetto_bounds_what_long_texts_become_part_of(tmp_path: Path) -> None:
    # A mark has one text for all of its arguments: every event's has the long one in it.
    many = 6_000
    event = INSTANT + annotation(text(10, "i"), number(17, 1))
    data = slices(interned=one(29), event=event, ends=False, many=many)
    reader = native.perfetto_reader(str(tmp_path), 1, 1 << 20, PARADIGMS, ROLES, perfetto._inflated)
    reader.feed(data)
    report = json.loads(reader.finish("t"))
    bound = (64 << 20) + 16 * len(data)
    assert report["counters"]["long_values_not_kept"] == many - bound // LONG
    assert report["looked_up_bytes"] < bound + 2 * len(data)


def xplane(*, event_stats: bytes = b"", metadata: bytes = b"", stat_names: tuple[str, ...] = ()) -> bytes:
    names = b"".join(
        text(5, number(1, i) + text(2, number(1, i) + text(2, name))) for i, name in enumerate(stat_names, 1)
    )
    event = number(1, 1) + number(3, 1000) + event_stats
    events = b"".join(text(4, event + number(2, 1000 * i)) for i in range(MANY))
    line = text(3, number(1, 1) + text(2, "thread") + number(3, 5) + events)
    return text(1, text(2, "/host:CPU") + text(4, number(1, 1) + text(2, metadata)) + names + line)


XPLANE: dict[str, bytes] = {
    "name": xplane(metadata=text(2, "x" * LONG)),
    "name of a stat": xplane(event_stats=text(4, number(1, 1) + number(4, 7)), stat_names=("x" * LONG,)),
    "value of a stat": xplane(event_stats=text(4, number(1, 1) + number(7, 2)), stat_names=("key", "x" * LONG)),
    "stat of all events of a name": xplane(
        metadata=text(2, "f") + text(5, number(1, 1) + text(5, "x" * LONG)), stat_names=("key",)
    ),
}


@pytest.mark.parametrize("what", XPLANE)
def test_xplane_looks_at_a_shared_text_once(tmp_path: Path, what: str) -> None:
    import numpy as np

    file = np.frombuffer(XPLANE[what], dtype=np.uint8)
    report = json.loads(native.read_xplane(file, str(tmp_path / "process-1.blocks"), 1 << 20, "t"))
    assert report["last_ns"] - report["first_ns"] == MANY
    assert 0 < report["looked_up_bytes"] < 2 * len(XPLANE[what])
