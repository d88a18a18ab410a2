"""Bytes per span on disk, tiles included, and the program's peak memory at 1x and 10x the steps.

./dev bench size [--steps 100]
"""

import argparse
import sys
from pathlib import Path

from measure import EXAMPLE, STROBE, checked, folder, table

import strobe

# Runs the example, then prints the most memory that its main process ever had.
PEAK = """
import runpy, sys
sys.argv = {arguments!r}
runpy.run_path(sys.argv[0], run_name="__main__")
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("peak", line.split()[1])
"""
# Nothing but Python calls: its own memory is constant, so every growth is the recorder's.
CALLS = """
def work(n):
    return n
for n in range({count}):
    work(n)
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("peak", line.split()[1])
"""


def measure(place: Path, name: str, code: str) -> dict[str, object]:
    """Record a program, and weigh its trace and its memory."""
    plain = checked([sys.executable, "-c", code], place)
    done = checked([STROBE, "run", "--quiet", "-o", f"{name}.strobe", "-c", code], place)
    trace = place / f"{name}.strobe"
    spans = strobe.open(trace).sql("select sum(span_count)::bigint as n from locations").to_pylist()[0]["n"]
    size = {suffix: sum(path.stat().st_size for path in trace.glob(f"*{suffix}")) for suffix in (".blocks", ".tiles")}
    peak, bare = (int(run.stdout.rsplit("peak ", 1)[1].split()[0]) for run in (done, plain))
    return {
        "program": name,
        "spans": spans,
        "blocks, bytes a span": f"{size['.blocks'] / spans:.2f}",
        "tiles, bytes a span": f"{size['.tiles'] / spans:.2f}",
        "together": f"{sum(size.values()) / spans:.2f}",
        "peak MiB": f"{peak / 1024:.1f}",
        "peak MiB without strobe": f"{bare / 1024:.1f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--calls", type=int, default=1_000_000)
    options = parser.parse_args()
    rows = []
    with folder() as place:
        for factor in (1, 10):
            code = CALLS.format(count=factor * options.calls)
            rows.append(measure(place, f"calls-{factor}x", code))
        for factor in (1, 10):
            arguments = [str(EXAMPLE), "--steps", str(factor * options.steps), "--seed", "1"]
            rows.append(measure(place, f"training-{factor}x", PEAK.format(arguments=arguments)))
    print(f"\n## Size and memory, {options.steps} and {10 * options.steps} steps\n")
    print(table(rows))


if __name__ == "__main__":
    main()
