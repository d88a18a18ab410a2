"""What recording a call costs, beside VizTracer and cProfile in the same rounds.

./dev bench overhead calls [--pythons 3.11 3.13 3.15] [--rounds 5] [--workloads fib threads ...]
./dev bench overhead instructions [--pythons ...]      instruction counts by callgrind, where valgrind is there
./dev bench overhead disk [--pythons ...]              bytes per call, CPU time of saving and of opening

CPU time, not wall time: in each round every tool runs the workloads once, and each workload's least time of a few
repetitions counts; the figures are medians over the rounds. Two clocks: "thread" is what the program's own threads pay,
"process" counts the recorder's background thread too. Figures of a busy machine are only good as ratios within one run.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

from measure import ROOT, checked, folder, interleaved, middle, table

WORKLOADS = str(ROOT / "benchmarks/workloads.py")
FUNCTIONS_ONLY, WITH_C = "Python functions", "C functions, too"
# What a call may add, as a share of what VizTracer adds for it.
LIMITS = {FUNCTIONS_ONLY: {"3.11": 0.25}, WITH_C: {"3.11": 0.75}}
LATER = {FUNCTIONS_ONLY: 0.45, WITH_C: 0.5}
WAYS = ("plain", "strobe", "viztracer", "cprofile", "strobe +c", "viztracer +c")


def python_of(version: str) -> Path:
    python = ROOT / f".venv/{version}/bin/python"
    if not python.exists():
        raise SystemExit(f"no environment for Python {version}: PYTHON_VERSION={version} ./dev sync")
    return python


def command(python: Path, way: str, trace: str, rest: list[str]) -> list[str]:
    """How the workloads are started so that `way` measures them."""
    if way.startswith("strobe"):
        more = ["--trace", "+c_calls"] if way.endswith("+c") else []
        # Everything in detail, and nothing throttled: every call is recorded by all of them.
        options = ["--quiet", "--keep", "all", "--throttle", "off", *more, "-o", trace]
        return [str(python.with_name("strobe")), "run", *options, WORKLOADS, *rest]
    tool = {"plain": "none", "viztracer": "viztracer", "viztracer +c": "viztracer_c", "cprofile": "cprofile"}[way]
    return [str(python), WORKLOADS, *rest, "--tool", tool]


def calls(rounds: int, pythons: list[str], names: list[str]) -> None:
    """Nanoseconds that one call gains with each tool."""
    for version in pythons:
        python = python_of(version)
        found: dict[tuple[str, str, str], list[float]] = {}
        with folder() as place:
            counts = json.loads(checked([str(python), WORKLOADS, *names, "--count"], place).stdout)
            for number, way in interleaved(rounds, WAYS):
                trace = f"{number}{way.replace(' ', '')}.strobe"
                result = json.loads(checked(command(python, way, trace, names), place).stdout)
                shutil.rmtree(place / trace, ignore_errors=True)
                for name in counts:
                    for clock, ns in result[name].items():
                        found.setdefault((name, clock, way), []).append(ns)

        def added(name: str, clock: str, way: str, per: int, found: dict = found) -> float:
            return (middle(found[name, clock, way]) - middle(found[name, clock, "plain"])) / per

        for what, ours, theirs in (
            (FUNCTIONS_ONLY, "strobe", "viztracer"),
            (WITH_C, "strobe +c", "viztracer +c"),
        ):
            limit = LIMITS[what].get(version, LATER[what])
            rows = []
            for name, n in counts.items():
                per = n["python"] + (n["c"] if what == WITH_C else 0)
                row = {"workload": name, "calls": per}
                for clock in ("thread", "process"):
                    mine, peer = (added(name, clock, way, per) for way in (ours, theirs))
                    row |= {
                        f"strobe, ns ({clock})": f"{mine:.0f}",
                        f"VizTracer, ns ({clock})": f"{peer:.0f}",
                        f"ratio ({clock})": f"{mine / peer:.2f}",
                    }
                if what == FUNCTIONS_ONLY:
                    # cProfile sees the thread that switched it on.
                    profile = added(name, "thread", "cprofile", per)
                    row["to cProfile (thread)"] = "" if name == "threads" else f"{row_ratio(row, profile):.2f}"
                rows.append(row)
            print(f"\n## Python {version}: {what}, at most {limit} of VizTracer ({rounds} rounds, load {load()})\n")
            print(table(rows), flush=True)


def row_ratio(row: dict, other: float) -> float:
    return float(row["strobe, ns (thread)"]) / other


def load() -> str:
    return f"{os.getloadavg()[0]:.0f}"


def instructions(pythons: list[str], names: list[str]) -> None:
    """Instructions that one call gains: the difference of two sizes, so that starting and saving count for nothing."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise SystemExit("no valgrind here: apt-get install valgrind")
    for version in pythons:
        python = python_of(version)
        rows = []
        for name in [n for n in names if n not in ("nbody", "threads", "fib", "raytrace")]:  # the last two: no sizes
            per_call: dict[str, tuple[float, float]] = {}
            with folder() as place:
                sizes = [["--scale", "0.05"], ["--scale", "0.15"]]
                n = [
                    json.loads(checked([str(python), WORKLOADS, name, "--count", *size], place).stdout)[name]
                    for size in sizes
                ]
                for way in WAYS:
                    totals = []
                    for index, size in enumerate(sizes):
                        measured = [name, "--rounds", "1", *size]
                        words = command(python, way, f"{index}{way.replace(' ', '')}.strobe", measured)
                        totals.append(collected(valgrind, words, python, place))
                    by = n[1]["python"] - n[0]["python"]
                    if way.endswith("+c"):
                        by += n[1]["c"] - n[0]["c"]
                    per_call[way] = tuple((b - a) / by for a, b in zip(*totals, strict=True))
                    if way == "plain":
                        plain_python = (totals, by)
                for way in WAYS[1:]:
                    base, _ = plain_python
                    by = n[1]["python"] - n[0]["python"] + (n[1]["c"] - n[0]["c"] if way.endswith("+c") else 0)
                    bare = [(b - a) / by for a, b in zip(*base, strict=True)]
                    program, process = (mine - b for mine, b in zip(per_call[way], bare, strict=True))
                    rows.append(
                        {
                            "workload": name,
                            "tool": way,
                            "program's thread": f"{program:.0f}",
                            "process": f"{process:.0f}",
                        }
                    )
        print(f"\n## Python {version}: instructions added per call (callgrind)\n")
        print(table(rows), flush=True)


def collected(valgrind: str, words: list[str], python: Path, place: Path) -> tuple[int, int]:
    """Instructions of the first thread and of all threads of the measured process."""
    tool = [valgrind, "--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file=cg.%p"]
    at = words.index(WORKLOADS)
    under = [*words[:at], "--", *tool, str(python), *words[at:]] if "strobe" in words[0] else [*tool, *words]
    for old in place.glob("cg.*"):
        old.unlink()
    checked(under, place, {"PYTHONHASHSEED": "0"})
    sums = {}
    for path in place.glob("cg.*"):
        total = re.search(r"^(?:totals|summary): (\d+)", path.read_text(errors="replace"), re.MULTILINE)
        if total:
            sums[path.name] = int(total[1])
    parts = {name: total for name, total in sums.items() if re.search(r"-\d+$", name)}
    first = next(total for name, total in parts.items() if name.endswith("-01"))
    return first, sum(parts.values())


def disk(rounds: int, pythons: list[str], names: list[str]) -> None:
    """Bytes per call, and CPU seconds of saving and opening, of one run with every workload."""
    rows = []
    for version in pythons:
        python = python_of(version)
        with folder() as place:
            counts = json.loads(checked([str(python), WORKLOADS, *names, "--count"], place).stdout)
            n = sum(each["python"] for each in counts.values()) * rounds
            rest = [*names, "--rounds", str(rounds)]
            theirs = json.loads(checked([*command(python, "viztracer", "", rest), "--save", "v.json"], place).stdout)[
                "save"
            ]["process"]
            load_json = "import json, sys; json.load(open(sys.argv[1]))"
            theirs_open = checked([str(python), "-c", load_json, "v.json"], place).cpu_s
            bare = checked([str(python), "-c", "import json"], place).cpu_s
            ours = save_time(python, place, rest)
            mine_open = float(checked([str(python), "-c", OPENED, "s.strobe"], place).stdout)
            size = sum(path.stat().st_size for path in (place / "s.strobe").rglob("*") if path.is_file())
            blocks = sum(path.stat().st_size for path in (place / "s.strobe").glob("*.blocks"))
            viz_open = theirs_open - bare
            rows.append(
                {
                    "Python": version,
                    "calls": n,
                    "strobe, bytes a call": f"{blocks / n:.2f}, {size / n:.2f} with tiles",
                    "VizTracer, bytes a call": f"{(place / 'v.json').stat().st_size / n:.0f}",
                    "strobe: end, tiles, open (s)": f"{ours[0]:.3f}, {ours[1]:.3f}, {mine_open:.3f}",
                    "VizTracer: save, open (s)": f"{theirs / 1e9:.2f}, {viz_open:.2f}",
                    "save and open": f"{(theirs / 1e9 + viz_open) / (ours[0] + mine_open):.0f} times faster",
                    "with tiles": f"{(theirs / 1e9 + viz_open) / (sum(ours) + mine_open):.0f} times",
                }
            )
    print(f"\n## On disk, saving, opening (load {load()})\n")
    print(table(rows))


# The first opening imports the libraries; json is imported outside of VizTracer's time, too.
OPENED = """
import strobe, sys, time
def opened():
    trace = strobe.open(sys.argv[1])
    return trace.span_count, trace.regions
opened()
begin = time.process_time()
opened()
print(time.process_time() - begin)
"""
SAVED = """
import json, sys, time
from pathlib import Path
from strobe.trace.after_run.closing import close_trace
import strobe; strobe.open(sys.argv[1]).regions  # imports the libraries
for tiles in Path(sys.argv[1]).glob("*.tiles"):  # `strobe run` has made them already
    tiles.unlink()
begin = time.process_time()
close_trace(Path(sys.argv[1]))
print(time.process_time() - begin)
"""


def save_time(python: Path, place: Path, rest: list[str]) -> tuple[float, float]:
    """CPU seconds from the program's last line to a complete trace: the process' own end, and the tiles after it."""
    script = place / "ending.py"
    script.write_text(
        "import sys, runpy, atexit, time\n"
        "sys.argv[0] = sys.argv.pop(1)\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "from strobe.native import core\n"
        "begin = time.process_time()\n"
        "core.stop()\n"
        "print(time.process_time() - begin, file=sys.stderr)\n"
    )
    strobe = str(python.with_name("strobe"))
    done = checked(
        [
            strobe,
            "run",
            "--quiet",
            "--keep",
            "all",
            "--throttle",
            "off",
            "-o",
            "s.strobe",
            str(script),
            WORKLOADS,
            *rest,
        ],
        place,
    )
    stopping = float(done.stderr.split()[-1])
    completing = float(checked([str(python), "-c", SAVED, "s.strobe"], place).stdout)
    return stopping, completing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["calls", "instructions", "disk"], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pythons", nargs="+", default=[Path(sys.executable).parents[1].name])
    parser.add_argument("--workloads", nargs="+", default=[])
    options = parser.parse_args()
    from benchmarks import workloads

    names = options.workloads or list(workloads.WORKLOADS)
    for part in options.parts or ["calls", "disk"]:
        if part == "calls":
            calls(options.rounds, options.pythons, names)
        elif part == "instructions":
            instructions(options.pythons, names)
        else:
            disk(options.rounds, options.pythons, names)


if __name__ == "__main__":
    main()
