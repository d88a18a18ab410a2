"""Tiles of the pyramid: built at the end of a run or on first use; nothing is wrong without them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import GROUPS
from strobe.store.archive import ProcessFiles
from strobe.store.raw import ProcessReader

if TYPE_CHECKING:
    from strobe.store.trace import SpanArrays, Trace


def slow_group_shares(trace: Trace, location: int, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Return the shares of groups between edges from the spans themselves: (pixels, groups) in 255ths."""
    spans = trace.span_arrays(location, int(edges[0]), int(edges[-1]) + 1)
    group = _groups(trace)[spans["region"]]
    inner, parents = _parents(spans)
    begin, end = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
    filled = np.empty((len(edges) - 1, len(GROUPS)))
    for number in range(len(GROUPS)):
        own, around = group == number, inner[group[parents] == number]
        filled[:, number] = _filled(begin[own], end[own], edges) - _filled(begin[around], end[around], edges)
    shares: npt.NDArray[np.uint8] = np.rint(255 * np.clip(filled / np.diff(edges)[:, None], 0, 1)).astype(np.uint8)
    return shares


def slow_profile(
    trace: Trace, location: int, start_ns: int, end_ns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return executions and exclusive ns by region from the spans themselves."""
    spans, regions = trace.span_arrays(location, start_ns, end_ns), len(trace.regions)
    inner, parents = _parents(spans)
    begin, end = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
    inside = np.minimum(end, end_ns) - np.maximum(begin, start_ns)
    exclusive = np.zeros(regions, dtype=np.int64)
    np.add.at(exclusive, spans["region"], inside)
    np.subtract.at(exclusive, spans["region"][parents], inside[inner])
    return np.bincount(spans["region"][begin >= start_ns], minlength=regions), exclusive


def _groups(trace: Trace) -> npt.NDArray[np.intp]:
    return np.array([GROUPS.index(str(group)) for group in trace.regions.column("group")], dtype=np.intp)


def _parents(spans: SpanArrays) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Spans that are inside of another one, and which."""
    inner = np.flatnonzero(spans["parent"] >= 0)
    return inner, np.searchsorted(spans["row"], spans["parent"][inner])


def _filled(
    begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the ns that spans, of which several may run at once, fill between edges."""

    def after(times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        times = np.sort(times)
        sums = np.concatenate([[0], np.cumsum(times - int(edges[0]), dtype=np.float64)])
        before = np.searchsorted(times, edges)
        found: npt.NDArray[np.float64] = before * (edges - edges[0]) - sums[before]
        return found

    return np.diff(after(begin) - after(end))


def ensure_tiles(files: ProcessFiles, reader: ProcessReader) -> str | None:
    """Return the path of the tiles of a process, building them when they are missing or older than its blocks.

    None when there can be none: the process still writes, or the folder is not writable. Then pictures come from the
    spans themselves.
    """
    if files.rings is not None:
        return None
    if files.tiles.exists() and files.tiles.stat().st_mtime_ns >= files.blocks.stat().st_mtime_ns:
        return str(files.tiles)
    # Under another name first: a reader never meets half a file, and two readers may build at once.
    unfinished = files.tiles.with_name(f"{files.tiles.name}.{os.getpid()}")
    try:
        reader.build_tiles(str(unfinished))
        unfinished.replace(files.tiles)
    except OSError:
        unfinished.unlink(missing_ok=True)
        return None
    return str(files.tiles)
