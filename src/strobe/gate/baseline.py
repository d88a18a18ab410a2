"""The file of a baseline: a history of points, each with the runs that were saved together. Readable JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from strobe.errors import StrobeError, TraceError, UsageError
from strobe.gate.runs import Run

_VERSION = 1


@dataclass(frozen=True)
class Point:
    """Runs that were saved together, and a name for what they are of: a revision, a date."""

    name: str
    runs: Sequence[Run]


def read_points(path: str) -> list[Point]:
    """Return the points of a file, the oldest first. Raises UsageError without a file, TraceError for another one."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        if raw["strobe_baseline"] != _VERSION:
            raise TraceError(f"'{path}' is a baseline of version {raw['strobe_baseline']}, not {_VERSION}")
        points = [Point(each["name"], [Run.read(run) for run in each["runs"]]) for each in raw["points"]]
        if not all(point.runs for point in points):
            raise ValueError("a point without runs")
        return points
    except FileNotFoundError:
        do = "To make it: strobe check TRACE... --baseline FILE --save"
        raise UsageError(f"there is no baseline '{path}'", do=do) from None
    except OSError as error:
        raise TraceError(f"cannot read '{path}': {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TraceError(f"'{path}' is not a baseline of strobe check") from error


def add_point(path: str, point: Point) -> None:
    """Append a point to a file, which is made if it does not exist. Raises StrobeError if it cannot be written."""
    points = read_points(path) if os.path.exists(path) else []
    raw = {"strobe_baseline": _VERSION, "points": [asdict(each) for each in (*points, point)]}
    part = f"{path}.part"
    try:
        Path(part).write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise StrobeError(f"cannot write '{path}': {error.strerror}") from error
