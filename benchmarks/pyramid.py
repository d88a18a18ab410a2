"""The pyramid of a large trace: what it costs to build, its bytes, and pictures of a thousand rows at every zoom.

./dev bench pyramid TRACE [--rows 1000] [--rounds 5]

TRACE is a folder, for instance one of `strobe generate`. Its files are linked into another folder, where tiles are
built anew. Figures are of one process with two threads.
"""

import argparse
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import folder, middle, table

import strobe

WIDTH = 1024  # what the page asks for at once
ZOOMS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 131072, 1048576)


def linked(trace: Path, place: Path) -> Path:
    """The trace without any tiles."""
    copy = place / trace.name
    copy.mkdir()
    for file in trace.iterdir():
        if file.suffix != ".tiles":
            (copy / file.name).symlink_to(file.resolve())
    return copy


def cpu_ns(work: Callable[[], object]) -> float:
    """CPU time of all threads."""
    begin = time.process_time_ns()
    work()
    return time.process_time_ns() - begin


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU milliseconds."""
    begin, cpu = time.perf_counter(), cpu_ns(work)
    return 1e3 * (time.perf_counter() - begin), cpu / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with folder() as place:
        copy = linked(options.trace, place)
        trace = strobe.open(copy)
        spans, end = trace.span_count, trace.info.duration_ns
        build = cpu_ns(trace.pyramid.build)
        size = {
            suffix: sum(path.stat().st_size for path in copy.glob(f"*{suffix}")) for suffix in (".blocks", ".tiles")
        }
        overview = copy / "overview.tiles"
        places = f"{len(trace.locations)} locations of {len(trace.readers)} processes"
        print(f"\n## The pyramid of {spans:.2e} spans in {places}\n")
        print(
            table(
                [
                    {
                        "building, ns CPU a span": f"{build / spans:.0f}",
                        "blocks, bytes a span": f"{size['.blocks'] / spans:.2f}",
                        "tiles, bytes a span": f"{size['.tiles'] / spans:.2f}",
                        "of them the overview": f"{overview.stat().st_size / spans if overview.exists() else 0:.3f}",
                    }
                ]
            )
        )
        rows, rng = range(min(options.rows, len(trace.locations))), random.Random(1)
        most = max(range(len(trace.rows)), key=lambda number: len(trace.rows[number].locations))
        eighths = -(-len(trace.rows[most].locations) // 8)
        kinds: dict[str, Callable[[int, int], object]] = {
            "cells": lambda begin, stop: trace.pyramid.cells(rows, begin, stop, WIDTH),
            "shares of groups": lambda begin, stop: trace.pyramid.group_shares(rows, begin, stop, WIDTH),
            "profile": lambda begin, stop: trace.pyramid.profile(rows, begin + 1, stop - 1),
            f"{eighths} rows of 8": lambda begin, stop: trace.pyramid.row_cells(
                most, 1, 0, eighths, begin, stop, WIDTH
            ),
        }
        found = []
        for zoom in ZOOMS:
            level = max(0, int(end / zoom / WIDTH).bit_length())
            starts = [int(rng.random() * end * (1 - 1 / zoom)) >> level << level for _ in range(options.rounds)]
            windows = [(at, at + (WIDTH << level)) for at in starts]
            line = {"zoom": str(zoom)}
            for name, draw in kinds.items():
                times = [measured(partial(draw, *window)) for window in windows]
                wall, cpu = [each[0] for each in times], [each[1] for each in times]
                line[f"{name}: wall (most), CPU"] = f"{middle(wall):.0f} ({max(wall):.0f}), {middle(cpu):.0f}"
            found.append(line)
        print(f"\n## Pictures of {len(rows)} rows x {WIDTH} pixels, milliseconds, {options.rounds} places\n")
        print(table(found))


if __name__ == "__main__":
    main()
