"""What a repair gains: `python tests/injector/measure.py [--rounds N] [NAME ...]` writes measured.json.

Each program runs with its defect and without, in turn: A B B A A B a round. Shares are comparable between machines;
milliseconds are those of this one, and only if nothing else runs. Exit status 1 if a program fails, or computes
something else with its defect than without. MPI programs run with `$MEANING_MPI/bin/mpiexec`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MPI = Path(os.environ.get("MEANING_MPI") or HERE.parents[1] / ".venv" / "mpich")  # `./dev record` makes it
ORDER = ("on", "off", "off", "on", "on", "off")


def run(case: dict, switch: str) -> dict:
    """Return what a program prints of itself at its end."""
    launcher = case["start"].split()
    environment = dict(os.environ)
    if launcher:
        launcher[0] = str(MPI / "bin" / launcher[0])
        environment |= {"LD_LIBRARY_PATH": f"{MPI}/lib", "PYTHONPATH": f"{MPI}/lib/python3.11/site-packages"}
    words = [*launcher, sys.executable, str(HERE / case["file"]), *case["arguments"][switch]]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(case: dict, rounds: int) -> dict:
    """Return the step times of a program in ms, and what its repair gains: medians, and the least and most of pairs."""
    if case["kind"] == "healthy":
        times = [run(case, "plain")["step_ms_median"] for _ in range(3)]
        return {"step_ms": statistics.median(times), "spread_ms": [min(times), max(times)]}
    runs = [(switch, run(case, switch)) for switch in ORDER * rounds]
    pairs = [dict(runs[at : at + 2]) for at in range(0, len(runs), 2)]
    key = f"step_ms_{case['gain_by']}"
    gains = [pair["on"][key] - pair["off"][key] for pair in pairs]
    checks = [(pair["on"]["check"], pair["off"]["check"]) for pair in pairs]
    return {
        **{f"{switch}_ms": statistics.median(pair[switch][key] for pair in pairs) for switch in ("on", "off")},
        "gain_ms": statistics.median(gains),
        "gain_spread_ms": [min(gains), max(gains)],
        "gain_share": statistics.median(1 - pair["off"][key] / pair["on"][key] for pair in pairs),
        "same_result": all(abs(on - off) <= 1e-3 * max(1e-6, abs(on)) for on, off in checks),
    }


def main() -> int:
    """Measure the cases with these names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of programs, without .py")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    cases = {Path(case["file"]).stem: case for case in json.loads((HERE / "cases.json").read_text(encoding="utf-8"))}
    out = HERE / "measured.json"
    found, failed = json.loads(out.read_text()) if out.exists() else {}, False
    for name in args.names or cases:
        try:
            found[name] = measured(cases[name], args.rounds)
        except subprocess.CalledProcessError as error:
            print(f"{name}: {error.stderr[-300:]}", file=sys.stderr)
            failed = True
            continue
        failed |= not found[name].get("same_result", True)
        print(name, json.dumps(found[name]), flush=True)
        out.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
