"""How right the advice is: `python tests/injector/judge.py [--aside] [--recordings FOLDER] [NAME ...]`.

Each program is recorded with its defect (once; a recording in the folder is used again), and its findings are held
against what is known: whether the defect is named first, or among three, and whether the interval of that finding holds
the gain that `measure.py` has measured, as a part of the step. Healthy programs must get no advice with a gain. Prints
a table in Markdown. A finding is right if it names the function or the line of the defect, or has one of the words that
the author of the case expects.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measure import HERE, MPI

STROBE = (sys.executable, "-m", "strobe")


def recording(case: dict, folder: Path) -> Path:
    """Return the recording of a program with its defect; make it if it is not there."""
    switch = "plain" if case["kind"] == "healthy" else "on"
    trace = folder / f"{Path(case['file']).stem}-{switch}-0.strobe"
    if not trace.exists():
        launcher, environment = case["start"].split(), dict(os.environ)
        program = [str(HERE / case["file"]), *case["arguments"][switch]]
        if launcher:
            launcher[0] = str(MPI / "bin" / launcher[0])
            environment |= {"LD_LIBRARY_PATH": f"{MPI}/lib", "PYTHONPATH": f"{MPI}/lib/python3.11/site-packages"}
            program = ["--", *launcher, sys.executable, *program]
        words = [*STROBE, "run", "--quiet", "-o", str(trace), *program]
        subprocess.run(words, env=environment, capture_output=True, check=True)
    return trace


def is_right(case: dict, finding: dict) -> bool:
    """Whether a finding names the defect."""
    text = f"{finding['what']} {finding['do']}".lower()
    place = f"{case['defect_file']}:{case['line']}"
    named = case["function"].lower() in text or finding["where"].endswith(place)
    return named or any(word.lower() in text for word in case["words"])


def judged(case: dict, trace: Path, gain: float | None) -> dict:
    """Return the place of the right finding of a program, its interval as a part of the step."""
    asked = subprocess.run([*STROBE, "summary", str(trace), "--json"], capture_output=True, text=True, check=True)
    summary = json.loads(asked.stdout)
    findings = summary["findings"]
    promises = [each for each in findings if not each["informative"] and each["gain_high_ns"] > 0]
    if case["kind"] == "healthy":
        return {"healthy": True, "promises": [f"{each['rule']}: {each['what']}" for each in promises]}
    places = [at for at, each in enumerate(findings) if is_right(case, each)]
    found = {"healthy": False, "place": places[0] + 1 if places else None, "gain": gain, "low": None, "high": None}
    step_ns = summary["step"]["mean_ns" if case["gain_by"] == "mean" else "median_ns"] if summary["step"] else 0
    right = next((findings[at] for at in places if findings[at] in promises), None)
    if right is not None and step_ns:
        found |= {"low": right["gain_low_ns"] / step_ns, "high": right["gain_high_ns"] / step_ns, "rule": right["rule"]}
    return found


def main() -> int:
    """Judge the cases with these names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of programs, without .py")
    parser.add_argument("--aside", action="store_true", help="only those that are set aside, instead of the others")
    parser.add_argument("--recordings", type=Path, default=Path("recordings"), help="folder of the recordings")
    parser.add_argument("--measured", type=Path, default=HERE / "measured.json", help="what measure.py has written")
    args = parser.parse_args()
    args.recordings.mkdir(exist_ok=True)
    gains = json.loads(args.measured.read_text(encoding="utf-8")) if args.measured.exists() else {}
    found = {}
    for case in json.loads((HERE / "cases.json").read_text(encoding="utf-8")):
        name = Path(case["file"]).stem
        if name in args.names or (not args.names and ("set_aside" in case["file"]) == args.aside):
            gain = gains.get(name, {}).get("gain_share")
            found[name] = judged(case, recording(case, args.recordings), gain)
    print("| program | place | promised, part of a step | measured |\n|---|---|---|---|")
    defects = {name: each for name, each in found.items() if not each["healthy"]}
    for name, each in defects.items():
        promised = "none" if each["low"] is None else f"{each['low']:.0%} to {each['high']:.0%} ({each['rule']})"
        gain = "" if each["gain"] is None else f"{each['gain']:.0%}"
        print(f"| {name} | {each['place'] or 'not named'} | {promised} | {gain} |")
    for name, each in found.items():
        if each["healthy"]:
            print(f"| {name} | healthy | {'; '.join(each['promises']) or 'none'} | |")
    first, three = (sum((each["place"] or 99) <= most for each in defects.values()) for most in (1, 3))
    both = [each for each in defects.values() if each["low"] is not None and each["gain"] is not None]
    held = sum(each["low"] <= each["gain"] <= each["high"] for each in both)
    widths = [(each["high"] - each["low"]) / each["gain"] for each in both if each["gain"] > 0]
    width = f", in the median {statistics.median(widths):.2f} times the gain wide" if widths else ""
    false = sum(bool(each["promises"]) for each in found.values() if each["healthy"])
    healthy = len(found) - len(defects)
    print(f"\nOf {len(defects)} defects {first} are named first and {three} among three.")
    print(f"Of {len(both)} gains {held} lie in the interval{width}.")
    print(f"Of {healthy} healthy programs {false} are promised a gain.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
