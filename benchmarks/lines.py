"""What counting a source line adds, beside line_profiler, in the same rounds: least CPU nanoseconds of a line.

./dev bench lines --pythons 3.11 3.13     (line_profiler from 3.12 on by sys.monitoring, its default, and by settrace)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import table

PROGRAM = """
import json, sys, time

def arithmetic(n):
    total = 0
    for i in range(n):
        a = i * 2
        b = a + 1
        if b & 1:
            total += b
        total -= 1
    return total

def leaf(x):
    y = x + 1
    return y

def calls(n):
    total = 0
    for i in range(n):
        total = leaf(total)
    return total

def numbers(n):
    for i in range(n):
        yield i

def generator(n):
    total = 0
    for i in numbers(n):
        total += i
    return total

WORK = {"arithmetic": (arithmetic, 60_000, 5), "calls": (calls, 60_000, 4), "generator": (generator, 60_000, 4)}
tool = sys.argv[1]
if tool == "line_profiler":
    import line_profiler
    profiler = line_profiler.LineProfiler(arithmetic, leaf, calls, numbers, generator)
    profiler.enable()
least = {}
for _ in range(int(sys.argv[2])):
    for name, (function, n, lines) in WORK.items():
        start = time.process_time_ns()
        function(n)
        took = (time.process_time_ns() - start) / (n * lines)
        least[name] = min(least.get(name, took), took)
if tool == "line_profiler":
    profiler.disable()
print(json.dumps(least))
"""


def least(python: Path, folder: Path, tool: str, rounds: int) -> dict[str, float]:
    """Least CPU nanoseconds of a line, by workload, under a tool."""
    environment = dict(os.environ)
    command = [str(python), str(folder / "work.py"), tool, str(rounds)]
    if tool == "strobe":
        options = ["--quiet", "-t", "source_lines", "--lines", "work.py", "-o", str(folder / "out")]
        command = [str(python.with_name("strobe")), "run", *options, *command[1:]]
    if tool == "line_profiler by settrace":
        environment["LINE_PROFILER_CORE"] = "legacy"
        command[2] = "line_profiler"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pythons", nargs="+", default=[Path(sys.executable).parents[1].name])
    options = parser.parse_args()
    rows = []
    for version in options.pythons:
        python = Path(sys.executable).parents[2] / version / "bin" / "python"
        tools = ["none", "strobe", "line_profiler"]
        if version != "3.11":
            tools.append("line_profiler by settrace")
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "work.py").write_text(PROGRAM, encoding="utf-8")
            best: dict[str, dict[str, float]] = {}
            for _ in range(options.rounds):
                for tool in tools:
                    for work, ns in least(python, Path(name), tool, 3).items():
                        best.setdefault(tool, {})[work] = min(best.get(tool, {}).get(work, ns), ns)
        for work, bare in best["none"].items():
            row = {"Python": version, "workload": work, "bare": f"{bare:.0f}"}
            ours = best["strobe"][work] - bare
            row["strobe adds"] = f"{ours:.0f}"
            for tool in tools[2:]:
                theirs = best[tool][work] - bare
                row[f"{tool} adds"], row[f"ratio to {tool}"] = f"{theirs:.0f}", f"{ours / theirs:.2f}"
            rows.append(row)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    print(table([{column: row.get(column, "") for column in columns} for row in rows]))


if __name__ == "__main__":
    main()
