"""The kernels of structure: CPU time, instructions, bytes per event; on sequences of known shape and public traces.

./dev bench structure [--events 1000000] [--traces FOLDER] [--instructions]

--traces: a folder of Kineto traces (*.json.gz); their kernels in launch order and the operators of their main thread
are measured, too. --instructions: count with callgrind (needs valgrind) what one event costs online.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from measure import table

from benchmarks.encoded_sizes import order_bytes
from strobe.native import core

Ids = npt.NDArray[np.int64]
ROUNDS = 5
# Limits of a graph while a program is recorded (native/core/folding/): nodes, edges, bytes of partitions.
ONLINE = (32768, 57344, 3 << 18)


def sequences(count: int) -> dict[str, Ids]:
    """Shapes that matter: a training step, variable lengths, a short loop, noise in a loop, no structure."""
    draw = np.random.default_rng(1)
    step = draw.integers(0, 200, 3000)
    varying: list[int] = []
    while len(varying) < count:
        varying += [*range(40), *range(40, 46)] + [*range(46, 52)] * int(draw.integers(3, 50)) + [60, 61, 62] * 7
    body = draw.integers(0, 7000, 12_000)
    noisy = np.tile(body, count // len(body) + 1)[:count]
    noisy[draw.random(count) < 0.02] = 7000
    return {
        "step of 3000 operators, 200 kinds": np.tile(step, count // len(step) + 1)[:count],
        "variable lengths": np.array(varying[:count]),
        "loop of 10": np.arange(count) % 10,
        "step of 12000, 2 % noise": noisy,
        "random, 500 kinds": draw.integers(0, 500, count),
        "random, 100000 kinds": draw.integers(0, 100_000, count),
        "rounds of 50000 in any order": np.concatenate([draw.permutation(50_000) for _ in range(count // 50_000 + 1)])[
            :count
        ],
    }


def cpu_ns(function: Callable[[], object], events: int) -> float:
    """The least CPU time of some calls, in nanoseconds per event."""
    least = float("inf")
    for _ in range(ROUNDS):
        before = time.thread_time_ns()
        function()
        least = min(least, time.thread_time_ns() - before)
    return least / events


def speed(name: str, ids: Ids) -> dict[str, object]:
    """Nanoseconds per event of everything that is done with a sequence."""
    names, times = ids.astype(np.uint64), np.arange(len(ids), dtype=np.int64) * 1000
    small = ids.astype(np.uint32)
    window = 1 << 17
    graph = core.build_graph(names, times, times, *ONLINE)

    def levels(events: int) -> float:
        return cpu_ns(lambda: core.find_levels(small[:events], times[:events], 3, 64), 1) / 1e6

    return {
        "sequence": name,
        "edges": len(graph.edges()["count"]),
        "graph and t-EFG, ns/event": f"{cpu_ns(lambda: core.build_graph(names, times, times, *ONLINE), len(ids)):.1f}",
        "fold, ns/event": f"{cpu_ns(lambda: core.fold(small), len(ids)):.1f}",
        "levels of 2^17, ms": f"{levels(window):.1f}",
        f"levels of {len(ids):,}, ms": f"{levels(len(ids)):.1f}",
        "loops, ms": f"{cpu_ns(graph.loops, 1) / 1e6:.2f}",
    }


def instructions(kind: str, events: int) -> float:
    """Instructions of one enter and leave: two programs under callgrind; one has every event nine times."""
    counts = []
    for passes in ("9", "1"):
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
                *(sys.executable, __file__, "--one", kind, "--events", str(events), "--passes", passes),
            ],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},  # or every run does something else
        )
        match = re.search(r"Collected : (\d+)", done.stderr)
        assert match is not None, done.stderr
        counts.append(int(match[1]))
    return (counts[0] - counts[1]) / events / 8


def traced(folder: Path) -> Iterator[tuple[str, Ids]]:
    """Kernels in launch order, and all operators of the thread that has most of them."""
    for path in sorted(folder.glob("*.json.gz")):
        events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
        by_kind: dict[str, list[tuple[float, str]]] = {"kernels": [], "operators": []}
        launched = {
            e["args"].get("correlation"): e["ts"] for e in events if e.get("cat") in ("cuda_runtime", "Runtime")
        }
        operators = [e for e in events if e.get("cat") in ("cpu_op", "Operator")]
        threads = [e["tid"] for e in operators]
        main = max(set(threads), key=threads.count) if threads else None
        for e in events:
            if e.get("cat") in ("kernel", "Kernel") and e["args"].get("correlation") in launched:
                by_kind["kernels"].append((float(launched[e["args"]["correlation"]]), e["name"]))
        by_kind["operators"] = [(float(e["ts"]), e["name"]) for e in operators if e["tid"] == main]
        for kind, named in by_kind.items():
            numbers: dict[str, int] = {}
            ids = [numbers.setdefault(name, len(numbers)) for _, name in sorted(named, key=lambda pair: pair[0])]
            if len(ids) > 500:
                yield f"{path.name.removesuffix('.json.gz')}, {kind}", np.array(ids)


def size(name: str, ids: Ids) -> dict[str, object]:
    """Bytes of the order, side by side."""
    order = order_bytes(ids)
    return {
        "sequence": name,
        "events": order.events,
        "kinds": order.kinds,
        "raw ids": order.raw,
        "zstd -19": order.zstd,
        "t-EFG": order.temporal,
        "second level": order.second_level,
        "SEQ/LOOP elements + trip counts": f"{order.elements} + {order.runs}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--passes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:  # what callgrind looks at
        ids = np.tile(sequences(options.events)[options.one].astype(np.uint64), options.passes)
        times = np.arange(len(ids), dtype=np.int64) * 1000
        core.build_graph(ids, times, times, *ONLINE)
        return
    shapes = sequences(options.events)
    print("\n## Time\n")
    of_traces = dict(traced(options.traces)) if options.traces else {}
    # A trace is short: again and again, as a longer run of the same program would go.
    longer = {name: np.resize(ids, options.events) for name, ids in of_traces.items()}
    print(table([speed(name, ids) for name, ids in (shapes | longer).items()]))
    if options.instructions:
        print("\n## Instructions of one enter and leave, graph and t-EFG\n")
        print(table([{"sequence": n, "instructions": f"{instructions(n, 300_000):.0f}"} for n in shapes]))
    print("\n## Bytes of the order\n")
    named = {name: ids[:200_000] for name, ids in shapes.items()}
    print(table([size(name, ids) for name, ids in (named | of_traces).items()]))


if __name__ == "__main__":
    main()
