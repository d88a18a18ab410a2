"""Programs recorded with the fake driver and the fake CUPTI, and what their traces say of each piece of work.

The fake stands in for NVIDIA's side only: programs, threads, files, kills and the whole of strobe are the real ones.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import strobe
from strobe.gpu.devices import devices
from strobe.gpu.launches import launches
from tests.gpu import fake_cuda

# The GPU's clock is converted between two readings of both: as exact as these are, on a busy machine.
CLOCK_NS = 200_000


class Recorded:
    """A program that ran under `strobe run` with the fake GPU."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.folder = folder
        self.done = done
        self.truth = fake_cuda.read_truth(folder / "truth.jsonl") if (folder / "truth.jsonl").exists() else []

    def did(self, *what: str) -> list[dict[str, Any]]:
        return [row for row in self.truth if row["what"] in what and row.get("start_ns")]

    @property
    def trace(self) -> strobe.Trace:
        return strobe.open(self.folder / "t.strobe")

    def said(self) -> dict[str, str]:
        """What the trace says of recording GPUs."""
        rows = self.trace.quality.to_pylist()
        return {str(row["what"]): str(row["text"]) for row in rows if str(row["what"]).startswith("gpu_")}


def record(
    folder: Path,
    program: str,
    release: str | None = "13.0",
    options: tuple[str, ...] = (),
    expected: int = 0,
    environment: dict[str, str] | None = None,
    **settings: object,
) -> Recorded:
    (folder / "program.py").write_text(
        "import os, signal, sys, threading, time\nimport fake_cuda\n" + textwrap.dedent(program)
    )
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", *options, "program.py"],
        cwd=folder,
        # A summary takes as long as everything else. Who looks at it asks for it.
        env=fake_cuda.environment(release, folder / "truth.jsonl", **settings)
        | {"STROBE_QUIET": "yes", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == expected, done.stderr[-3000:]
    return Recorded(folder, done)


def attributed(trace: strobe.Trace) -> list[dict[str, Any]]:
    """All that GPUs did in the trace: name, times of CLOCK_MONOTONIC, the call that launched it and its callers."""
    regions = trace.regions.to_arrow().to_pylist()
    paths = {row["call_path"]: row for row in trace.call_paths.to_arrow().to_pylist()}
    name_of = {row["region"]: row["name"] for row in regions}
    zero = trace.zero_ns

    def callers(path: int) -> list[str]:
        names = []
        while path is not None and path >= 0:
            names.append(name_of[paths[path]["region"]])
            path = paths[path]["parent"]
        return names

    numbers = {
        (row["location"], row["row"]): (row["correlation"], row["graph_node"] or 0)
        for table in ("kernel_spans", "copy_spans")
        for row in trace.sql(f"select location, row, correlation, graph_node from {table}").to_pylist()
    }
    found = []
    for device in devices(trace):
        for work, who in launches(trace, device):
            for i in range(len(work)):
                found.append(
                    {
                        "name": name_of[int(work.region[i])],
                        "number": numbers[int(work.location[i]), int(work.row[i])],
                        "start_ns": int(work.start_ns[i]) + zero,
                        "end_ns": int(work.end_ns[i]) + zero,
                        "device": device.number,
                        "call": name_of.get(int(who.call.region[i])),
                        "callers": callers(int(who.call.path[i])),
                        "call_start_ns": int(who.call.start_ns[i]) + zero,
                    }
                )
    return sorted(found, key=lambda each: (each["start_ns"], each["name"]))


def match(trace: strobe.Trace, told: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of what happened and what the trace has of it; one for one, at the same times."""
    seen = attributed(trace)
    assert len(seen) == len(told)
    left = {(each["correlation"], each["node"]): each for each in told}
    assert len(left) == len(told)
    pairs = []
    for found in seen:
        truth = left.pop(found["number"])
        assert abs(truth["start_ns"] - found["start_ns"]) <= CLOCK_NS
        took = truth["end_ns"] - truth["start_ns"]
        assert abs(took - (found["end_ns"] - found["start_ns"])) <= 200 + took // 100
        pairs.append((truth, found))
    return pairs
