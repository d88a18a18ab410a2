"""Opening a PyTorch profile for the first time, beside Holistic Trace Analysis (traceinsight) on the same file.

./dev bench import_chrome FILE.json.gz [--rounds 5] [--hta PYTHON]    a Python that has traceinsight
./dev bench import_chrome FILE.json.gz --gigabytes 2 --memory 1       that file's events over and over, under a limit

CPU seconds and peak memory of a process each, imports of the libraries apart; medians.
"""

import argparse
import gzip
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import table

# What a process reports: CPU seconds for importing the library, for opening the file, and its peak memory. Not
# ru_maxrss: it begins with what the parent had.
REPORT = """
import json, time
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([imported, time.process_time() - imported, peak / 1024]))
"""
STROBE = """
import sys, time
import strobe
from strobe.api import imports as _, trace as _
imported = time.process_time()
count = strobe.open(sys.argv[1]).span_count
print(count)
"""
HTA = """
import os, sys, time
from hta.trace_analysis import TraceAnalysis
imported = time.process_time()
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
"""


def measured(python: str, program: str, path: Path, memory_gb: float | None = None) -> tuple[float, ...]:
    """Return CPU seconds of importing the library and of opening the file, peak MiB, seconds to a partial answer."""
    words = [python, "-c", program + REPORT, str(path)]
    if memory_gb:
        words = ["bash", "-c", f'ulimit -v {int(memory_gb * 2**20)}; exec "$@"', "bash", *words]
    begun, answered, output = time.monotonic(), float("nan"), ""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:
            output += line
            if "most time so far" in line and math.isnan(answered):
                answered = time.monotonic() - begun
        output = process.stdout.read()
    if process.returncode:
        raise SystemExit(output[-2000:])
    imported, opened, peak = json.loads(output.splitlines()[-1])
    return imported, opened, peak, answered


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hta", help="a Python that has traceinsight")
    parser.add_argument("--gigabytes", type=float)
    parser.add_argument("--memory", type=float, help="limit of the address space, GiB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.gigabytes:
            large(options, Path(folder))
        else:
            beside(options, Path(folder))


def beside(options: argparse.Namespace, folder: Path) -> None:
    """One file, opened in turn by each."""
    events = len(json.loads(gzip.decompress(options.file.read_bytes()))["traceEvents"])
    tools = {"strobe": (sys.executable, STROBE)} | ({"HTA": (options.hta, HTA)} if options.hta else {})
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in tools}
    for number in range(options.rounds):
        for name, (python, program) in tools.items():
            copy = folder / f"{name}{number}.json.gz"
            copy.write_bytes(options.file.read_bytes())
            found[name].append(measured(python, program, copy))
    rows = []
    for name, results in found.items():
        imported, opened, peak, _ = (statistics.median(column) for column in zip(*results, strict=True))
        rows.append(
            {
                "tool": name,
                "import, s": f"{imported:.2f}",
                "open, CPU s": f"{opened:.2f}",
                "us/event": f"{opened / events * 1e6:.2f}",
                "peak MiB": f"{peak:.0f}",
            }
        )
    print(table(rows))


def large(options: argparse.Namespace, folder: Path) -> None:
    """The events of a file repeated, each time later, until the text has so many gigabytes."""
    path = folder / "large.json"
    events = repeat(options.file, path, int(options.gigabytes * 1e9))
    begun = time.monotonic()
    _, opened, peak, answered = measured(sys.executable, STROBE, path, options.memory)
    print(
        f"{os.path.getsize(path) / 1e9:.2f} GB, {events} events, limit {options.memory} GiB: "
        f"{time.monotonic() - begun:.1f} s wall, {opened:.1f} s CPU, peak {peak:.0f} MiB, "
        f"first partial answer after {answered:.1f} s"
    )


def repeat(source: Path, path: Path, size_bytes: int) -> int:
    """Write the events of a trace over and over, each time later, until there are so many bytes; return how many.

    Each copy has correlations and external ids of its own, and its steps other numbers.
    """
    whole = json.loads(gzip.decompress(source.read_bytes()))
    events = [e for e in whole["traceEvents"] if e.get("ph") != "M" and "ts" in e]
    starts = [float(e["ts"]) for e in events]
    period = max(starts) - min(starts) + 1000
    ids = ("correlation", "External id")
    stride = 1 + max(int(e["args"].get(i) or 0) for e in events if "args" in e for i in ids)
    steps = len({e["name"] for e in events if str(e["name"]).startswith("ProfilerStep#")})

    def text_of(event: dict[str, object]) -> tuple[str, int, int]:
        """The event as a template of `str.format`."""
        args = dict(event.get("args") or {})  # type: ignore[call-overload]
        held = {i: args[i] for i in ids if isinstance(args.get(i), int) and args[i] > 0}
        for i in held:
            args[i] = f"@{i}@"
        found = json.dumps({**event, "args": args, "ts": "@ts@"}).replace("{", "{{").replace("}", "}}")
        found = found.replace('"@ts@"', "{0:.3f}")
        for i in held:
            found = found.replace(f'"@{i}@"', f"{{{1 if i == ids[0] else 2}}}")
        return re.sub(r"ProfilerStep#\d+", "ProfilerStep#{3}", found), *(held.get(i, 0) for i in ids)

    pieces = [text_of(event) for event in events]
    numbers = [int(m[1]) if (m := re.match(r"ProfilerStep#(\d+)", str(e["name"]))) else 0 for e in events]
    written, copies = 0, 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [')
        while written < size_bytes:
            text = ",\n".join(
                piece.format(at + copies * period, a + copies * stride, b + copies * stride, n + copies * steps)
                for (piece, a, b), at, n in zip(pieces, starts, numbers, strict=True)
            )
            written += file.write((",\n" if copies else "") + text)
            copies += 1
        file.write("]}")
    return copies * len(events)


if __name__ == "__main__":
    main()
