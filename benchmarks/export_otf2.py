"""What an export to OTF2 costs a span: CPU time and peak memory of a process of its own, and the official writer's.

    ./dev bench export_otf2 [--spans 1000000] [--repeat 3]

`calls`: nested spans without attributes in four threads; `operators`: spans with four attributes each, as PyTorch's
operators have them. The official writer is the `otf2` package's, given enters and leaves only. It must be: memory that
does not grow with the trace: at most 32 MiB more for four times the spans, apart from the block file, which is mapped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_MORE_MIB = 32


def make(folder: Path, shape: str, spans: int) -> Path:
    """Write a trace through the same door as imports."""
    from strobe import native

    folder.mkdir(parents=True)
    out = native.ImportedProcess(str(folder / "process-1.blocks"), 64 << 20)
    regions = np.array([out.region(f"function {i}", 1, 1) for i in range(300)], dtype=np.uint32)
    columns = [("external_id", 0), ("sequence_number", 0), ("shapes", 2), ("types", 2)]
    table = out.table("operator_spans", columns, True)
    texts = np.array([out.text(f"[[{i},3,224,224]]") for i in range(1000)], dtype=np.int64)
    for thread in range(4):
        location = out.location(f"thread {thread}", 100 + thread)
        for first in range(0, spans // 4, 1 << 16):
            number = np.arange(first, min(first + (1 << 16), spans // 4))
            nest, depth = number // 10, number % 10
            start = nest * 2000 + depth * 91
            duration = 1500 - depth * 148
            cells = [
                (0, number.astype(np.int64), None),
                (1, nest.astype(np.int64), None),
                (2, texts[number % 1000], None),
                (3, texts[(number * 7) % 1000], None),
            ]
            which = [(table, cells)] if shape == "operators" else []
            at = np.full(len(number), location, dtype=np.uint32)
            out.spans(at, start.astype(np.int64), duration.astype(np.int64), regions[(nest * 7 + depth) % 300], which)
    out.finish(1, 0, json.dumps({"argv": ["program"], "main": True}), "", "closed")
    (folder / "job.json").write_text(json.dumps({"format_version": 1, "zero_ns": 0}))
    return folder


def ours(path: Path) -> dict[str, Any]:
    import strobe
    from strobe import registry
    from strobe.formats.otf2 import export

    for name in registry.names("formats"):  # not part of the measured work: it imports all formats
        registry.load("formats", name)
    assert export.Writer
    trace = strobe.open(path)
    assert len(trace.locations) == 4  # the first table imports pandas, where that is installed
    begun = _cpu_s()
    trace.export(path.with_suffix(".otf2"), "otf2")
    spent = _cpu_s() - begun
    held = sum(each.stat().st_size for each in path.with_suffix(".otf2").rglob("*") if each.is_file())
    return {"cpu_s": spent, "spans": trace.span_count, "bytes": held}


def official(path: Path) -> dict[str, Any]:
    import otf2

    import strobe

    trace = strobe.open(path)
    spans = [trace.span_arrays(location) for location in range(len(trace.locations))]
    begun = _cpu_s()
    with otf2.writer.open(str(path.with_suffix(".official")), timer_resolution=10**9) as out:
        of = out.definitions
        regions = [of.region(str(name)) for name in trace.regions.column("name")]
        group = of.location_group("process", system_tree_parent=of.system_tree_node("node"))
        for number, each in enumerate(spans):
            writer = out.event_writer_from_location(of.location(f"thread {number}", group=group))
            ends: list[tuple[int, Any]] = []
            columns = (each[name].tolist() for name in ("start_ns", "duration_ns", "depth", "region"))  # type: ignore[literal-required]
            for start, duration, depth, region in zip(*columns, strict=True):
                while len(ends) > depth:
                    writer.leave(*ends.pop())
                writer.enter(start, regions[region])
                ends.append((start + duration, regions[region]))
            while ends:
                writer.leave(*ends.pop())
    return {"cpu_s": _cpu_s() - begun, "spans": trace.span_count, "bytes": 0}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _measured(how: str, path: Path) -> dict[str, Any]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", how, str(path)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    shutil.rmtree(path.with_suffix(".official"), ignore_errors=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--spans", type=int, default=1_000_000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        how, path = given.measure
        result = {"official": official, "ours": ours}[how](Path(path))
        result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return 0
    missed = 0
    folder = Path(tempfile.mkdtemp(prefix="otf2-"))
    print("shape          spans   strobe us/span   peak MiB   bytes/span   official writer us/span")
    try:
        for shape in ("calls", "operators"):
            own_mib = []  # without what is mapped
            for spans in (given.spans, 4 * given.spans):
                trace = make(folder / f"{shape}{spans}.strobe", shape, spans)
                runs = [_measured("ours", trace) for _ in range(given.repeat)]
                own = min(runs, key=lambda run: run["cpu_s"])
                mapped = sum(each.stat().st_size for each in trace.glob("*.blocks"))
                own_mib.append(own["peak_mib"] - mapped / (1 << 20))
                line = f"{shape:10} {own['spans']:9} {own['cpu_s'] / own['spans'] * 1e6:16.3f} {own['peak_mib']:10.0f}"
                line += f" {own['bytes'] / own['spans']:12.1f}"
                if spans == given.spans and shape == "calls":
                    line += f" {_measured('official', trace)['cpu_s'] / own['spans'] * 1e6:25.2f}"
                print(line, flush=True)
            missed += own_mib[1] - own_mib[0] > _MORE_MIB
    finally:
        shutil.rmtree(folder)
    print(f"limits missed: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
