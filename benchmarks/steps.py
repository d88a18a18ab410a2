"""Steps and structure of long threads: CPU time of the offline search, on a real training repeated end to end.

./dev bench steps [--spans 1000000]
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from measure import table

sys.path.insert(0, str(Path(__file__).parents[1]))
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.loop_choice.main_loop import find_loops
from strobe.steps.loops.structure import structure_of
from strobe.steps.thread_spans import Stream
from tests.unit.streams import sample

ROUNDS = 5


def repeated(stream: Stream, times: int) -> Stream:
    """The same thread over and over."""
    rows, span_ns = len(stream), int(stream.end_ns.max() - stream.start_ns[0])
    round_of = np.repeat(np.arange(times), rows)
    parent = np.tile(stream.parent, times)
    return replace(
        stream,
        start_ns=np.tile(stream.start_ns, times) + round_of * span_ns,
        duration_ns=np.tile(stream.duration_ns, times),
        region=np.tile(stream.region, times),
        call_path=np.tile(stream.call_path, times),
        parent=np.where(parent >= 0, parent + round_of * rows, -1),
    )


def cpu_s(function: Callable[[], object]) -> float:
    """The least CPU time of some calls."""
    least = float("inf")
    for _ in range(ROUNDS):
        before = time.process_time()
        function()
        least = min(least, time.process_time() - before)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=1_000_000)
    options = parser.parse_args()
    stream, _ = sample()
    big = repeated(stream, max(1, options.spans // len(stream)))
    rows = [
        {"what": what, "spans": len(big), "CPU s": round(cpu_s(function), 3)}
        for what, function in (
            ("which level is the step", lambda: find_loops(big)),
            ("steps, with classes, parts, outliers", lambda: steps_of(big)),
            ("structure, with tree, graph, order", lambda: structure_of(big)),
        )
    ]
    print(table(rows))


if __name__ == "__main__":
    main()
