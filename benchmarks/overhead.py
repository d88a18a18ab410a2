"""What recording a call costs, beside VizTracer and cProfile in the same rounds.

./dev bench overhead calls [--pythons 3.11 3.13 3.15] [--rounds 7] [--workloads fib threads ...]
./dev bench overhead disk [--pythons ...]              bytes per call, CPU time of saving and of opening

Two figures beside each other. Nanoseconds of CPU time: in each round every tool runs the workloads once, and the least
of a few repetitions counts; the median over the rounds is shown, and of the ratio the least and the greatest, too.
Instructions, counted by callgrind: of three repetitions less those of one, so that starting and saving are apart. They
depend on what else the machine does far less than times do (what is folded, and what is looked at by time, differs: one
core had 727 and 1252 instructions a call of `methods`), so the limits are checked on them: the exit status is 1 if one
is exceeded.

"thread" is what the program's own threads pay, "process" counts the recorder's background thread, too.
`--rounds 3 --workloads fib` takes less than two minutes.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path
from statistics import median

from measure import ROOT, checked, folder, interleaved, run, table

WORKLOADS = str(ROOT / "benchmarks/workloads.py")
# What a call may add, as a share of the instructions that VizTracer adds for it: in the program's thread, and with the
# recorder's own thread.
LIMITS = {
    "strobe": {"thread": {"3.11": 0.25, "later": 0.45}, "process": {"3.11": 0.5, "later": 0.5}},
    "strobe +c": {"thread": {"3.11": 0.75, "later": 0.5}, "process": {"3.11": 0.75, "later": 0.5}},
}
PEERS = {"strobe": ("viztracer", "cprofile", "profiling.sampling"), "strobe +c": ("viztracer +c",)}
MODULES = {"viztracer": "viztracer", "viztracer +c": "viztracer", "profiling.sampling": "profiling.sampling"}
CLOCKS = ("thread", "process")
# Of these no instructions are counted: nbody calls hardly anything, and callgrind does not name the threads.
UNCOUNTED = ("nbody", "threads")
# Beside these there is no limit, and of the second no instruction runs in the program.
BY_TIME = ("cprofile", "profiling.sampling")
REPETITIONS = 1, 3  # of which callgrind counts the difference

# By workload, clock and way: one figure a round.
Times = dict[tuple[str, str, str], list[float]]


def python_of(version: str) -> Path:
    python = ROOT / f".venv/{version}/bin/python"
    if not python.exists():
        raise SystemExit(f"no environment for Python {version}: PYTHON_VERSION={version} ./dev sync")
    return python


def ways_of(python: Path, version: str) -> list[str]:
    """What is compared on this Python; prints a sentence for each peer that is not there."""
    ways = ["plain"]
    for ours, peers in PEERS.items():
        ways.append(ours)
        for peer in peers:
            module = MODULES.get(peer)
            if not module or run([str(python), "-c", f"import {module}"], ROOT).returncode == 0:
                ways.append(peer)
            elif peer in ("viztracer", "profiling.sampling"):
                print(f"{module} is not installed for Python {version}: its rows are left out.")
    return ways


def command(python: Path, way: str, trace: str, rest: list[str]) -> list[str]:
    """How the workloads are started so that `way` measures them."""
    if way.startswith("strobe"):
        more = ["--trace", "+c_calls"] if way.endswith("+c") else []
        # Everything in detail, and nothing throttled: every call is recorded by all of them.
        options = ["--quiet", "--keep", "all", "--throttle", "off", *more, "-o", trace]
        return [str(python.with_name("strobe")), "run", *options, WORKLOADS, *rest]
    if way == "profiling.sampling":
        return [str(python), "-m", way, "run", "--pstats", "-o", trace, WORKLOADS, *rest]
    tool = {"plain": "none", "viztracer": "viztracer", "viztracer +c": "viztracer_c", "cprofile": "cprofile"}[way]
    return [str(python), WORKLOADS, *rest, "--tool", tool]


def times(python: Path, ways: list[str], names: list[str], rounds: int, place: Path) -> Times:
    """CPU nanoseconds of each workload in each round."""
    found: Times = {}
    for number, way in interleaved(rounds, ways):
        trace = f"{number}{way.replace(' ', '')}.strobe"
        done = checked(command(python, way, trace, names), place)
        # A profiler may print more than the program.
        result = json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"')))
        shutil.rmtree(place / trace, ignore_errors=True)
        for name in names:
            for clock in CLOCKS:
                found.setdefault((name, clock, way), []).append(result[name][clock])
    return found


def instructions(python: Path, way: str, name: str, place: Path) -> dict[str, int]:
    """Instructions of two repetitions of a workload, of its first thread and of all threads of the process."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise SystemExit("no valgrind here: apt-get install valgrind")
    totals = []
    for repetitions in REPETITIONS:
        trace = f"{repetitions}{way.replace(' ', '')}.strobe"
        words = command(python, way, trace, [name, "--rounds", str(repetitions)])
        totals.append(collected(valgrind, words, python, place))
        shutil.rmtree(place / trace, ignore_errors=True)
    return {clock: more - less for clock, less, more in zip(CLOCKS, *totals, strict=True)}


def ratio(mine: float, theirs: float) -> float:
    return mine / theirs if theirs > 0 else float("inf")


def shown_ratio(mine: list[float], theirs: list[float]) -> str:
    """The ratio of the medians, and the least and the greatest ratio of a round."""
    rounds = [ratio(a, b) for a, b in zip(mine, theirs, strict=True)]
    return f"{ratio(median(mine), median(theirs)):.2f} ({min(rounds):.2f} to {max(rounds):.2f})"


def calls(rounds: int, pythons: list[str], names: list[str]) -> int:
    """What one call gains with each tool. Returns the number of limits that are exceeded."""
    exceeded = []
    for version in pythons:
        python = python_of(version)
        ways = ways_of(python, version)
        rows = []
        with folder() as place:
            counts = json.loads(checked([str(python), WORKLOADS, *names, "--count"], place).stdout)
            found = times(python, ways, names, rounds, place)
            for name in names:
                counted = [way for way in ways if name not in UNCOUNTED and way not in BY_TIME]
                total = {way: instructions(python, way, name, place) for way in counted}
                for ours in PEERS:
                    per = counts[name]["python"] + (counts[name]["c"] if ours.endswith("+c") else 0)
                    added = {
                        (way, clock): [
                            (mine - plain) / per
                            for mine, plain in zip(found[name, clock, way], found[name, clock, "plain"], strict=True)
                        ]
                        for way in (ours, *PEERS[ours])
                        if way in ways
                        for clock in CLOCKS
                    }
                    gained = {
                        (way, clock): (total[way][clock] - total["plain"][clock]) / (per * (REPETITIONS[1] - 1))
                        for way, clock in added
                        if way in total
                    }
                    for way in (each for each in (ours, *PEERS[ours]) if each in ways):
                        row: dict[str, object] = {"workload": name, "calls": per, "tool": way}
                        for clock in CLOCKS:
                            # cProfile sees the thread that switched it on.
                            partly = way == "cprofile" and name == "threads"
                            counts_here = (way, clock) in gained
                            row[f"ns ({clock})"] = f"{median(added[way, clock]):.0f}"
                            row[f"instructions ({clock})"] = f"{gained[way, clock]:.0f}" if counts_here else ""
                            row[f"ratio of ns ({clock})"] = row[f"of instructions ({clock})"] = ""
                            if way == ours or partly:
                                continue
                            row[f"ratio of ns ({clock})"] = shown_ratio(added[ours, clock], added[way, clock])
                            if not counts_here:
                                continue
                            share = ratio(gained[ours, clock], gained[way, clock])
                            row[f"of instructions ({clock})"] = f"{share:.2f}"
                            limit = LIMITS[ours][clock].get(version, LIMITS[ours][clock]["later"])
                            if way.startswith("viztracer") and share > limit:
                                exceeded.append(
                                    f"Python {version}, {name}, {ours} ({clock}): {share:.2f} of VizTracer's "
                                    f"instructions, at most {limit}"
                                )
                        rows.append(row)
        print(f"\n## Python {version}: what a call gains ({rounds} rounds, load {os.getloadavg()[0]:.0f})\n")
        print(table(rows), flush=True)
    print("\n" + "\n".join(exceeded or ["All limits hold."]))
    return len(exceeded)


def collected(valgrind: str, words: list[str], python: Path, place: Path) -> tuple[int, int]:
    """Instructions of the first thread and of all threads of the measured process."""
    tool = [valgrind, "--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file=cg.%p"]
    at = words.index(WORKLOADS)
    under = [*words[:at], "--", *tool, str(python), *words[at:]] if Path(words[0]).name == "strobe" else [*tool, *words]
    for old in place.glob("cg.*"):
        old.unlink()
    checked(under, place, {"PYTHONHASHSEED": "0"})
    parts = {}
    for path in place.glob("cg.*-*"):
        total = re.search(r"^totals: (\d+)", path.read_text(errors="replace"), re.MULTILINE)
        parts[path.name] = int(total[1]) if total else 0
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
    print(f"\n## On disk, saving, opening (load {os.getloadavg()[0]:.0f})\n")
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
    parser.add_argument("parts", nargs="*", choices=["calls", "disk"], default=[])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pythons", nargs="+", default=[Path(sys.executable).parents[1].name])
    parser.add_argument("--workloads", nargs="+", default=[])
    options = parser.parse_args()
    from benchmarks import workloads

    names = options.workloads or list(workloads.WORKLOADS)
    exceeded = 0
    for part in options.parts or ["calls", "disk"]:
        if part == "calls":
            exceeded += calls(options.rounds, options.pythons, names)
        else:
            disk(options.rounds, options.pythons, names)
    if exceeded:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
